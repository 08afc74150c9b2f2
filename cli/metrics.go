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
		Args:              arguments,
		ValidArgsFunction: a.completeMachineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMinutes(minutes); err != nil {
				return err
			}
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				m, err := e.Metrics(cmd.Context(), args[0], state)
				if err != nil {
					return err
				}
				if m.TotalDecisions == 0 {
					if err := e.knows(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				m.Assume(minutes)
				return a.printMetrics(out, m)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only decisions in the state of this `name`")
	cmd.Flags().Float64Var(&minutes, "human-minutes", runner.DefaultHumanMinutes, "how long a human decision takes, in `minutes`")
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
	if m.NoQuorum > 0 {
		fmt.Fprintf(out, "No quorum:     %d of those by humans: too few had answered\n", m.NoQuorum)
	}
	fmt.Fprintf(out, "Without human: %.0f %%, of the last 10 %.0f %%\n", 100*m.CollapseRatio, 100*m.RecentCollapseRatio)
	fmt.Fprintf(out, "Margin:        %.2f on average\n", m.AverageConsensusMargin)
	if m.TotalDecisions > 0 {
		fmt.Fprintf(out, "Asked:         %.1f proposers for a decision, $%s\n", m.AskedPerRound, m.CostPerDecision)
		fmt.Fprintf(out, "Human minutes: %v for %s and %s beside\n", m.HumanMinutes, plural(m.HumanDecisions, "decision"), plural(m.HumanLooks, "look"))
	}
	if len(m.Specialists) > 0 {
		fmt.Fprintln(out)
		rows := [][]string{{"SPECIALIST", "ALIGNMENT", "PROPOSALS", "DECIDED SO", "SHARE"}}
		for _, s := range m.Specialists {
			rows = append(rows, []string{s.SpecialistID, s.Alignment.Text2(), fmt.Sprint(s.TotalProposals), fmt.Sprint(s.WinningProposals), fmt.Sprintf("%.0f %%", 100*s.WinRate)})
		}
		if err := table(out, rows); err != nil {
			return err
		}
		fmt.Fprintf(out, "Alignment is what a vote weighs under alignmentMargin: a lower bound of how often it agrees\nwith humans. %s shows trust, the probability that bayes counts with.\n", a.command("trust list", []string{m.MachineName}))
	}
	if err := printStates(out, m.States); err != nil {
		return err
	}
	for _, s := range m.Signals {
		fmt.Fprintf(out, "\n%s %s: %s", s.Level, s.Code, s.Message)
	}
	if len(m.Signals) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}

// printStates prints promise, coverage and realised error of each state.
func printStates(out io.Writer, states []runner.StateMetrics) error {
	if len(states) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	rows := [][]string{{"STATE", "DECISIONS", "WITHOUT HUMAN", "PROMISE", "TEST", "AUDITS WRONG", "ERROR", "AT MOST", "INDEPENDENT VOTERS"}}
	for i := range states {
		s := &states[i]
		row := []string{s.State, fmt.Sprint(s.TotalDecisions), fmt.Sprintf("%.0f %%", 100*s.Coverage), "-", "-", fmt.Sprintf("%d of %d", s.Wrong, s.Audits), "-", "-", "-"}
		if p := s.Promise; p != nil {
			row[3], row[4] = fmt.Sprintf("error <= %s", p.MaxError), string(s.RiskState)
		}
		if s.Error != nil {
			row[6], row[7] = fmt.Sprintf("%.3f", s.Error.Float()), fmt.Sprintf("%.3f", s.ErrorBound.Float())
		}
		if s.Voters > 0 {
			row[8] = fmt.Sprintf("%.1f of %d", s.NEff.Float(), s.Voters)
		}
		rows = append(rows, row)
	}
	if err := table(out, rows); err != nil {
		return err
	}
	for i := range states {
		if v := states[i].Savings; v != nil && v.Note == "" {
			fmt.Fprintf(out, "\nAsking one after the other in %s: %s (replayed on %s)\n", clean(states[i].State), v.Savings, plural(int(v.Rounds), "round"))
		}
	}
	return nil
}
