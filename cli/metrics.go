package cli

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/report"
)

func (a *app) metricsCommand() *cobra.Command {
	var state string
	var minutes float64
	cmd := &cobra.Command{
		Use:   "metrics <machine>",
		Short: "Show how far a machine can do without humans",
		Long: `Show decisions by humans and by consensus, the alignment of every specialist, and
signals, over all sessions of a machine name. For each state: what is promised, the
share of decisions without a human, and what audits found of these, side by side,
and how many independent voters its specialists are worth. dialai risk says more of
promises.`,
		Example: `  dialai metrics document-review
  dialai metrics document-review --state pending --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMinutes(minutes); err != nil {
				return err
			}
			return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error {
				m, err := e.metrics(cmd.Context(), args[0], state, minutes)
				if err != nil {
					return err
				}
				if m.TotalDecisions == 0 {
					if err := e.knows(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				return a.Metrics(out, m)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only decisions in the state of this `name`")
	cmd.Flags().Float64Var(&minutes, "human-minutes", report.DefaultHumanMinutes, "how long a human decision takes, in `minutes`")
	return cmd
}
