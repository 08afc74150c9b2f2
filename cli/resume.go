package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) resumeCommand() *cobra.Command {
	f := &runFlags{}
	var o runner.ResumeOptions
	var raise []string
	cmd := &cobra.Command{
		Use:   "resume <session>",
		Short: "Go on with a session",
		Long: `Run a session on from where it stands: after a crash, a limit of the run, or when
answers may have arrived. What was recorded is not asked for again, and what was
spent stays spent. A session that has completed stays so.

A session that waits for a human because too few have answered (no_quorum), or nobody
has (no_proposals), asks those again who failed in its round; --keep-failed leaves them
alone. What waits for another reason asks them only with --retry-failed.

A session that a guard stopped is judged afresh. If it was stopped because it went
in circles, --clear says that you have looked at it: the guards forget what has
repeated.

If it was stopped by a limit, --raise LIMIT=VALUE lifts that, for this session and
from now on: LIMIT is where a guards section has it, such as budget.hard_limit_usd,
limits.max_steps or tool_calls.blast_radius.TOOL, and VALUE the new limit, which must
be higher. It may be given several times, and again later. Only a human who may
decide in the state can do that, and has to say why; what was spent counts towards
the new limit. What a tenant may use in all is not raised for one session.`,
		Example: `  dialai resume 0b9c1d3e
  dialai resume 0b9c1d3e --retry-failed
  dialai resume 0b9c1d3e --clear --note "it waits for the build, that is fine"
  dialai resume 0b9c1d3e --raise budget.hard_limit_usd=5 --as carol --note "worth it"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Raise, err = parseRaises(raise, o.Note); err != nil {
				return err
			}
			return a.taped(&f.tapeFlags, func() error { return a.resume(cmd.Context(), args[0], o, f) })
		},
	}
	f.add(cmd, false)
	cmd.Flags().BoolVar(&o.RetryFailed, "retry-failed", false, "ask those again who failed in this round, whatever it waits for")
	cmd.Flags().BoolVar(&o.KeepFailed, "keep-failed", false, "ask nobody again who failed in this round")
	cmd.MarkFlagsMutuallyExclusive("retry-failed", "keep-failed")
	cmd.Flags().BoolVar(&o.Clear, "clear", false, "let the guards forget what has repeated")
	cmd.Flags().StringArrayVar(&raise, "raise", nil, "lift a limit of the guards for this session, as `LIMIT=VALUE`")
	cmd.Flags().StringVar((*string)(&o.SpecialistID), "as", "", "the `id` of whoever takes the session up, for the record, beside the user of this computer (default with --raise: the machine's only human)")
	cmd.Flags().StringVar(&o.Note, "note", "", "the `reason`, for the record")
	return cmd
}

// parseRaises reads the limits that --raise names.
func parseRaises(texts []string, note string) (raises []guard.Raise, err error) {
	if len(texts) > 0 && strings.TrimSpace(note) == "" {
		return nil, command.Hinted(command.Usage("--raise needs a --note"), `say why, for the record: --note "worth it"`)
	}
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		if at < 1 {
			return nil, command.Hinted(command.Usage("--raise is %q, not LIMIT=VALUE", text), "such as --raise budget.hard_limit_usd=5")
		}
		raises = append(raises, guard.Raise{Limit: text[:at], To: json.Number(text[at+1:])})
	}
	return raises, nil
}

// raiser says who raises the limits of a session: a human who may decide in it.
func (a *app) raiser(ctx context.Context, e *engine, s *session.Session, o *runner.ResumeOptions) error {
	as, err := a.actor(ctx, e, s, string(o.SpecialistID))
	if o.SpecialistID = machine.SpecialistID(as); err == nil && as == runner.Operator {
		o.Note = fmt.Sprintf("%s (raised by %s)", o.Note, command.OsUser())
	}
	return err
}

func (a *app) resume(ctx context.Context, id string, o runner.ResumeOptions, f *runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	p := a.newPrinter()
	defer p.status.Stop()
	var err error
	if p.shadow, err = a.loadShadow(f.shadow); err != nil {
		return err
	}
	e, err := a.engine(ctx, command.Writes, p)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.session(ctx, id)
	if err != nil {
		return err
	}
	if len(o.Raise) > 0 {
		if err := a.raiser(ctx, e, s, &o); err != nil {
			return err
		}
	}
	o.Actor = command.LocalActor()
	if err := a.loadTape(s); err != nil {
		return err
	}
	p.Follow(s)
	if p.shadow != nil {
		if err := p.shadow.Follow(s, e.Store.Records(ctx, s.ID, 1)); err != nil {
			return err
		}
	}
	if s, err = e.Resume(ctx, s.ID, o); err != nil {
		if refused, ok := errors.AsType[*runner.Error](err); ok && refused.Code == session.BadRaise {
			return command.Fail(command.ExitUsage, err)
		}
		return err
	}
	return a.carryOn(ctx, e, p, s.ID, f)
}
