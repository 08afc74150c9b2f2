package cli

import (
	"bufio"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/runner"
)

func (a *app) forkCommand() *cobra.Command {
	var at int64
	cmd := &cobra.Command{
		Use:   "fork <session>",
		Short: "Make a session that goes on from where another stood",
		Long: `Make a session that goes on from where another one stood, at its newest event or at the
one that --at names, which has to be the last of a commit (dialai log shows them). It
has the definition, the history and the data of the other, and what that had spent counts.
Who has answered in the open round is not asked again, and the round teaches nothing. The
fork does not inherit answers that are still out, reviews, rulings that wait for others,
or what is withheld by now. It inherits executed transitions with their approvals: nobody
is asked for those again, and what follows them is executed in both sessions.

The fork is not run: dialai resume takes it up. The other session stays as it is.`,
		Example: `  dialai fork 0b9c1d3e-…
  dialai fork 0b9c1d3e-… --at 12`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 1 {
				return command.Hinted(command.Usage("--at is %d, not the number of an event", at), "dialai log %s shows the events", args[0])
			}
			return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
				s, err := e.session(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				fork, err := e.Fork(cmd.Context(), s.ID, runner.Forking{At: at, Actor: command.LocalActor()})
				switch {
				case errors.Is(err, runner.ErrIllegal):
					return command.Fail(command.ExitUsage, err)
				case err != nil:
					return err
				}
				return a.Forked(out, fork, e.approved(fork))
			})
		},
	}
	cmd.Flags().Int64Var(&at, "at", 0, "from this `event` of the log, the last of a commit (default: the newest)")
	return cmd
}
