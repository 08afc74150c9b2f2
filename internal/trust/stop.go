package trust

import (
	"slices"

	"github.com/dialai/dialai/exact"
)

// A StoppedAt is what a round would have come to, had asking one after the other
// stopped where the probability reached Tau.
type StoppedAt struct {
	Tau  exact.Billionths `json:"tau"`
	P    exact.Billionths `json:"p,omitempty"`
	Pick string           `json:"pick,omitempty"` // "" without votes
}

// Stopped returns the judgement on q, had its votes been asked for as a says, and
// asking stopped where it would have: on those votes alone, see [Ledger.Asked].
func (l *Ledger) Stopped(q Question, cost []exact.Money, a Asking) Judgement {
	asked, stop := l.Asked(q, cost, a)
	all := q.Votes
	q.Votes = nil
	for i, v := range all {
		if v.Human || slices.Contains(asked, i) {
			q.Votes = append(q.Votes, v)
		}
	}
	if q.Partial = len(q.Votes) < len(all); q.Partial {
		q.Stop = stop
	}
	return l.Judge(q)
}

// Stops returns what the promise of q is to be tested on instead of j, the
// judgement on all its votes, at thresholds where asking as a says would have
// stopped at an earlier vote and come to something else. Those above the tau in
// force, by which these votes were asked for, are left out, and so is everything
// that the test does not look at. cost is that of each vote; a.Tau is not looked at.
func (l *Ledger) Stops(q Question, j *Judgement, cost []exact.Money, a Asking) (list []StoppedAt) {
	policy := q.Policy.normal()
	if policy.Promise == nil || j.N < EligibleFrom || j.Best < 0 || len(q.Options) < 2 {
		return nil
	}
	most := exact.One
	if j.Risk != nil && j.Risk.Tau > 0 {
		most = j.Risk.Tau - 1
	}
	p := j.P[j.Best]
	for r := range ladder {
		last := a.Tau
		if a.Tau = max(1, policy.Promise.tauAt(r)); a.Tau > most || r > 0 && a.Tau == last {
			continue
		}
		s := l.Stopped(q, cost, a)
		at := StoppedAt{Tau: a.Tau, Pick: s.Pick}
		if s.Best >= 0 {
			at.P = s.P[s.Best]
		}
		if (p >= at.Tau) != (at.P >= at.Tau) || p >= at.Tau && j.Pick != at.Pick {
			list = append(list, at)
		}
	}
	return list
}
