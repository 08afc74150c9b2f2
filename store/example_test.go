package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// What one process has begun another one goes on with: all it needs is the file.
func ExampleOpenSQLite() {
	ctx := context.Background()
	path := filepath.Join(must(os.MkdirTemp("", "dialai")), "relay.db")
	defer os.RemoveAll(filepath.Dir(path))

	inProcess(ctx, path, func(r *runner.Runner) {
		m := must(machine.Parse("relay.json", []byte(relay), runner.Checks()))
		s := must(r.Start(ctx, m, runner.StartOptions{Defaults: true}))
		result := must(r.Run(ctx, s.ID, runner.RunOptions{MaxSteps: 1}))
		fmt.Println(result.Status, "in", result.Session.State.Name, "because of", result.Code)
	})
	inProcess(ctx, path, func(r *runner.Runner) {
		s := must(r.Session(ctx, must(r.Sessions(ctx, session.ListQuery{MachineName: "relay"}))[0].SessionID))
		must(r.Resume(ctx, s.ID, runner.ResumeOptions{Note: "go on"}))
		result := must(r.Run(ctx, s.ID, runner.RunOptions{}))
		fmt.Println(result.Status, "in", result.Session.State.Name, "after", len(result.Session.History()), "transitions")
	})
	// Output:
	// stopped in second because of step_limit
	// completed in third after 2 transitions
}

// relay needs two transitions.
const relay = `{ "machineName": "relay", "initialState": "first", "goalState": "third",
	"states": { "first": { "transitions": { "run": "second" } }, "second": { "transitions": { "pass": "third" } }, "third": {} } }`

// inProcess opens the file, works, and closes it, as a process does.
func inProcess(ctx context.Context, path string, work func(*runner.Runner)) {
	db := must(store.OpenSQLite(ctx, path, store.SQLiteOptions{}))
	defer db.Close()
	r := must(runner.New(runner.Config{Store: db}))
	defer r.Close()
	work(r)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
