package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// refunds is a machine in which two functions of this program propose.
const refunds = `{
	"machineName": "refunds", "initialState": "asked", "goalState": "closed", "consensusThreshold": 0.5,
	"states": { "asked": { "prompt": "Refund it?", "transitions": { "refund": "closed", "refuse": "closed" } }, "closed": {} },
	"specialists": [
		{ "role": "proposer", "specialistId": "small", "strategyFn": "small" },
		{ "role": "proposer", "specialistId": "strict", "strategyFn": "strict" },
		{ "role": "proposer", "specialistId": "carol", "isHuman": true },
		{ "role": "arbiter", "specialistId": "margin", "strategyFnName": "alignmentMargin" } ] }`

// functions are those the machine names: small refunds small amounts, strict
// refunds nothing.
var functions = strategies.Registry{}.
	WithProposer("small", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		var claim struct{ Amount float64 }
		if err := json.Unmarshal(q.Meta, &claim); err != nil {
			return specialist.Answer{}, err
		}
		if claim.Amount < 100 {
			return q.Choose(q.State.Transition("refund"), "below 100"), nil
		}
		return q.Choose(q.State.Transition("refuse"), "too much"), nil
	})).
	WithProposer("strict", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return q.Choose(q.State.Transition("refuse"), "never"), nil
	}))

// Two functions disagree and have not earned any trust yet, so a human decides.
// The next session needs none: small has been right once, and strict, who has not,
// changes nothing by what it says. It is asked all the same: had it failed, one answer
// of two would be no majority, and a human would decide.
func Example() {
	ctx := context.Background()
	m := must(machine.Parse("refunds.json", []byte(refunds), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory(), Resolver: functions}))
	defer r.Close()

	s := must(r.Start(ctx, m, runner.StartOptions{Meta: []byte(`{"amount": 80}`)}))
	result := must(r.Run(ctx, s.ID, runner.RunOptions{}))
	fmt.Println(result.Status+":", result.Reason)

	ruling := must(r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "refund", Reasoning: "it was broken"}))
	fmt.Println("executed:", ruling.Executed)

	next := must(r.Start(ctx, m, runner.StartOptions{Meta: []byte(`{"amount": 90}`)}))
	fmt.Println(must(r.Run(ctx, next.ID, runner.RunOptions{})).Status)

	for _, d := range must(r.Decisions(ctx, "refunds", "", 0)) {
		fmt.Printf("%s, by a human: %t, because: %s\n", d.TransitionName, d.IsHuman, d.Reasoning)
		fmt.Printf("  asked: %v, proposals: %d, weights: %v\n", d.Asked, len(d.Proposals), d.AlignmentSnapshot)
	}
	// Output:
	// needs_human: Cold start: no alignment data available, human input required
	// executed: true
	// completed
	// refund, by a human: true, because: it was broken
	//   asked: [small strict], proposals: 2, weights: map[small:0 strict:0]
	// refund, by a human: false, because: below 100
	//   asked: [small strict], proposals: 2, weights: map[small:0.206543291 strict:0]
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A truth gate asks a model before anything is published: would it say the same
// again, something else where that would be wrong, and the same where only the
// words differ? The program says who answers for a model's name; here it is a
// model that always agrees, whatever it is asked.
func ExampleConfig_models() {
	ctx := context.Background()
	m := must(machine.Parse("news.json", []byte(`{
		"machineName": "news", "initialState": "draft", "goalState": "published",
		"states": { "draft": { "prompt": "Publish it?", "transitions": { "publish": "published" } }, "published": {} },
		"guards": { "truth": { "model": "yes-man", "when": ["publish"] }, "budget": { "hard_limit_calls": 50, "probe_share_max": 1 } },
		"specialists": [ { "role": "proposer", "specialistId": "desk", "strategyFnName": "firstAvailable" } ] }`), runner.Checks()))
	yes := truth.CompleterFunc(func(_ context.Context, q truth.CompletionRequest) (truth.Completion, error) {
		return truth.Completion{Text: "publish\nChoosing first available transition: publish", Tokens: truth.CountedTokens(40, 8)}, nil
	})
	r := must(runner.New(runner.Config{Store: store.NewMemory(), Resolver: strategies.Registry{}.WithModel("yes-man", yes)}))
	defer r.Close()

	s := must(r.Start(ctx, m, runner.StartOptions{Defaults: true}))
	tick := must(r.Step(ctx, s.ID))
	fmt.Println(tick.Status, tick.Code)
	spent := tick.Session.Spent()
	fmt.Println(spent.Calls, "calls,", spent.TokensIn, "tokens read,", spent.TokensOut, "written")
	// Output:
	// rejected low_sensitivity
	// 7 calls, 280 tokens read, 56 written
}
