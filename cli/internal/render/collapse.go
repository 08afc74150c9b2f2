package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
)

// Stages prints how far the states of a machine do without humans.
func (st Style) Stages(out io.Writer, list []runner.StateCollapse) error {
	if st.JSON || len(list) == 0 {
		return st.printCollapses(out, list)
	}
	rows := [][]string{{"STATE", "STAGE", "SINCE", "WHY", "CHAMPION", "HUMAN DECISIONS"}}
	for _, s := range list {
		rows = append(rows, []string{s.State, stageText(s), sinceText(s), s.Reason, championText(s), fmt.Sprint(s.Outcomes)})
	}
	return Table(out, rows)
}

// printCollapses prints states as JSON, or that there are none.
func (st Style) printCollapses(out io.Writer, list []runner.StateCollapse) error {
	if st.JSON {
		return Lines(out, list)
	}
	_, err := fmt.Fprintln(out, "No state declares a collapse under bayes: every state ends at consensus.")
	return err
}

func stageText(s runner.StateCollapse) string {
	text := string(s.Stage)
	if s.Frozen {
		text += ", frozen"
	}
	if s.Held {
		text += ", held by " + s.By
	}
	return text
}

func sinceText(s runner.StateCollapse) string {
	if s.Since == 0 {
		return "the beginning"
	}
	return s.Since.String()
}

func championText(s runner.StateCollapse) string {
	if s.Champion == nil {
		return "none"
	}
	return fmt.Sprintf("%s until %s", s.Champion.Certificate.SpecialistID, s.Champion.Certificate.ExpiresAt)
}

// Plans prints what the next stage of each state waits for.
func (st Style) Plans(out io.Writer, list []runner.StateCollapse) error {
	if st.JSON || len(list) == 0 {
		return st.printCollapses(out, list)
	}
	for i, s := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printPlan(out, s); err != nil {
			return err
		}
	}
	return nil
}

func printPlan(out io.Writer, s runner.StateCollapse) error {
	fmt.Fprintf(out, "State %s: %s\n", Clean(s.State), Clean(stageText(s)))
	fmt.Fprintf(out, "  Next: %s\n", nextText(s))
	if len(s.Candidates) > 0 {
		rows := [][]string{{"  CANDIDATE", "AGREED", "AT LEAST", "EVIDENCE", "NEEDED"}}
		for _, c := range s.Candidates {
			rows = append(rows, []string{"  " + c.SpecialistID, agreed(c.K, c.N), c.LowerBound.Text2(), short(c.E), short(c.Bar)})
		}
		if err := Table(out, rows); err != nil {
			return err
		}
	}
	for _, id := range s.Pruned {
		fmt.Fprintf(out, "  %s costs money and tells next to nothing: it could be left out\n", Clean(id))
	}
	if v := s.Saving; v.Rounds >= worthSaying && !v.Worth() {
		fmt.Fprintf(out, "  Asking one after the other saves nothing here: the panel is weak or correlated (%s)\n", Plural(int(v.Rounds), "round"))
	}
	return nil
}

// worthSaying is the number of rounds from which savings say something.
const worthSaying = 50

func nextText(s runner.StateCollapse) string {
	switch {
	case s.Next != "":
		return s.Next + ", at the next step"
	case s.Held:
		return "consensus, after its cool-down"
	case s.Frozen && s.Stage == trust.Consensus:
		return "nothing: it is frozen"
	case s.Stage == trust.Championed:
		return "it goes on until the evidence, the certificate or a human ends it"
	case s.Stage == trust.Consensus:
		return "champion, when a candidate's evidence reaches what is needed"
	case s.Stage == trust.Demoted:
		return "consensus, after its cool-down"
	}
	return "consensus, when its promise is established: dialai risk shows how far that is"
}
