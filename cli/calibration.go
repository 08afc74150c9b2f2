package cli

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
)

func (a *app) calibrationCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "calibration <machine>",
		Short: "Show whether the probabilities of bayes are what they say",
		Long: `Show, for rounds in which bayes gave its pick a probability before a human spoke, how
often the human chose that pick: in ten bins of that probability, with an interval of
90 % (Clopper and Pearson's), and how far both are apart on average (ECE). Rulings that
were asked for, audits and reviews count, each by one over the probability with which
the round was looked at. Below 30 looks that is not enough to say anything.`,
		Example: `  dialai calibration expense-approval
  dialai calibration expense-approval --state review --json | jq .ece`,
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			c, err := e.calibration(ctx, args[0], state)
			if err != nil {
				return err
			}
			return a.Calibration(out, c)
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only the state of this `name`")
	return cmd
}
