package cli

import (
	"bufio"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
)

func (a *app) collapseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "collapse",
		Short: "Show the stage of each state, demote or freeze it",
		Long: `A state that declares a collapse goes from humans (calibrating) to the panel
(consensus) to one specialist that decides alone (champion), as evidence grows, and
back at once when it fails. Here is where each state stands, what is missing, and
how a human sends one back.`,
		Example: `  dialai collapse status triage
  dialai collapse plan triage pending
  dialai collapse demote triage pending --as carol`,
	}
	cmd.AddCommand(
		a.collapsed("status", "Show the stage of each state",
			"Show the stage of each state that declares a collapse, since when, why, and its\nchampion.", "  dialai collapse status triage",
			render.Style.Stages),
		a.collapsed("plan", "Show what is missing for the next stage",
			"Show, for each state that declares a collapse, what the next stage waits for: the\nevidence of each candidate, and whom it does not pay to ask.", "  dialai collapse plan triage pending",
			render.Style.Plans),
		a.demoteCommand("Send a state back, at once",
			"Have everybody asked again in a state. From consensus it goes back to humans, who\ndecide until its cool-down is over.",
			"  dialai collapse demote triage pending --as carol"),
		a.collapseFreezeCommand())
	return cmd
}

// collapsed runs a command that looks at the states of a machine.
func (a *app) collapsed(name, short, long, example string, show func(render.Style, io.Writer, []runner.StateCollapse) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " <machine> [<state>]", Short: short, Long: long, Example: example,
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			list, err := e.collapses(ctx, args[0], append(args, "")[1])
			if err != nil {
				return err
			}
			return show(a.Style, out, list)
		}),
	}
}

func (a *app) collapseFreezeCommand() *cobra.Command {
	f := &orderFlags{}
	var release bool
	cmd := &cobra.Command{
		Use:   "freeze <machine> <state>",
		Short: "Keep anybody from becoming champion of a state",
		Long: `Keep a state from going further: nobody is promoted any more. Who is champion stays
it; dialai collapse demote ends that. --release lets the state go on.`,
		Example: "  dialai collapse freeze triage pending --as carol\n  dialai collapse freeze triage pending --release",
		RunE: func(cmd *cobra.Command, args []string) error {
			done := render.Either(release, "State %s may go on.", "State %s is frozen.")
			return a.order(cmd, args[0], args[1], f, func(e *engine, o runner.Order) error { return e.Freeze(cmd.Context(), o, !release) }, done, render.Clean(args[1]))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&release, "release", false, "let it go on")
	return cmd
}
