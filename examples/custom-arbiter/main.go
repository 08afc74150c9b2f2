// Command custom-arbiter is dialai with one arbiter of its own: it keeps every
// command, and machine files may name countBased.
//
//	go run ./examples/custom-arbiter machines/custom-arbiter.json
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/strategies"
)

func main() {
	registry := strategies.Registry{}.WithArbiter("countBased", arbiter.Func(countBased))
	os.Exit(cli.Main(context.Background(), registry, os.Args[1:]))
}

// lead is by how many proposals a transition must be ahead.
const lead = 2

// countBased elects the transition that most proposals name, if it is the only
// one or ahead of the next by lead. Weights play no part.
func countBased(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	scores := r.Tally(nil)
	first, second := -1, -1
	for i := range scores {
		switch {
		case first < 0 || scores[i].Count > scores[first].Count:
			first, second = i, first
		case second < 0 || scores[i].Count > scores[second].Count:
			second = i
		}
	}
	if first < 0 {
		return arbiter.None("No transition alignment margin proposals yet"), nil
	}
	ahead := scores[first].Count
	if second >= 0 {
		ahead -= scores[second].Count
		if ahead < lead {
			return arbiter.None("No transition alignment margin proposals yet"), nil
		}
	}
	winner := scores[first]
	return arbiter.Elect(winner.Best, fmt.Sprintf("Transition %q ahead by %d proposals", winner.Transition.Name, ahead)), nil
}
