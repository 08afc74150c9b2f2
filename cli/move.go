package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// moveFlags are those of move.
type moveFlags struct {
	states []string
	note   string
	all    bool
	from   string
	dryRun bool
}

func (a *app) moveCommand() *cobra.Command {
	f := &moveFlags{}
	cmd := &cobra.Command{
		Use:   "move [<session>] <machine-file>",
		Short: "Let sessions go on under another definition of their machine",
		Long: `Let a session that has not completed go on under another definition of the same machine
name. It keeps its history, its data and what it has spent. Its round begins anew: answers
that are still out end, and so do rulings that wait for others. One that has stopped or
failed stays so until it is resumed. Limits that were raised are those of the file again.

The state in which it stands has to be in the file. Where it is not, --state says
which one is in its place; it cannot be one in which sessions end, so no approval is
skipped. Name former states of the session, too: who has ruled in OLD has
ruled in NEW, for approvals that exclude NEW, visits of OLD are visits of NEW, and its
rounds that wait for a review do so as rounds of NEW. That is required where a human
has ruled in a former state, and approvals exclude who has ruled in a new one. What the
session was started with has to satisfy the new input, whose defaults fill what its data
lack.

With --all, every live session of the machine that runs by the definition of --from
is moved, and each is reported; the exit code is 1 if one could not be. --dry-run
changes nothing.`,
		Example: `  dialai move 0b9c1d3e-… expense-2.yaml --note "the limit is 2,000 now"
  dialai move 0b9c1d3e-… expense-2.yaml --state check=review --note "check is review now"
  dialai move --all --from 9f86d081884c expense-2.yaml --note "2,000 now" --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.all && len(args) != 1:
				return command.Hinted(command.Usage("dialai move --all takes a machine file"), "without --all it takes a session and a machine file")
			case !f.all && len(args) != 2:
				return command.Hinted(command.Usage("dialai move takes a session and a machine file"), "with --all --from DIGEST it takes a machine file only")
			case f.all && len(f.from) < 6:
				return command.Hinted(command.Usage("dialai move --all needs --from with at least 6 digits of the digest of a definition"), "dialai show prints it beside the machine")
			case !f.all && f.from != "":
				return command.Usage("--from without --all")
			case strings.TrimSpace(f.note) == "":
				return command.Hinted(command.Usage("dialai move needs a --note"), `say why, for the record: --note "the limit is 2,000 now"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.move(cmd.Context(), args, f) },
	}
	cmd.Flags().StringArrayVar(&f.states, "state", nil, "in the place of a state that is not there any more, as `OLD=NEW` (may be repeated)")
	cmd.Flags().StringVar(&f.note, "note", "", "the `reason`, for the record")
	cmd.Flags().BoolVar(&f.all, "all", false, "every live session of the definition of --from")
	cmd.Flags().StringVar(&f.from, "from", "", "with --all, the `digest` of the definition by which they run, or its beginning")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and change nothing")
	return cmd
}

func (a *app) move(ctx context.Context, args []string, f *moveFlags) error {
	m, err := a.LoadMachine(args[len(args)-1])
	if err != nil {
		return err
	}
	how := runner.Moving{Actor: *command.LocalActor(), Note: f.note, DryRun: f.dryRun, States: map[machine.StateName]machine.StateName{}}
	for _, text := range f.states {
		from, to, ok := strings.Cut(text, "=")
		if !ok || from == "" || to == "" {
			return command.Usage("--state is %q, not OLD=NEW", text)
		}
		if _, twice := how.States[machine.StateName(from)]; twice {
			return command.Hinted(command.Usage("--state gives %q twice", from), "leave one of them out")
		}
		how.States[machine.StateName(from)] = machine.StateName(to)
	}
	return a.with(ctx, command.Writes, func(e *engine, out *bufio.Writer) error {
		if !f.all {
			return a.moveOne(ctx, e, out, args[0], m, how)
		}
		found, failed := 0, 0
		for sum, err := range e.each(ctx, session.ListQuery{MachineName: m.Name(), Statuses: session.LiveStatuses()}) {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(sum.MachineDigest, f.from) || sum.MachineDigest == m.Digest() {
				continue
			}
			found++
			s, err := e.Move(ctx, sum.SessionID, m, how)
			if err != nil {
				failed++
			}
			if err := a.Moved(out, render.MovedLine{SessionID: sum.SessionID.String(), From: sum.MachineDigest, To: m.Digest(), CurrentState: wouldStand(sum.CurrentState, m, how), DryRun: f.dryRun}, s, err); err != nil {
				return err
			}
		}
		if failed > 0 {
			return errors.Join(out.Flush(), command.Fail(command.ExitFailure, errors.New(render.Plural(failed, "session")+" could not be moved")))
		}
		if found == 0 && !a.Flags.JSON && !a.Flags.Quiet {
			fmt.Fprintf(out, "No live session of machine %s runs by a definition %s….\n", render.Clean(m.Name()), render.Clean(f.from))
		}
		return nil
	})
}

func (a *app) moveOne(ctx context.Context, e *engine, out *bufio.Writer, id string, m *machine.Machine, how runner.Moving) error {
	s, err := e.session(ctx, id)
	if err != nil {
		return err
	}
	from := s.Machine().Digest()
	if s, err = e.Move(ctx, s.ID, m, how); err != nil {
		return err
	}
	return a.Moved(out, render.MovedLine{SessionID: s.ID.String(), From: from, To: m.Digest(), CurrentState: wouldStand(s.State.Name, m, how), DryRun: how.DryRun}, s, nil)
}

// wouldStand returns where a session that stands in a state would after a move that is not made;
// "" if it is the same state, or the move is made.
func wouldStand(state string, m *machine.Machine, how runner.Moving) string {
	if !how.DryRun || m.State(state) != nil {
		return ""
	}
	return string(how.States[machine.StateName(state)])
}
