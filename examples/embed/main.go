// Command embed decides about a purchase: a Go function proposes, and a human rules.
package main

import (
	"context"
	"fmt"

	"github.com/dialai/dialai"
)

const purchase = `{"machineName": "purchase", "initialState": "open", "goalState": "closed",
	"states": {"open": {"prompt": "Buy it?", "transitions": {"buy": {"target": "closed", "irreversible": true}, "decline": "closed"}}, "closed": {}},
	"specialists": [{"role": "proposer", "specialistId": "budget", "strategyFn": "withinBudget"},
		{"role": "proposer", "specialistId": "carol", "isHuman": true}, {"role": "arbiter", "specialistId": "first", "strategyFnName": "firstProposal"}]}`

func withinBudget(_ context.Context, r dialai.Request) (dialai.Answer, error) {
	return dialai.Answer{TransitionName: "buy", Reasoning: "within the budget"}, nil
}

func main() {
	ctx := context.Background()
	engine := must(dialai.Open(ctx, dialai.Options{Proposers: map[string]dialai.ProposerFunc{"withinBudget": withinBudget}}))
	defer engine.Close()
	session := must(engine.Start(ctx, must(dialai.Parse("purchase.json", []byte(purchase))), map[string]any{"amount": 1200}))
	session = must(engine.Run(ctx, session.ID))
	question := must(engine.Inbox(ctx, "carol"))[0]
	fmt.Println(session.Status, question.Prompt, string(question.Facts.Input))
	session = must(engine.Decide(ctx, question.Choose("carol", "buy")))
	fmt.Println(session.Status, "by", session.Last().SpecialistID)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
