package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
)

// Stages prints how far the states of a machine do without humans.
func (st Style) Stages(out io.Writer, states []runner.StateCollapse) error {
	return list(st, out, states, noCollapse, []string{"STATE", "STAGE", "SINCE", "WHY", "CHAMPION", "HUMAN DECISIONS"}, func(s runner.StateCollapse) []string {
		since, champion := Either(s.Since != 0, s.Since.String(), "the beginning"), "none"
		if s.Champion != nil {
			champion = fmt.Sprintf("%s until %s", s.Champion.Certificate.SpecialistID, s.Champion.Certificate.ExpiresAt)
		}
		return []string{string(s.State), stageText(s), since, s.Reason, champion, fmt.Sprint(s.Outcomes)}
	})
}

const noCollapse = "No state declares a collapse under bayes: every state ends at consensus."

func stageText(s runner.StateCollapse) string {
	return string(s.Stage) + When(s.Frozen, ", frozen") + When(s.Held, ", held by "+s.By)
}

// Plans prints what the next stage of each state waits for.
func (st Style) Plans(out io.Writer, states []runner.StateCollapse) error {
	if st.JSON || len(states) == 0 {
		return list(st, out, states, noCollapse, nil, nil)
	}
	for i, s := range states {
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
		err := table(out, []string{"  CANDIDATE", "AGREED", "AT LEAST", "EVIDENCE", "NEEDED"}, s.Candidates, func(c trust.Candidate) []string {
			return []string{"  " + c.SpecialistID, agreed(c.K, c.N), c.LowerBound.Text2(), short(c.E), short(c.Bar)}
		})
		if err != nil {
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
