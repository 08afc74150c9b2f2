// Command minimal is dialai with one proposer written in Go.
package main

import (
	"context"
	"os"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

func main() {
	registry := strategies.Registry{}.WithProposer("shortest", specialist.ProposerFunc(shortest))
	os.Exit(cli.Main(context.Background(), registry, os.Args[1:]))
}

// shortest proposes the transition with the shortest name.
func shortest(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	best := q.Transitions()[0]
	for _, t := range q.Transitions() {
		if len(t.Name) < len(best.Name) {
			best = t
		}
	}
	return q.Choose(best, "the shortest name wins"), nil
}
