package undertaking

import (
	"context"

	"github.com/dialai/dialai/arbiter"
)

// Seats is the arbiter of an undertaking's own states: of the proposals whose authors may make
// that move there, it elects the one that came first. Who may is the table of moves, so a
// worker cannot say of itself that it is lost, or that its check has passed.
type Seats struct{}

// Decide implements [arbiter.Arbiter].
func (Seats) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	first := arbiter.NoWinner
	for i, v := range r.Votes {
		if seated(r, v) && (first < 0 || v.Arrival < r.Votes[first].Arrival) {
			first = i
		}
	}
	if first < 0 {
		return arbiter.Decision{Winner: first, Rule: arbiter.NothingReceived}, nil
	}
	return arbiter.Decision{Winner: first, Rule: arbiter.FirstReceived, Subject: r.Votes[first].SpecialistID}, nil
}

// Settled implements [arbiter.Stopper]: what comes later never comes first.
func (Seats) Settled(r *arbiter.Round, _ []arbiter.Standing) bool {
	for _, v := range r.Votes {
		if seated(r, v) {
			return true
		}
	}
	return false
}

// seated reports whether the author of a vote may make its move.
func seated(r *arbiter.Round, v arbiter.Vote) bool {
	return v.IsHuman || mayMove(r.State.Name, v.SpecialistID, v.Transition.Name)
}
