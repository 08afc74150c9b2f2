package control_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/control"
)

// A request that is sent twice has one effect: the second time it is given the answer of the
// first.
func ExampleStore() {
	ctx, store := context.Background(), control.NewMemory()
	started := 0
	request := control.Receipt{
		Key:  control.ReceiptKey{Tenant: "default", Subject: "key:abc", Method: "POST", Path: "/v1/sessions", Key: "order-17"},
		Body: control.HashOf(`{"machineName":"claims"}`),
		At:   1767225600000,
	}
	for range 2 {
		entry := control.Entry{At: request.At, RequestID: "r1", Subject: request.Key.Subject, Operation: "startSession"}
		begun, err := store.Begin(ctx, request, entry)
		if err != nil {
			fmt.Println(err) // control.ErrInProgress or control.ErrKeyReused, for example
			return
		}
		if begun.Answer != nil {
			fmt.Println("again:", begun.Answer.Status, begun.Answer.Location)
			continue
		}
		started++ // if begun.Resumed it may be there already, under the id request.Key.ID()
		answer := control.Answer{Status: 201, Location: "/v1/sessions/" + request.Key.ID().String()}
		entry.Result = "201"
		if err := store.Commit(ctx, control.Changes{End: &control.End{Key: request.Key, Answer: &answer}, Entries: []control.Entry{entry}}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("first:", answer.Status, answer.Location)
	}
	fmt.Println("started:", started)
	// Output:
	// first: 201 /v1/sessions/d1fca6ed-ff81-892a-ad42-e162016ecbd4
	// again: 201 /v1/sessions/d1fca6ed-ff81-892a-ad42-e162016ecbd4
	// started: 1
}
