package trust

import (
	"math"

	"github.com/dialai/dialai/exact"
)

// ReplayRounds is the number of rounds in which everyone was asked that
// [Ledger.Savings] replays, the latest.
const ReplayRounds = 200

// When asking one after the other is worth it.
const (
	worthAccuracy = .01 // may be lost
	worthCost     = .1  // must be saved
)

// Savings say what asking one after the other would have saved in rounds in which
// everyone was asked, and what it would have cost in accuracy.
type Savings struct {
	Rounds             int64            `json:"rounds"`
	AccuracyAll        exact.Billionths `json:"accuracyAll"`
	AccuracySequential exact.Billionths `json:"accuracySequential"`
	VotesAll           int64            `json:"votesAll"` // in all rounds together
	VotesSequential    int64            `json:"votesSequential"`
	CostAll            exact.Money      `json:"costAll"`
	CostSequential     exact.Money      `json:"costSequential"`
}

// Worth reports whether to ask one after the other: no more than a hundredth of
// accuracy is lost, and at least a tenth of the cost is saved, or of the votes
// where they are free. Otherwise the panel is weak or correlated, and asking
// everyone at once is quicker. Nothing is worth it before there are rounds.
func (s Savings) Worth() bool {
	if s.Rounds == 0 {
		return false
	}
	all, part := float64(s.CostAll), float64(s.CostSequential)
	if s.CostAll == 0 {
		all, part = float64(s.VotesAll), float64(s.VotesSequential)
	}
	return s.AccuracySequential.Float() >= s.AccuracyAll.Float()-worthAccuracy && part <= float64((1-worthCost)*all)
}

// Savings replays the latest rounds of a machine in which everyone was asked, each
// judged by what the others teach, under a policy with probability tau.
func (l *Ledger) Savings(machine string, policy Policy, tau exact.Billionths) Savings {
	var s Savings
	m := l.pools[machine]
	if m == nil {
		return s
	}
	policy = policy.normal()
	mix := mixture{fit: m.fit, shares: m.fit.shares(policy.Experts)}
	right, rightAll := 0., 0.
	for i := len(m.window) - 1; i >= 0 && s.Rounds < ReplayRounds; i-- {
		o := m.window[i]
		if o.partial || len(o.votes) == 0 {
			continue
		}
		s.Rounds++
		rightAll += m.replayAll(l, o, &mix, &s)
		right += m.replay(l, o, &mix, tau, &s)
	}
	n := math.Max(1, float64(s.Rounds))
	s.AccuracyAll, s.AccuracySequential = billionths(rightAll/n), billionths(right/n)
	return s
}

// replayAll judges a past round with all its votes, and returns 1 if that was
// right.
func (m *pool) replayAll(l *Ledger, o *past, mix *mixture, s *Savings) float64 {
	b := &ballot{pool: m, bar: m.pairs.bar()}
	b.reopen(l, o)
	b.score()
	mix.m = -1
	for i := range b.voters {
		if v := &b.voters[i]; v.human == 0 {
			s.VotesAll, s.CostAll = s.VotesAll+1, s.CostAll.Add(exact.Money(v.cost))
		}
	}
	return credit(mix.of(b), o.truth)
}

// replay judges it by waves. Humans were not asked: they had spoken before.
func (m *pool) replay(l *Ledger, o *past, mix *mixture, tau exact.Billionths, s *Savings) float64 {
	b := &ballot{pool: m, bar: m.pairs.bar()}
	b.reopen(l, o)
	b.score()
	w := &search{b: b.fork(len(b.voters)), tau: tau, mix: *mix}
	w.b.voters = w.b.voters[:0]
	for _, v := range b.voters {
		v.rho = 0
		if v.human > 0 {
			w.b.voters = append(w.b.voters, v)
		} else {
			w.open = append(w.open, v)
		}
	}
	w.b.add()
	for len(w.open) > 0 {
		w.inform(nil)
		wave := w.next(Asking{Tau: tau, Patient: true})
		if len(wave.Ask) == 0 {
			break
		}
		w.hear(wave.Ask, s)
	}
	w.mix.m = len(w.b.voters)
	return credit(w.mix.of(w.b), o.truth)
}

// hear moves those who were asked from the open to the voters, with what they said.
func (s *search) hear(asked []int, sum *Savings) {
	heard := make([]bool, len(s.open))
	for _, i := range asked {
		v := s.open[i]
		v.option, heard[i] = v.said, true
		s.b.join(v)
		sum.VotesSequential++
		sum.CostSequential = sum.CostSequential.Add(exact.Money(v.cost))
	}
	rest := s.open[:0]
	for i := range s.open {
		if !heard[i] {
			rest = append(rest, s.open[i])
		}
	}
	s.open = rest
	s.b.add()
}

// credit returns 1 if the most probable option is the truth, a share for ties.
func credit(p []float64, truth int32) float64 {
	ties, holds := 0., false
	top := math.Inf(-1)
	for _, v := range p {
		top = math.Max(top, v)
	}
	for t, v := range p {
		if v == top {
			ties++
			holds = holds || int32(t) == truth
		}
	}
	if holds {
		return 1 / ties
	}
	return 0
}
