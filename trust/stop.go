package trust

import "github.com/dialai/dialai/exact"

// A StoppedAt is what a round would have come to, had asking one after the other
// stopped where the probability reached Tau.
type StoppedAt struct {
	Tau  exact.Billionths `json:"tau"`
	P    exact.Billionths `json:"p,omitempty"`
	Pick string           `json:"pick,omitempty"` // "" without votes
}

// Stopped returns the judgement on q, had its votes been asked for as a says, and
// asking stopped where it would have: on those votes alone. Votes of humans were
// there from the start. costs are those of asking for each vote, as Open.Cost; nil
// stands for nothing but 0.
func (l *Ledger) Stopped(q Question, costs []exact.Money, a Asking) Judgement {
	all := q.Votes
	heard := make([]bool, len(all))
	for i := range all {
		heard[i] = all[i].Human
	}
	q.Votes, q.Partial = votesOf(all, heard), true
	for {
		var open []Open
		var left []int
		for i := range all {
			if v := &all[i]; !heard[i] {
				open, left = append(open, openOf(v, costs, i)), append(left, i)
			}
		}
		w := l.Wave(q, open, a)
		if len(w.Ask) == 0 {
			q.Partial, q.Stop = len(open) > 0, w.Stop
			return l.Judge(q)
		}
		for _, i := range w.Ask {
			heard[left[i]] = true
		}
		q.Votes = votesOf(all, heard)
	}
}

func openOf(v *Vote, costs []exact.Money, i int) Open {
	o := Open{SpecialistID: v.SpecialistID, Version: v.Version, Model: v.Model, OptionOrder: v.OptionOrder}
	if i < len(costs) {
		o.Cost = costs[i]
	}
	return o
}

// votesOf returns the votes that were heard, in the round's order.
func votesOf(all []Vote, heard []bool) (votes []Vote) {
	for i := range all {
		if heard[i] {
			votes = append(votes, all[i])
		}
	}
	return votes
}

// Stops returns what the promise of q is to be tested on instead of j, the
// judgement on all its votes, at thresholds where asking as a says would have
// stopped at an earlier vote and come to something else. Those above the tau in
// force, by which these votes were asked for, are left out, and so is everything
// that the test does not look at. costs are as in [Ledger.Stopped]; a.Tau is not
// looked at.
func (l *Ledger) Stops(q Question, j *Judgement, costs []exact.Money, a Asking) (list []StoppedAt) {
	policy := q.Policy.normal()
	if policy.Promise == nil || j.N < eligibleFrom || j.Best < 0 || len(q.Options) < 2 {
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
		s := l.Stopped(q, costs, a)
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
