package cli

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
)

func (a *app) riskCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "risk <machine>",
		Short: "Show what a machine promises, and what came of it",
		Long: `Show every promise of a machine beside what came of it: how far its test has come,
the probability from which bayes decides, the share of decisions without a human,
what audits of these found, and how often humans err themselves. What such figures
do not show is printed with them.`,
		Example: `  dialai risk expense-approval
  dialai risk expense-approval --json | jq '.promises[].error'`,
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			r, err := e.risks(ctx, args[0])
			switch {
			case err != nil:
				return err
			case a.Flags.JSON:
				return render.JSON(out, r)
			}
			waiting := 0
			for sum, err := range e.each(ctx, session.ListQuery{MachineName: args[0], Reviews: true}) {
				if err != nil {
					return err
				}
				waiting += sum.Reviews
			}
			return a.Risks(out, r, waiting)
		}),
	}
}
