package strategies

import (
	"context"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
)

// The default arbiter. With l the weight of the leading transition, r that of the next
// and t that of all proposals, it elects the leader where (l-r)/t reaches the
// threshold. Weights are whole billionths, so the order of proposals cannot change the
// result.
//
// With w the weight of those who have not answered, a round may end before they do:
//
//   - Settled: they cannot change the decision, even if all of w goes to the rival and
//     the margin falls to (l-r-w)/(t+w).
//   - Hopeless: they cannot bring one about, even if all of w goes to the leader and
//     the margin rises to (l-r+w)/(t+w).
//
// Both must be right whatever those answers are, and if none comes: to end early may
// never decide otherwise than waiting would have.

// AlignmentMargin is the default arbiter: the transition whose proposals weigh
// most wins if it is ahead of the next by at least the threshold, as a share of
// all weight. Without a threshold it is 1, unanimity of weighted proposals.
type AlignmentMargin struct{}

var unanimity = machine.Threshold{Given: 1, Weight: exact.One}

// Decide implements [arbiter.Arbiter]. It never fails.
func (a AlignmentMargin) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	return a.decide(r), nil
}

func (AlignmentMargin) decide(r *arbiter.Round) arbiter.Decision {
	threshold := unanimity
	if r.Threshold != nil {
		threshold = *r.Threshold
	}
	d := arbiter.Decision{Winner: arbiter.NoWinner, Threshold: threshold}
	switch {
	case len(r.Votes) == 0:
		d.Rule = arbiter.NoProposals
		return d
	case len(r.Votes) == 1 && threshold.Weight <= exact.One:
		return single(r, d)
	}
	var room [8]arbiter.Score
	scores := r.Tally(room[:0])
	leader, second := arbiter.Leaders(scores, bySum)
	total, runnerUp := totalOf(r.Votes), exact.Billionths(0)
	if total == 0 {
		d.Rule = arbiter.ColdStart
		return d
	}
	if second >= 0 {
		runnerUp = scores[second].Sum
	}
	d.HasMargin, d.Margin = true, exact.Share(scores[leader].Sum-runnerUp, total)
	if d.Margin < threshold.Weight {
		d.Rule = arbiter.MarginBelow
		return d
	}
	d.Rule, d.Winner, d.Subject = arbiter.MarginReached, scores[leader].Best, scores[leader].Transition.Name
	return d
}

// single decides a round with one proposal.
func single(r *arbiter.Round, d arbiter.Decision) arbiter.Decision {
	v := r.Votes[0]
	if r.RequireTrust && !v.IsHuman && v.Weight < trust.Trusted {
		d.Rule, d.Subject, d.Weight = arbiter.Untrusted, v.SpecialistID, v.Weight
		return d
	}
	d.Rule, d.Winner = arbiter.SingleProposal, 0
	d.HasMargin, d.Margin = true, exact.One
	return d
}

func bySum(s arbiter.Score) exact.Billionths { return s.Sum }

func totalOf(votes []arbiter.Vote) (total exact.Billionths) {
	for i := range votes {
		total = exact.Billionths(exact.AddSat(int64(total), int64(votes[i].Weight)))
	}
	return total
}

// Settled implements [arbiter.Stopper]. With l the leader's weight, r the best
// rival's, t the total and w the weight still out, the worst that can happen is
// that all of w goes to the rival: the round is settled if l leads by more than
// that, (l-r-w)/(t+w) still reaches the threshold, and nobody who is out could
// outweigh the winning proposal within its own transition.
func (a AlignmentMargin) Settled(r *arbiter.Round, open []arbiter.Standing) bool {
	var w exact.Billionths
	for _, o := range open {
		w = exact.Billionths(exact.AddSat(int64(w), int64(o.Weight)))
	}
	total := totalOf(r.Votes)
	if total <= w { // no lead can be larger than w
		return false
	}
	d := a.decide(r)
	if !d.Consensus() {
		return false
	}
	winner := r.Votes[d.Winner]
	for _, o := range open {
		if o.Weight > winner.Weight || o.Weight == winner.Weight && o.Rank < winner.Rank {
			return false
		}
	}
	var room [8]arbiter.Score
	scores := r.Tally(room[:0])
	leader, second := arbiter.Leaders(scores, bySum)
	worst := scores[leader].Sum - w
	if second >= 0 {
		worst -= scores[second].Sum
	}
	all := exact.Billionths(exact.AddSat(int64(total), int64(w)))
	return worst > 0 && exact.Share(worst, all) >= d.Threshold.Weight
}

// Hopeless reports whether no answer of those who have not spoken, nor its absence,
// can bring about a consensus: even if all their weight went to the leader, the
// margin would stay below the threshold. With fewer than two proposals it never is,
// since a lone one may win.
func (a AlignmentMargin) Hopeless(r *arbiter.Round, open []arbiter.Standing) bool {
	if len(r.Votes) < 2 {
		return false
	}
	threshold := unanimity
	if r.Threshold != nil {
		threshold = *r.Threshold
	}
	total := totalOf(r.Votes)
	var w exact.Billionths
	for _, o := range open {
		w = exact.Billionths(exact.AddSat(int64(w), int64(o.Weight)))
	}
	var room [8]arbiter.Score
	scores := r.Tally(room[:0])
	leader, second := arbiter.Leaders(scores, bySum)
	best := exact.Billionths(exact.AddSat(int64(scores[leader].Sum), int64(w)))
	if second >= 0 {
		best -= scores[second].Sum
	}
	all := exact.Billionths(exact.AddSat(int64(total), int64(w)))
	return all == 0 || exact.Share(best, all) < threshold.Weight
}

// FirstProposal elects the proposal that came first, whatever it weighs.
type FirstProposal struct{}

// Decide implements [arbiter.Arbiter].
func (FirstProposal) Decide(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	first := arbiter.NoWinner
	for i, v := range r.Votes {
		if first < 0 || v.CreatedAt < r.Votes[first].CreatedAt ||
			v.CreatedAt == r.Votes[first].CreatedAt && v.Arrival < r.Votes[first].Arrival {
			first = i
		}
	}
	if first < 0 {
		return arbiter.Decision{Winner: first, Rule: arbiter.NothingReceived}, nil
	}
	return arbiter.Decision{Winner: first, Rule: arbiter.FirstReceived, Subject: r.Votes[first].SpecialistID}, nil
}

// Settled implements [arbiter.Stopper]: what comes later never comes first.
func (FirstProposal) Settled(r *arbiter.Round, _ []arbiter.Standing) bool { return len(r.Votes) > 0 }
