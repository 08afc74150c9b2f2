package cli

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/report"
)

func (a *app) spendCommand() *cobra.Command {
	var q report.SpendQuery
	cmd := &cobra.Command{
		Use:   "spend <machine>",
		Short: "Show what the sessions of a machine have spent",
		Long: `Show what the sessions of a machine have spent, by specialist, by the model that was
charged for, or by day (in UTC), or any of these together: calls, tokens and money, how
many asks were charged as estimated and how many calls had no price, and what of it
guards have spent on questions of their own. An answer that comes late corrects what was
assumed on the day on which it comes.`,
		Example: `  dialai spend triage
  dialai spend triage --by day,specialist --since 2026-07-01 --until 2026-07-31
  dialai spend triage --by total --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.Check(); err != nil {
				return command.Usage("--%v", err)
			}
			return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error {
				list, err := e.spent(cmd.Context(), args[0], q)
				if err != nil {
					return err
				}
				return a.Spent(out, list)
			})
		},
	}
	cmd.Flags().StringVar(&q.By, "by", "", "`what` sums are apart by: specialist, model, day, with commas between, or total (default: specialist)")
	cmd.Flags().StringVar(&q.Since, "since", "", "from this `day` on, such as 2026-01-31")
	cmd.Flags().StringVar(&q.Until, "until", "", "up to this `day`")
	return cmd
}
