package trust

import (
	"fmt"
	"math"

	"github.com/dialai/dialai/exact"
)

// LeftOut compares every outcome of a machine, scored with itself left out of the
// counts, with the same round scored by a ledger that never saw it, and returns
// the first difference. Who errs with whom is the one thing that is not left out.
func LeftOut(machine string, outcomes []Outcome) error {
	full := New()
	for _, o := range outcomes {
		if err := full.Add(o); err != nil {
			return err
		}
	}
	m := full.pools[machine]
	b := &ballot{pool: m}
	for j, o := range m.window {
		without := New()
		for i, other := range outcomes {
			if i != j {
				if err := without.Add(other); err != nil {
					return err
				}
			}
		}
		b.reopen(full, o)
		b.score()
		q := questionOf(&outcomes[j])
		want := without.open(&q)
		want.score()
		if err := b.differs(want); err != nil {
			return fmt.Errorf("outcome %d: %w", j, err)
		}
	}
	return nil
}

func questionOf(o *Outcome) Question {
	q := Question{Machine: o.Machine, State: o.State, Options: o.Options}
	for _, p := range o.Proposals {
		for t, name := range o.Options {
			if name == p.Transition && p.Live() {
				q.Votes = append(q.Votes, Vote{SpecialistID: p.SpecialistID, Version: p.Version, Model: p.Model, OptionOrder: p.OptionOrder, Option: t, Human: p.Human})
			}
		}
	}
	return q
}

func (b *ballot) differs(want *ballot) error {
	if math.Abs(b.mu-want.mu) > 1e-12 {
		return fmt.Errorf("mu is %v, want %v", b.mu, want.mu)
	}
	for t := range b.k {
		if math.Abs(b.prior[t]-want.prior[t]) > 1e-12 {
			return fmt.Errorf("the prior is %v, want %v", b.prior, want.prior)
		}
	}
	for i := range b.voters {
		v, w := &b.voters[i], &want.voters[i]
		if v.id != w.id || math.Abs(v.p4-w.p4) > 1e-12 || math.Abs(v.p16-w.p16) > 1e-12 {
			return fmt.Errorf("trust of %s is %v and %v, want that of %s, %v and %v", v.id, v.p4, v.p16, w.id, w.p4, w.p16)
		}
		for t := range v.logs {
			if math.Abs(v.logs[t]-w.logs[t]) > 1e-12 {
				return fmt.Errorf("%s answers as it did with %v, want %v", v.id, v.logs, w.logs)
			}
		}
	}
	return nil
}

// Scores returns what the L4 expert says of each option.
func (l *Ledger) Scores(q Question) []float64 {
	b := l.open(&q)
	b.score()
	return b.scores[iL4]
}

// Gradient returns the length of the gradient of stacking's likelihood at its fit
// to a machine.
func (l *Ledger) Gradient(machine string) float64 {
	m := l.pools[machine]
	rows, b := make([]stackRow, len(m.window)), ballot{pool: m, bar: m.pairs.bar()}
	for j, o := range m.window {
		b.reopen(l, o)
		b.score()
		rows[j] = newStackRow(&b, o)
	}
	fitted, _ := fitStack(m, rows, m.fit.read().g[iL4])
	size := len(m.list)
	x := append([]float64{}, fitted.z...)
	for _, s := range fitted.bias {
		x, size = append(x, s...), size+len(s)
	}
	g := newLogit(rows, len(m.list), size)
	g.evaluate(x, -1)
	return length(g.grad)
}

// Weights returns the weights of the experts of a machine.
func (l *Ledger) Weights(machine string) [experts]float64 {
	return l.pools[machine].fit.read().shares(ExpertV | ExpertL4 | ExpertL16 | ExpertC | ExpertW | ExpertS)
}

// An Epoch is the live test of a promise, without a ledger around it.
type Epoch struct{ e *riskEpoch }

// NewEpoch begins a test.
func NewEpoch(p Promise) Epoch { return Epoch{newEpoch(p, "", 1)} }

// Pair enters one pair, and returns tau.
func (e Epoch) Pair(p exact.Billionths, right bool) exact.Billionths {
	e.e.pair(Pair{P: p, Right: right}.outcome())
	return e.e.tau()
}

// Losses returns the loss of each expert on each outcome of a machine, and those by
// which they are weighed.
func (l *Ledger) Losses(machine string) (each [experts][]float64, weighed [experts]float64) {
	l.Refit(machine)
	m := l.pools[machine]
	f := m.fit.read()
	rows, b := make([]stackRow, len(m.window)), ballot{pool: m, bar: m.pairs.bar()}
	for j, o := range m.window {
		b.reopen(l, o)
		b.score()
		rows[j] = newStackRow(&b, o)
		for e := range iS {
			each[e] = append(each[e], logLoss(b.scores[e], f.at(e, len(o.votes)), o.truth))
		}
	}
	_, each[iS] = fitStack(m, rows, f.g[iL4])
	return each, f.loss
}

// Shortest returns how many a wave asks at the least, as it is worked out and by trying
// every option with every probability in full.
func (l *Ledger) Shortest(q Question, open []Open, a Asking) (fast, slow int) {
	s := l.seek(&q, open, a)
	s.inform("")
	fast, _ = s.shortest()
	slow = len(s.order)
	for t := range int32(s.b.k) {
		b := s.b.fork(len(s.order))
		for n, i := range s.order {
			v := s.open[i]
			v.memo, v.rows = nil, nil
			v.option = b.voiceFor(t, &v, s.b.sums(&v))
			b.join(v)
			b.add()
			s.mix.m = len(b.voters)
			if billionths(s.mix.of(b)[t]) >= s.tau && n >= s.free()-1 {
				slow = min(slow, n+1)
				break
			}
		}
	}
	return fast, slow
}

// Ceiling returns the bound of an option's probability, and the probability.
func Ceiling(scores []float64, t int, g float64) (bound, p float64) {
	q := make([]float64, len(scores))
	softmax(q, scores, g)
	return ceiling(scores, t, g), q[t]
}

// Thinned returns what a series leaves of points along an axis, and how wide its parts are.
func Thinned(all []Point, by Axis) ([]Point, int64) {
	s := &series{}
	for _, p := range all {
		s.add(p, "")
	}
	list, _ := s.thinned(by)
	if by == ByDates {
		return list, s.along[1].width
	}
	return list, s.along[0].width
}

// UnruledRounds returns the rounds without a human's word that a ledger learns from.
func (l *Ledger) UnruledRounds(machine string) (list []string) {
	if m := l.pools[machine]; m != nil {
		for _, r := range m.unruled.rounds {
			list = append(list, r.round)
		}
	}
	return list
}

// MakeFits makes all fits that are due.
func (l *Ledger) MakeFits() {
	for _, m := range l.pools {
		m.fit.read()
	}
}

// DueFits returns the machines whose fit is due and not made.
func (l *Ledger) DueFits() (list []string) {
	for _, name := range l.Machines() {
		x := l.pools[name].fit
		x.mu.Lock()
		if x.from != nil {
			list = append(list, name)
		}
		x.mu.Unlock()
	}
	return list
}
