package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) specialistsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "specialists <machine>",
		Short: "List or switch the specialists of a machine",
		Long: `List the specialists registered for a machine name, its champions, and who is
switched off. A specialist that is off is not asked, not counted and does not
decide, in any session of that machine; its alignment is kept.`,
		Example: `  dialai specialists triage
  dialai specialists disable triage ai-router
  dialai specialists enable triage ai-router`,
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			roster, err := e.roster(ctx, args[0])
			if err != nil {
				return err
			}
			if len(roster) == 0 {
				if err := e.knows(ctx, args[0]); err != nil {
					return err
				}
			}
			return a.Roster(out, roster)
		}),
	}
	cmd.AddCommand(
		a.switchCommand("enable", "Switch a specialist on again", true),
		a.switchCommand("disable", "Switch a specialist off", false),
	)
	return cmd
}

func (a *app) switchCommand(name, short string, on bool) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: name + " <machine> <specialist>", Short: short,
		Long:    short + ", for every session of a machine of that name.\nWho did it is recorded; dialai log --machine shows it.",
		Example: "  dialai specialists " + name + " triage ai-router\n  dialai specialists " + name + ` triage ai-router --reasoning "answers after a minute"`,
		RunE: a.on(command.Writes, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			err := e.Switch(ctx, args[0], machine.SpecialistID(args[1]), runner.Switching{On: on, Reason: why, Actor: *command.LocalActor()})
			if err == nil && on {
				err = a.warnDisabled(ctx, e, args[0], args[1])
			}
			switch {
			case err != nil || a.Flags.Quiet:
				return err
			case a.Flags.JSON:
				roster, err := e.roster(ctx, args[0])
				if err != nil {
					return err
				}
				shown := &api.Specialist{SpecialistID: args[1]}
				if i := slices.IndexFunc(roster, func(s *api.Specialist) bool { return s.SpecialistID == args[1] }); i >= 0 {
					shown = roster[i]
				}
				return render.JSON(out, shown)
			}
			_, err = fmt.Fprintf(out, "%s is %sd in machine %s.\n", render.Clean(args[1]), name, render.Clean(args[0]))
			return err
		}),
	}
	cmd.Flags().StringVar(&why, "reasoning", "", "the `reason`, for the record")
	return cmd
}

// warnDisabled says on stderr that somebody stays off whom a definition itself disables.
func (a *app) warnDisabled(ctx context.Context, e *engine, machineName, id string) error {
	definitions, err := e.definitions(ctx, machineName)
	if err != nil {
		return err
	}
	for _, d := range definitions {
		m, err := machine.Parse(machineName+".json", d, session.StoredChecks())
		if err != nil {
			return err
		}
		list := slices.Clone(m.Specialists())
		for i := range m.States() {
			list = append(list, m.States()[i].Roster...)
		}
		if slices.ContainsFunc(list, func(s machine.Specialist) bool { return s.SpecialistID == id && s.Off() }) {
			fmt.Fprintf(a.Err, "warning: a machine file of %s itself disables %s, and this does not change that\n    hint: remove it from the file, then start a new session: those that run keep their file\n", render.Clean(machineName), render.Clean(id))
			return nil
		}
	}
	return nil
}
