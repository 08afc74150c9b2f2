package cli

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
)

func (a *app) metricsCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "metrics <machine>",
		Short: "Show how far a machine can do without humans",
		Long: `Show decisions by humans and by consensus, the alignment of every specialist, and
signals, over all sessions of a machine name.`,
		Example: `  dialai metrics document-review
  dialai metrics document-review --state pending --json`,
		Args:              arguments,
		ValidArgsFunction: a.completeMachineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				m, err := e.Metrics(cmd.Context(), args[0], state)
				if err != nil {
					return err
				}
				return a.printMetrics(out, m)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only decisions in the state of this `name`")
	return cmd
}

func (a *app) printMetrics(out io.Writer, m *runner.Metrics) error {
	if a.flags.json {
		return printJSON(out, m)
	}
	fmt.Fprintf(out, "Machine:       %s\n", clean(m.MachineName))
	if m.State != "" {
		fmt.Fprintf(out, "State:         %s\n", clean(m.State))
	}
	fmt.Fprintf(out, "Decisions:     %d (%d by humans, %d by consensus)\n", m.TotalDecisions, m.HumanDecisions, m.AIDecisions)
	fmt.Fprintf(out, "Without human: %.0f %%, of the last 10 %.0f %%\n", 100*m.CollapseRatio, 100*m.RecentCollapseRatio)
	fmt.Fprintf(out, "Margin:        %.2f on average\n", m.AverageConsensusMargin)
	if len(m.Specialists) > 0 {
		fmt.Fprintln(out)
		rows := [][]string{{"SPECIALIST", "ALIGNMENT", "PROPOSALS", "DECIDED SO", "SHARE"}}
		for _, s := range m.Specialists {
			rows = append(rows, []string{s.SpecialistID, s.Alignment.Text2(), fmt.Sprint(s.TotalProposals), fmt.Sprint(s.WinningProposals), fmt.Sprintf("%.0f %%", 100*s.WinRate)})
		}
		if err := table(out, rows); err != nil {
			return err
		}
	}
	for _, s := range m.Signals {
		fmt.Fprintf(out, "\n%s %s: %s", s.Level, s.Code, s.Message)
	}
	if len(m.Signals) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}
