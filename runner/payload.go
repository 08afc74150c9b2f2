package runner

import (
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// Payloads that transitions ask for.
//
// Where the parameters of a transition are not satisfied by {}, whoever chooses it has
// to say more than its name (legal). Rules and built-in strategies cannot: theirs are
// votes, and what is executed is the heaviest proposal of the same transition that has
// a payload, or nothing (arbiter.Decision.Floor). So a round is not over as long as
// somebody is out who could give the payload of the winner, and a champion that has
// none to give does not decide alone.

// lacksPayload reports whether somebody's proposal in the round is no more than a vote.
func (t *round) lacksPayload(id string) bool {
	p := t.open.Proposal(id)
	return p != nil && p.LacksPayload()
}

// toPay returns whom to ask where the probability is reached, and nobody who proposed
// the pick gave the payload that it needs: the cheapest who could, the first of equals;
// nobody if nobody could, or none is needed.
func (w *engine) toPay(l *trust.Ledger, q trust.Question, due []*planning.Member) []int {
	if !slices.ContainsFunc(w.open.Proposals, (*specialist.Proposal).LacksPayload) {
		return nil
	}
	pick, needed := l.Judge(q).Pick, false
	for _, p := range w.open.Proposals {
		if p.Transition.Name != pick {
			continue
		}
		if needed = p.LacksPayload(); !needed {
			return nil
		}
	}
	best := -1
	for i, m := range due {
		if needed && !m.Source.VotesOnly() && (best < 0 || w.costOf(m) < w.costOf(due[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return []int{best}
}
