package explain_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// doors is a machine with two rules that never agree, and a human.
const doors = `{
	"machineName": "doors", "initialState": "shut", "goalState": "open",
	"states": { "shut": { "prompt": "Open it?", "transitions": { "open": "open", "wait": "shut" } }, "open": {} },
	"specialists": [
		{ "role": "proposer", "specialistId": "porter", "strategyFnName": "firstAvailable" },
		{ "role": "proposer", "specialistId": "guard", "strategyFnName": "lastAvailable" },
		{ "role": "proposer", "specialistId": "carol", "isHuman": true },
		{ "role": "arbiter", "specialistId": "margin", "strategyFnName": "alignmentMargin", "threshold": 0.5 } ] }`

// Neither rule has been right yet, so a human decides, and the explanation says what
// would have changed that.
func ExampleRound() {
	ctx := context.Background()
	m := must(machine.Parse("doors.json", []byte(doors), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory()}))
	defer r.Close()
	s := must(r.Start(ctx, m, runner.StartOptions{}))
	must(r.Run(ctx, s.ID, runner.RunOptions{}))
	must(r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "wait"}))

	why := must(explain.Round(ctx, r, s.ID, "1"))
	fmt.Println(why.Human.Reason)
	fmt.Printf("%s said %s with weight %s; %s chose %s\n", why.Votes[0].SpecialistID, why.Votes[0].Transition, why.Votes[0].Weight, why.Ruling.HumanID, why.Ruling.Transition)
	d := why.Changes.Distance
	fmt.Printf("%s more behind %q would have decided %q\n", d.Weight, d.For, d.To)
	// Output:
	// Cold start: no alignment data available, human input required
	// porter said open with weight 0; carol chose wait
	// 0.000000001 more behind "open" would have decided "open"
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
