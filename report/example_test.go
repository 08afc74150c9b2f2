package report_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
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

// A human has decided once, as one of the two rules proposed.
func ExampleMetricsOf() {
	ctx := context.Background()
	m := must(machine.Parse("doors.json", []byte(doors), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory()}))
	defer r.Close()
	s := must(r.Start(ctx, m, runner.StartOptions{}))
	must(r.Run(ctx, s.ID, runner.RunOptions{}))
	must(r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "wait"}))

	metrics := must(report.MetricsOf(ctx, r, "doors", ""))
	fmt.Printf("%d of %d decisions by humans\n", metrics.HumanDecisions, metrics.TotalDecisions)
	for _, s := range metrics.Signals {
		fmt.Println(s.Level, s.Code)
	}
	of := must(report.EvaluateAlignment(ctx, r, "doors", "porter", 0))
	fmt.Printf("%s was right in %d of %d rounds\n", of.SpecialistID, of.MatchingTransition, of.Rounds)
	// Output:
	// 1 of 1 decisions by humans
	// warning LOW_ALIGNMENT
	// porter was right in 0 of 1 rounds
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
