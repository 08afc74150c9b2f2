package main

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A custom arbiter is a function that gets the round and elects one of its
// votes, or none.
func Example() {
	registry := strategies.Registry{}.
		WithArbiter("countBased", arbiter.Func(countBased)).
		WithProposer("careful", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			return q.Choose(q.State.Transition("reject"), "I saw a typo"), nil
		}))
	m, err := machine.Parse("review.json", []byte(`{
		"machineName": "review", "initialState": "pending", "goalState": "approved",
		"states": { "pending": { "transitions": { "approve": "approved", "reject": "rejected" } }, "approved": {}, "rejected": { "final": true } },
		"specialists": [
			{ "role": "proposer", "specialistId": "a", "strategyFnName": "firstAvailable" },
			{ "role": "proposer", "specialistId": "b", "strategyFnName": "firstAvailable" },
			{ "role": "proposer", "specialistId": "c", "strategyFnName": "firstAvailable" },
			{ "role": "proposer", "specialistId": "d", "strategyFn": "careful" },
			{ "role": "arbiter", "specialistId": "count", "strategyFn": "countBased" } ] }`), runner.Checks())
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	session, err := r.Start(ctx, m, runner.StartOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tick, err := r.Step(ctx, session.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tick.Status, tick.Session.State.Name)
	fmt.Println(tick.Reasoning())
	// Output:
	// advanced approved
	// Transition "approve" ahead by 2 proposals
}
