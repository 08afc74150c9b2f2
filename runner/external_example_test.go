package runner_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// reviewers are behind an address that takes its time.
type reviewers struct{ strategies.Resolvers }

func (reviewers) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	return specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		fmt.Println(q.Self, "is asked:", q.State.Prompt)
		return specialist.Answer{TransitionName: "publish", Reasoning: "it is good"}, nil
	}), nil
}

// A cron job drives sessions: whatever starts it takes every session on as far as that goes
// without a wait of more than half a minute, and sends what takes longer by another job, or
// later. Nothing runs in between, and nothing is lost if a job is.
func ExampleRunner_Advance() {
	ctx := context.Background()
	m := must(machine.Parse("article.json", []byte(`{
		"machineName": "article", "initialState": "draft", "goalState": "published", "consensusThreshold": 0,
		"states": { "draft": { "prompt": "Is it ready?", "transitions": { "publish": "published", "drop": "dropped" } }, "dropped": {}, "published": {} },
		"specialists": [
			{ "role": "proposer", "specialistId": "reviewer", "strategyWebhookUrl": "https://review.example/", "webhookTokenName": "REVIEW_TOKEN", "timeout": "10m" },
			{ "role": "arbiter", "specialistId": "first", "strategyFnName": "firstProposal" } ] }`), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory(), Resolver: reviewers{}}))
	defer r.Close()
	s := must(r.Start(ctx, m, runner.StartOptions{}))

	slow := func(a runner.ExternalAsk) bool { return a.Timeout > 30*time.Second }
	job := func() []runner.ExternalAsk { // each minute
		p := must(r.Advance(ctx, s.ID, runner.AdvanceOptions{External: slow}))
		fmt.Println(p.Status)
		return p.Asks
	}
	asks := job()
	for _, a := range asks { // a job of its own, on any computer
		if err := r.Ask(ctx, a.AskRef); err != nil {
			fmt.Println(err)
		}
	}
	job()
	// Output:
	// waiting
	// reviewer is asked: Is it ready?
	// completed
}
