package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/store"
)

// A program starts a session, and a human decides.
func Example() {
	r, err := runner.New(runner.Config{Store: store.NewMemory()})
	if err != nil {
		panic(err)
	}
	at := httptest.NewServer(server.New(server.Config{Tenants: []server.Tenant{{Name: "default", Runner: r}}, Checks: runner.Checks(), Control: control.NewMemory(), Who: server.Local("the key of this computer")}).Handler())
	defer at.Close()

	ctx := context.Background()
	dialai, err := client.New(client.Config{BaseURL: at.URL, Key: "the key of this computer"})
	if err != nil {
		panic(err)
	}
	started, err := dialai.Start(ctx, api.Start{Machine: json.RawMessage(`{
		"machineName": "claims", "initialState": "review", "goalState": "paid",
		"states": {"review": {"prompt": "Pay?", "transitions": {"pay": "paid", "refuse": "refused"}}, "paid": {}, "refused": {"final": true}},
		"specialists": [{"role": "proposer", "specialistId": "carol", "isHuman": true}, {"role": "arbiter", "specialistId": "a", "strategyFnName": "firstProposal"}]}`)}, client.Write{})
	if err != nil {
		panic(err)
	}
	id := started.Session.SessionID
	if _, err := dialai.Run(ctx, id, 0, client.Write{}); err != nil { // dialai serve does that by itself
		panic(err)
	}
	for q, err := range dialai.Inbox(ctx, client.QuestionQuery{Human: "carol"}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(q.Prompt)
		ruled, err := dialai.Decide(ctx, q.SessionID, api.Ruling{TransitionName: "pay", RoundID: q.RoundID, QuestionDigest: q.Digest, SpecialistID: "carol"}, client.Write{})
		if err != nil {
			panic(err)
		}
		fmt.Println(ruled.Session.CurrentState)
	}
	for e, err := range dialai.Events(ctx, id, client.EventQuery{Kinds: []string{"executed", "ended"}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Kind)
	}
	// Output:
	// Pay?
	// paid
	// executed
	// ended
}
