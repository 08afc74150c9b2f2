package specialist_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// A proposer is a function of a question.
func ExampleProposerFunc() {
	small := specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		var claim struct{ Amount float64 }
		if err := json.Unmarshal(q.Meta, &claim); err != nil {
			return specialist.Answer{}, err
		}
		if claim.Amount < 100 {
			return q.Choose(q.State.Transition("z"), "below the limit"), nil
		}
		return specialist.Answer{TransitionName: "a", Reasoning: "somebody should look at it"}, nil
	})
	for _, meta := range []string{`{"amount": 80}`, `{"amount": 800}`, `{"amount": "80"}`} {
		answer, err := small.Propose(context.Background(), specialist.Question{State: desk.Initial(), Meta: json.RawMessage(meta)})
		fmt.Printf("%q %q %t\n", answer.TransitionName, answer.Reasoning, err != nil)
	}
	// Output:
	// "z" "below the limit" false
	// "a" "somebody should look at it" false
	// "" "" true
}

// The ids of a round follow from its session and number: nobody draws or stores
// them, and everybody finds the same.
func ExampleRoundKey() {
	key := specialist.RoundKey{Session: session, Round: 1}
	fmt.Println(key.ID())
	fmt.Println(key.ProposalID(1))
	key.Attempt++ // a guard had the round asked again
	fmt.Println(key.ID() == specialist.RoundKey{Session: session, Round: 1}.ID())
	// Output:
	// 42dd4eeb-9e0f-8127-91b9-d8a3e9364a8e
	// 3989f99a-43ef-8450-b29c-941a1309fed9
	// false
}

// This is what a webhook is sent.
func ExampleQuestion_AppendContext() {
	q := specialist.Question{Key: specialist.RoundKey{Session: session, Round: 1}, Machine: desk, State: desk.Initial(), Past: past{}, Meta: json.RawMessage(`{"amount":80}`)}
	fmt.Println(string(q.AppendContext(nil, true)))
	// Output: {"sessionId":"f81d4fae-7dec-41d0-a765-00a0c91e6bf6","currentState":"open","prompt":"Which \"way\"?","transitions":{"z":{"target":"done","description":"for good","parameters":{"type":"object","required":["why"]},"metaJsonRequired":true,"irreversible":true},"a":{"target":"open"}},"history":[],"metaJson":{"amount":80},"exemplars":[]}
}
