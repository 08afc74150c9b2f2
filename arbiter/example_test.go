package arbiter_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

func exampleRound() *arbiter.Round {
	m, err := machine.Parse("review.json", []byte(`{
		"machineName": "review", "initialState": "pending", "goalState": "approved",
		"states": { "pending": { "transitions": { "approve": "approved", "reject": "rejected" } }, "approved": {}, "rejected": { "final": true } } }`), machine.Checks{})
	if err != nil {
		panic(err)
	}
	r := &arbiter.Round{Machine: m, State: m.Initial()}
	for i, v := range []struct {
		who, what string
		weight    exact.Billionths
	}{{"ann", "approve", 200_000_000}, {"bob", "reject", 500_000_000}, {"cem", "approve", 400_000_000}} {
		r.Votes = append(r.Votes, arbiter.Vote{Weight: v.weight, Rank: int32(i),
			Proposal: &specialist.Proposal{SpecialistID: v.who, Transition: r.State.Transition(v.what), Arrival: int32(i + 1)}})
	}
	return r
}

// An arbiter of a program's own is a function of the round.
func ExampleFunc() {
	unanimous := arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		scores := r.Tally(nil)
		if len(scores) != 1 {
			return arbiter.None(fmt.Sprintf("%d transitions were proposed", len(scores))), nil
		}
		return arbiter.Elect(scores[0].Best, "everybody agrees"), nil
	})
	r := exampleRound()
	d, _ := unanimous.Decide(context.Background(), r)
	fmt.Println(d.Consensus(), d.Reasoning())

	r.Votes = r.Votes[:1]
	d, _ = unanimous.Decide(context.Background(), r)
	fmt.Println(d.Consensus(), d.Reasoning(), "on", r.Votes[d.Winner].Transition.Name)
	// Output:
	// false 2 transitions were proposed
	// true everybody agrees on approve
}

// The tally sums weights by transition; Best is whose proposal would win.
func ExampleRound_Tally() {
	r := exampleRound()
	scores := r.Tally(nil)
	for _, s := range scores {
		fmt.Println(s.Transition.Name, s.Sum, "of", s.Count, "best is", r.Votes[s.Best].SpecialistID)
	}
	leader, second := arbiter.Leaders(scores, func(s arbiter.Score) exact.Billionths { return s.Sum })
	fmt.Println(scores[leader].Transition.Name, "leads by", scores[leader].Sum-scores[second].Sum)
	// Output:
	// approve 0.6 of 2 best is cem
	// reject 0.5 of 1 best is bob
	// approve leads by 0.1
}
