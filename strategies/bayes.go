package strategies

import (
	"context"

	"github.com/dialai/dialai/arbiter"
)

// Bayes weighs every vote by what the recorded outcomes say of its author, and
// decides alone only where they support the promise that is in force, or the
// threshold. A round without [arbiter.Evidence] is left to a human.
type Bayes struct{}

// Decide implements [arbiter.Arbiter].
func (Bayes) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	switch {
	case len(r.Votes) == 0 && (r.Evidence == nil || r.Evidence.Question.Stop == ""):
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.NoProposals}, nil
	case r.Evidence == nil:
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.ColdStart}, nil
	}
	j := r.Evidence.Ledger.Judge(r.Evidence.Ask(r))
	return arbiter.Judged(&j), nil
}

// Settled implements [arbiter.Stopper]: never, since every answer teaches and
// moves a probability. Asking in waves has stop rules of its own.
func (Bayes) Settled(*arbiter.Round, []arbiter.Standing) bool { return false }
