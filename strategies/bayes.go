package strategies

import (
	"context"

	"github.com/dialai/dialai/arbiter"
)

// Bayes weighs every vote by what the recorded outcomes say of its author, and
// decides alone only where they say enough. Without recorded outcomes it leaves
// every round to a human.
type Bayes struct{}

// Decide implements [arbiter.Arbiter].
func (Bayes) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	if len(r.Votes) == 0 {
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.NoProposals}, nil
	}
	return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.ColdStart}, nil
}

// Settled implements [arbiter.Stopper].
func (Bayes) Settled(*arbiter.Round, []arbiter.Standing) bool { return false }
