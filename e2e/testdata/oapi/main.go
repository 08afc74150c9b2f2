// A client that oapi-codegen has made of docs/openapi.json, in client.gen.go: it starts a session,
// looks at its question, rules, and prints what it met as JSON.
//
//	go run . http://… KEY MACHINE TRANSITION
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := NewClientWithResponses(args[0], WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+args[1])
		return nil
	}))
	if err != nil {
		return err
	}
	wait, key := "20s", "only-once"
	started, err := c.StartSessionWithResponse(ctx, &StartSessionParams{Wait: &wait, IdempotencyKey: &key}, Start{Machine: json.RawMessage(args[2])})
	if err != nil {
		return err
	}
	if started.JSON201 == nil {
		return fmt.Errorf("start: %s", started.Body)
	}
	id := started.JSON201.Session.SessionId
	inbox, err := c.ListInboxWithResponse(ctx, &ListInboxParams{})
	if err != nil {
		return err
	}
	if inbox.JSON200 == nil {
		return fmt.Errorf("inbox: %s", inbox.Body)
	}
	var q *Item
	for _, item := range inbox.JSON200.Items {
		if item.SessionId == id {
			q = &item
		}
	}
	if q == nil {
		return errors.New("the question is not in the inbox")
	}
	word, old := Ruling{TransitionName: args[3], RoundId: &q.RoundId, QuestionDigest: &q.Digest}, "sha256:0"
	stale := word
	stale.QuestionDigest = &old
	refused, err := c.DecideWithResponse(ctx, id, &DecideParams{}, stale)
	if err != nil {
		return err
	}
	if refused.ApplicationproblemJSON409 == nil {
		return fmt.Errorf("an old digest: %s", refused.Body)
	}
	ruled, err := c.DecideWithResponse(ctx, id, &DecideParams{Wait: &wait}, word)
	if err != nil {
		return err
	}
	if ruled.JSON200 == nil {
		return fmt.Errorf("ruling: %s", ruled.Body)
	}
	choices := []string{}
	for _, t := range q.Transitions {
		choices = append(choices, t.Name)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"choices": choices, "refused": refused.ApplicationproblemJSON409.Code, "executed": ruled.JSON200.Arbitration.Executed,
		"status": ruled.JSON200.Session.Status, "state": ruled.JSON200.Session.CurrentState,
	})
}
