package backtest

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestThresholdsOfAPolicy: what a policy says takes the place of what the machine and its
// states declare, and nothing else does.
func TestThresholdsOfAPolicy(t *testing.T) {
	declared, err := machine.NewThreshold(.5)
	if err != nil {
		t.Fatal(err)
	}
	other, err := machine.NewThreshold(.7)
	if err != nil {
		t.Fatal(err)
	}
	risk, tried := &machine.Risk{}, &machine.Risk{}
	says := func(threshold *machine.Threshold, r *machine.Risk, c *machine.Collapse) string {
		word := func(has bool, what string) string {
			if has {
				return what
			}
			return "-"
		}
		return word(threshold == &declared, "declared") + word(threshold == &other, "tried") + word(r == risk, "risk") + word(r == tried, "tried") + word(c != nil, "collapse")
	}
	for _, c := range []struct {
		what           string
		p              Policy
		machine, state string
	}{
		{"a roster", Policy{Drop: []string{"x"}}, "declared-risk-collapse", "declared-risk-collapse"},
		{"a threshold", Policy{Threshold: &other}, "-tried--collapse", "----collapse"},
		{"a risk", Policy{Risk: tried}, "---triedcollapse", "----collapse"},
		{"bayes", Policy{Arbiter: &machine.Specialist{StrategyFnName: machine.Bayes}}, "declared-risk-collapse", "declared-risk-collapse"},
		{"an arbiter without promises", Policy{Arbiter: &machine.Specialist{StrategyFnName: machine.FirstProposal}}, "declared----", "declared----"},
	} {
		collapse := &machine.Collapse{}
		def := machine.Definition{ConsensusThreshold: &declared, Risk: risk, Collapse: collapse,
			States: []machine.StateDefinition{{ConsensusThreshold: &declared, Risk: risk, Collapse: collapse}}}
		c.p.thresholds(&def)
		s := def.States[0]
		got := fmt.Sprintf("%s, %s", says(def.ConsensusThreshold, def.Risk, def.Collapse), says(s.ConsensusThreshold, s.Risk, s.Collapse))
		if want := c.machine + ", " + c.state; got != want {
			t.Errorf("under %s: %s, want %s", c.what, got, want)
		}
	}
}
