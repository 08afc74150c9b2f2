package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// Whom to ask next. Asking everybody always is safe and expensive; asking one after the other
// saves most where the first agree. A wave goes by what an answer would tell: its mutual
// information with the truth, in nats (Lindley 1956),
//
//	I(v) = H(sum over t of p(t) P(.|t)) - sum over t of p(t) H(P(.|t))
//
// divided by 1 + the sum of rho with whoever was asked before it, and by its cost. In that
// order as many are asked as would decide if all said the same (reach.go). It ends when
// the votes decide, when no answers of those left could, or when they would cost more than
// a human. For a share of rounds trust is drawn instead of taken at its mean (Thompson
// 1933), so that whoever is believed too little is heard again.

// An Open is a specialist who can still be asked.
type Open struct {
	SpecialistID string
	Version      string
	Model        string
	OptionOrder  string      // in which it would see the options
	Cost         exact.Money // of asking it; 0 or less is free
}

// Asking says how specialists are asked one after the other.
type Asking struct {
	// Tau is the probability that decides; 0 stands for that of the question's
	// policy: the established tau, or the threshold.
	Tau exact.Billionths
	// HumanCost is that of one human decision; 0 means that specialists are always
	// asked before a human is.
	HumanCost exact.Money
	// Most is how many one wave asks at most; 0 means no limit. Where no tau is
	// established everyone is asked all the same.
	Most int
	// Explore, if it is not empty, is the seed from which each specialist's trust is
	// drawn from what is known of it, instead of taking the mean, and asking goes on
	// where no answers could reach tau: for a share of rounds, so that nobody is
	// forgotten. A specialist's draw depends on nothing but the seed and its id.
	Explore string
	// Patient goes on asking where no answers could reach tau, and whatever they
	// cost, so that the human who decides then has the proposal of everyone who tells
	// something.
	Patient bool
}

// A Stop says why nobody is asked any more.
type Stop string

// The reasons to stop asking.
const (
	StopDecided      Stop = "decided"      // the probability has reached tau
	StopCannotReach  Stop = "cannot_reach" // no answers of those left could lift it to tau: a human decides
	StopTooExpensive Stop = "too_dear"     // the answers that could cost more than a human
	StopAllAsked     Stop = "all_asked"
)

// A Wave is whom to ask next, all at once.
type Wave struct {
	Ask  []int            // indices into the specialists who can be asked, best first; empty if Stop is set
	Stop Stop             // "" to go on
	Tau  exact.Billionths // that is to be reached; 0 if none is established, so that everyone is asked
	Cost exact.Money
	// Information is what each answer is expected to tell, in billionths of a nat,
	// by index.
	Information []int64
}

// Wave returns whom to ask next in a round, given the votes so far: all who cost
// nothing, and of the others as few as could decide if all spoke for the same, those
// first who tell most for their cost. If not even all of them together could decide,
// a human will: then those are left out who tell less than a two-hundredth of a nat. As
// long as nothing establishes a tau, everyone is asked at once: humans decide then,
// and every answer teaches. Humans are not among those who are asked. Where there is
// nothing to choose, one answer is enough.
func (l *Ledger) Wave(q Question, open []Open, a Asking) Wave {
	q.Partial = true
	s := l.seek(&q, open, a)
	switch {
	case len(open) == 0:
		return Wave{Stop: StopAllAsked}
	case s.b.k < 2:
		return s.anyone()
	case s.tau == 0:
		return s.everyone()
	}
	s.inform(a.Explore)
	return s.next(a)
}

// seek prepares the search for a wave.
func (l *Ledger) seek(q *Question, open []Open, a Asking) *search {
	b := l.open(q)
	policy := q.Policy.normal()
	f := b.fit()
	s := &search{b: b, removed: q.Removed, tau: cmp.Or(a.Tau, l.tau(q, policy)), mix: newMixture(f, policy.Experts, q.Removed)}
	b.score()
	for i := range open {
		o := &open[i]
		v := l.voter(b, &Vote{SpecialistID: o.SpecialistID, Version: o.Version, Model: o.Model, OptionOrder: o.OptionOrder}, i)
		v.cost = max(0, int64(o.Cost))
		b.weigh(&v)
		b.tabulate(&v)
		s.open = append(s.open, v)
	}
	return s
}

// Tau returns the probability that decides a question, 0 as long as none is
// established.
func (l *Ledger) Tau(q Question) exact.Billionths { return l.tau(&q, q.Policy.normal()) }

func (l *Ledger) tau(q *Question, policy Policy) exact.Billionths {
	m := l.pools[q.Machine]
	if m == nil || m.n < CalibratedFrom {
		return 0
	}
	if policy.Promise != nil {
		return m.view(*policy.Promise, q.State, q.PolicyDigest).Tau
	}
	return max(1, *policy.Threshold)
}

// A search looks for the next wave.
type search struct {
	b       *ballot // scored, of the votes so far
	open    []voter
	order   []int // of open, as they are to be asked
	info    []float64
	tau     exact.Billionths
	removed []bool
	mix     mixture
}

func (s *search) everyone() Wave {
	w := Wave{Information: make([]int64, len(s.open))}
	for i := range s.open {
		w.Ask = append(w.Ask, i)
		w.Cost = w.Cost.Add(exact.Money(s.open[i].cost))
	}
	return w
}

// anyone returns the cheapest, the first of equals, until somebody has answered.
func (s *search) anyone() Wave {
	w := Wave{Information: make([]int64, len(s.open)), Tau: s.tau}
	if len(s.b.voters) > 0 {
		w.Stop = StopDecided
		return w
	}
	best := 0
	for i := range s.open {
		if s.open[i].cost < s.open[best].cost {
			best = i
		}
	}
	w.Ask, w.Cost = []int{best}, exact.Money(s.open[best].cost)
	return w
}

// next returns the wave, or why there is none.
func (s *search) next(a Asking) Wave {
	w := Wave{Information: make([]int64, len(s.info)), Tau: s.tau}
	for i, v := range s.info {
		w.Information[i] = int64(math.Round(v * 1e9))
	}
	switch {
	case s.reached():
		w.Stop = StopDecided
		return w
	case !a.Patient && a.Explore == "" && !s.canReach():
		w.keep(s.order[:s.free()], StopCannotReach)
		return w
	}
	most, decisive := s.shortest()
	w.Ask = s.order[:most]
	if !decisive && a.Explore == "" && s.b.known() {
		if w.Ask = s.telling(); len(w.Ask) == 0 {
			w.Stop = StopCannotReach
			return w
		}
	}
	for _, i := range w.Ask {
		w.Cost = w.Cost.Add(exact.Money(s.open[i].cost))
	}
	if !a.Patient && a.HumanCost > 0 && w.Cost > a.HumanCost {
		w.keep(s.order[:s.free()], StopTooExpensive)
	}
	if a.Most > 0 && len(w.Ask) > a.Most {
		w.keep(w.Ask[:a.Most], "")
		for _, i := range w.Ask {
			w.Cost = w.Cost.Add(exact.Money(s.open[i].cost))
		}
	}
	return w
}

// keep asks these instead, who are free; if there are none that is the end.
func (w *Wave) keep(ask []int, stop Stop) {
	w.Ask, w.Cost = ask, 0
	if len(ask) == 0 {
		w.Ask, w.Stop = nil, stop
	}
}

// free returns how many of the order cost nothing: they come first.
func (s *search) free() int {
	if n := slices.IndexFunc(s.order, func(i int) bool { return s.open[i].cost > 0 }); n >= 0 {
		return n
	}
	return len(s.order)
}

// reached reports whether the votes so far decide: an option that somebody
// proposed has reached tau.
func (s *search) reached() bool {
	s.mix.m = len(s.b.voters)
	p := s.mix.of(s.b)
	for i := range s.b.voters {
		if t := int(s.b.voters[i].option); !s.isRemoved(t) && billionths(p[t]) >= s.tau {
			return true
		}
	}
	return false
}

func (s *search) isRemoved(t int) bool { return t < len(s.removed) && s.removed[t] }

// inform works out what each open answer would tell, and in which order to ask:
// what is free first, then by information per cost, where the errors that an answer
// shares with those asked before it, in this wave too, make it worth less.
func (s *search) inform(explore string) {
	s.mix.m = len(s.b.voters)
	p := slices.Clone(s.mix.of(s.b))
	n := len(s.open)
	crowd := make([]float64, n)
	s.info, s.order = make([]float64, n), make([]int, n)
	for i := range s.open {
		s.order[i], crowd[i] = i, 1
		for j := range s.b.voters {
			crowd[i] += s.shared(&s.open[i], &s.b.voters[j])
		}
		s.info[i] = s.b.information(&s.open[i], p, explore)
	}
	told := slices.Clone(s.info)
	for i := range s.info {
		s.info[i] /= crowd[i]
	}
	for k := range s.order {
		best := k
		for i := k + 1; i < n; i++ {
			if s.before(s.order[i], s.order[best], told, crowd) {
				best = i
			}
		}
		s.order[k], s.order[best] = s.order[best], s.order[k]
		for _, i := range s.order[k+1:] {
			crowd[i] += s.shared(&s.open[i], &s.open[s.order[k]])
		}
	}
}

// shared returns the correlation of the errors of two answers.
func (s *search) shared(v, w *voter) float64 {
	if s.b.pool == nil || w.human > 0 {
		return 0
	}
	return s.b.pool.pairs.rho(v, w, s.b.bar)
}

// before reports whether i is to be asked before j.
func (s *search) before(i, j int, told, crowd []float64) bool {
	v, w := &s.open[i], &s.open[j]
	x, y := told[i]/crowd[i], told[j]/crowd[j]
	if v.cost == 0 || w.cost == 0 {
		if v.cost != 0 || w.cost != 0 {
			return v.cost == 0
		}
	} else {
		x, y = x/float64(v.cost), y/float64(w.cost)
	}
	return x > y || x == y && (v.id < w.id || v.id == w.id && i < j)
}

// information returns the mutual information between the truth and an answer, in
// nats, under probabilities p (Lindley 1956).
func (b *ballot) information(v *voter, p []float64, explore string) float64 {
	asked := *v
	if explore != "" {
		asked.p4, asked.cell = b.draw(v, NewDraw(explore, v.id)), nil
		if v.memo != nil {
			asked.memo = &memo{}
		}
	}
	told, noise := 0., 0.
	for l := range b.k {
		mean := 0.
		for t := range b.k {
			w := b.word(&asked, int32(t), int32(l))
			mean += float64(p[t] * w.p)
			noise += float64(p[t] * w.surprise)
		}
		told += surprise(mean)
	}
	return max(0, told-noise)
}

// surprise returns -x ln x, 0 for 0.
func surprise(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return -float64(x * math.Log(x))
}

// draw returns a trust drawn from its Beta posterior (Thompson 1933).
func (b *ballot) draw(v *voter, d *Draw) float64 {
	outer := v.levels
	outer[0] = counts{}
	prior := posterior(&outer, b.mu, pull4) // with nothing at the state, that of the level above
	k, n := float64(v.levels[0].k)/1000, float64(v.levels[0].n)/1000
	return clampTrust(betaQuantile(d.Float(), k+float64(pull4*prior), n-k+float64(pull4*(1-prior))))
}

// fork returns a copy of a scored ballot that more voters may join.
func (b *ballot) fork(more int) *ballot {
	c := *b
	c.voters = append(make([]voter, 0, len(b.voters)+more), b.voters...)
	c.scores = [experts][]float64{}
	return &c
}

// join adds a weighed voter to a ballot whose answers were judged.
func (b *ballot) join(v voter) {
	v.logs = make([]float64, b.k)
	b.judgeAnswer(&v)
	b.voters = append(b.voters, v)
	last := len(b.voters) - 1
	for i := range last {
		b.copies(&b.voters[i], &b.voters[last])
	}
	for i := range last {
		b.compare(&b.voters[i], &b.voters[last])
	}
}
