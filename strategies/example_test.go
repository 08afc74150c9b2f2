package strategies_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A Registry gives names to a program's own strategies: machine files use them
// as strategyFn and contextFn.
func ExampleRegistry() {
	registry := strategies.Registry{}.
		WithProposer("cautious", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			for _, t := range q.Transitions() {
				if !t.Irreversible {
					return q.Choose(t, "it can be undone"), nil
				}
			}
			return specialist.Answer{}, fmt.Errorf("nothing in %q can be undone", q.State.Name)
		})).
		WithArbiter("unanimous", arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
			if scores := r.Tally(nil); len(scores) == 1 {
				return arbiter.Elect(scores[0].Best, "nobody objects"), nil
			}
			return arbiter.None("not unanimous"), nil
		})).
		WithContext("ticket", specialist.ContextFunc(func(_ context.Context, q specialist.Question) (string, error) {
			return "The ticket: " + string(q.Meta), nil
		}))

	m, err := machine.Parse("mail.json", []byte(`{
		"machineName": "mail", "initialState": "draft", "goalState": "sent",
		"states": { "draft": { "transitions": { "send": { "target": "sent", "irreversible": true }, "edit": "draft" } }, "sent": {} } }`), machine.Checks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cautious, _ := registry.Proposer(m, &machine.Specialist{StrategyFn: "cautious"}, nil)
	answer, err := cautious.Propose(context.Background(), specialist.Question{Machine: m, State: m.Initial()})
	fmt.Println(answer.TransitionName, answer.Reasoning, err)
	arbiter, err := registry.Arbiter(m, &machine.Specialist{StrategyFn: "cautious"})
	fmt.Println(arbiter, err)
	// Output:
	// edit it can be undone <nil>
	// <nil> <nil>
}

// The default arbiter weighs proposals by the trust that their authors earned.
func ExampleAlignmentMargin() {
	m, err := machine.Parse("review.json", []byte(`{
		"machineName": "review", "initialState": "pending", "goalState": "approved", "consensusThreshold": 0.5,
		"states": { "pending": { "transitions": { "approve": "approved", "reject": "approved" } }, "approved": {} } }`), machine.Checks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &arbiter.Round{Machine: m, State: m.Initial(), Threshold: m.Initial().Threshold}
	vote := func(who, what string, weight exact.Billionths) {
		r.Votes = append(r.Votes, arbiter.Vote{Weight: weight, Proposal: &specialist.Proposal{SpecialistID: who, Transition: r.State.Transition(what)}})
	}
	vote("senior", "reject", 800_000_000)
	vote("junior", "approve", 300_000_000)
	d, _ := strategies.AlignmentMargin{}.Decide(context.Background(), r)
	fmt.Println(d.Consensus(), d.Reasoning())

	vote("tester", "reject", 700_000_000)
	d, _ = strategies.AlignmentMargin{}.Decide(context.Background(), r)
	fmt.Println(d.Consensus(), d.Reasoning())
	// Output:
	// false Alignment-weighted margin 0.45 below threshold 0.5
	// true Alignment-weighted margin 0.67 >= threshold 0.5 (leader: reject)
}

// A round is settled once nobody who is still to answer can change it.
func ExampleAlignmentMargin_Settled() {
	r := &arbiter.Round{Machine: desk, State: desk.Initial(), Votes: []arbiter.Vote{vote("a", 800_000_000, 0), vote("a", 700_000_000, 1)}}
	half, _ := machine.NewThreshold(0.5)
	r.Threshold = &half
	for _, open := range []exact.Billionths{900_000_000, 300_000_000} {
		fmt.Println(open, strategies.AlignmentMargin{}.Settled(r, []arbiter.Standing{{Weight: open, Rank: 2}}))
	}
	// Output:
	// 0.9 false
	// 0.3 true
}

// Rules of a line or two need no code: they are expressions in the file.
func ExampleCheckExpression() {
	for _, source := range []string{
		`= metaJson.amount < 100 ? "approve" : "review"`,
		`= metaJson.amount < 100 ? "aprove" : "review"`,
		`= metaJson.amount <`,
		`= visits + 1`,
	} {
		fmt.Println(strategies.CheckExpression(machine.Proposer, source, []string{"approve", "review"}))
	}
	// Output:
	// <nil>
	// the expression yields "aprove", which is no transition of a state it serves (approve, review)
	// at character 18 of the expression: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
	// the expression yields int, not the name of a transition
}

// An arbiter's expression sees counts and weights, and yields a transition or
// none.
func ExampleRegistry_Arbiter() {
	majority, err := strategies.Registry{}.Arbiter(nil, &machine.Specialist{StrategyFn: `= aheadBy >= 1 ? leader : none`})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &arbiter.Round{Machine: desk, State: desk.Initial(), Votes: []arbiter.Vote{vote("a", 0, 0), vote("b", 0, 1)}}
	d, _ := majority.Decide(context.Background(), r)
	fmt.Println(d.Consensus())
	r.Votes = append(r.Votes, vote("b", 0, 2))
	d, _ = majority.Decide(context.Background(), r)
	fmt.Println(d.Consensus(), r.Votes[d.Winner].Transition.Name)
	// Output:
	// false
	// true b
}

func ExampleFirstAvailable() {
	answer, _ := strategies.FirstAvailable.Propose(context.Background(), specialist.Question{Machine: desk, State: desk.Initial()})
	fmt.Println(answer.TransitionName, "-", answer.Reasoning)
	// Output: a - Choosing first available transition: a
}
