package trust_test

import (
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestWaveTells: where not even everyone together could decide, those who tell next
// to nothing are not asked, but for who is free, who explores, and a ledger that knows
// too little to say.
func TestWaveTells(t *testing.T) {
	early := crowdOutcomes("bar", 300, 12, 2)
	l := add(t, trust.New(), early...)
	q := trust.Question{Machine: "desk", State: "s0", Options: []string{"option 0", "option 1"}}
	out := trust.Asking{Tau: exact.One, Patient: true}
	paid := openVoters(0, 9, equalCost)
	for i := 9; i < 12; i++ {
		o := openVoters(i, i+1, equalCost)[0]
		q.Votes = append(q.Votes, trust.Vote{SpecialistID: o.SpecialistID, Version: "1", Model: o.Model, OptionOrder: o.OptionOrder})
	}
	w := l.Wave(q, paid, out)
	if w.Stop != "" || len(w.Ask) == 0 || len(w.Ask) == 9 {
		t.Fatalf("of 9 are asked %v of %v", w.Ask, w.Information)
	}
	free := -1
	for i := range paid {
		if asked := slices.Contains(w.Ask, i); asked != (w.Information[i] >= 5_000_000) {
			t.Errorf("%d tells %d billionths of a nat, asked %t", i, w.Information[i], asked)
		} else if !asked {
			free = i
		}
	}
	if few := add(t, trust.New(), early[:19]...).Wave(q, paid, out); len(few.Ask) != 9 {
		t.Errorf("after 19 outcomes are asked %v", few.Ask)
	}
	explore := out
	explore.Explore = "seed"
	if all := l.Wave(q, paid, explore); len(all.Ask) != 9 {
		t.Errorf("who explores asks %v", all.Ask)
	}
	mute := []trust.Open{paid[free]}
	if w := l.Wave(q, mute, out); w.Stop != trust.StopCannotReach || w.Ask != nil {
		t.Errorf("one is left who tells nothing, and the wave is %+v", w)
	}
	mute[0].Cost = 0
	if w := l.Wave(q, mute, out); len(w.Ask) != 1 {
		t.Errorf("it is free, and the wave is %+v", w)
	}
	q.Votes = nil
	if w := l.Wave(q, paid, trust.Asking{Tau: 900_000_000}); len(w.Ask) == 0 || len(w.Ask) == 9 || w.Stop != "" {
		t.Errorf("where it could be decided the wave is %+v", w)
	}
}
