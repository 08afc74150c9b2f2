package render

import (
	"fmt"
	"io"
	"slices"

	"github.com/dialai/dialai/report"
)

// measured says of how many words of humans it is known how long they took.
func measured(some, all int) string {
	return When(some > 0, fmt.Sprintf(" (%d of %d measured)", some, all))
}

// Metrics prints how far a machine can do without humans.
func (st Style) Metrics(out io.Writer, m *report.Metrics) error {
	if st.JSON {
		return JSON(out, m)
	}
	fmt.Fprintf(out, "Machine:       %s\n", Clean(m.MachineName))
	if m.State != "" {
		fmt.Fprintf(out, "State:         %s\n", Clean(m.State))
	}
	fmt.Fprintf(out, "Decisions:     %d (%d by humans, %d by consensus)\n", m.TotalDecisions, m.HumanDecisions, m.AIDecisions)
	if m.NoQuorum > 0 {
		fmt.Fprintf(out, "No quorum:     %d of those by humans: too few had answered\n", m.NoQuorum)
	}
	fmt.Fprintf(out, "Without human: %.0f %%%s\n", 100*m.CollapseRatio, When(m.RecentDecisions > 0, fmt.Sprintf(", of the last %d %.0f %%", m.RecentDecisions, 100*m.RecentCollapseRatio)))
	fmt.Fprintf(out, "Margin:        %.2f on average\n", m.AverageConsensusMargin)
	if m.TotalDecisions > 0 {
		fmt.Fprintf(out, "Asked:         %.1f proposers for a decision, $%s\n", m.AskedPerRound, m.CostPerDecision)
		fmt.Fprintf(out, "Human minutes: %v for %s and %s beside%s\n", m.HumanMinutes, Plural(m.HumanDecisions, "decision"), Plural(m.HumanLooks, "look"), measured(m.HumanMeasured, m.HumanDecisions+m.HumanLooks))
	}
	if len(m.Specialists) > 0 {
		fmt.Fprintln(out)
		err := table(out, []string{"SPECIALIST", "ALIGNMENT", "PROPOSALS", "DECIDED SO", "SHARE"}, m.Specialists, func(s report.SpecialistMetrics) []string {
			return []string{s.SpecialistID, s.Alignment.Text2(), fmt.Sprint(s.TotalProposals), fmt.Sprint(s.WinningProposals), fmt.Sprintf("%.0f %%", 100*s.WinRate)}
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Alignment is what a vote weighs under alignmentMargin: a lower bound of how often it agrees\nwith humans. Share is how many of its proposals were decided so, by whomever; nothing is\nweighed by it. %s shows trust, the probability that bayes counts with.\n", st.Command("trust list", []string{m.MachineName}))
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
func printStates(out io.Writer, states []report.StateMetrics) error {
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
	if err := Table(out, rows); err != nil {
		return err
	}
	if slices.ContainsFunc(states, func(s report.StateMetrics) bool { return s.Voters > 0 }) {
		fmt.Fprintln(out, "INDEPENDENT VOTERS is of all who can be asked, if they proposed the same: dialai explain says what the\nvotes of one round were worth.")
	}
	for i := range states {
		if v := states[i].Savings; v != nil && v.Note == "" {
			fmt.Fprintf(out, "\nAsking one after the other in %s: %s (replayed on %s)\n", Clean(states[i].State), v.Savings, Plural(int(v.Rounds), "round"))
		}
	}
	return nil
}
