package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

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
	// Explore, if it is not nil, draws each specialist's trust from what is known
	// of it, instead of taking the mean: for a share of rounds, so that nobody is
	// forgotten.
	Explore *Draw
	// Patient goes on asking where no answers could reach tau, and whatever they
	// cost, so that the human who decides then has everyone's proposal.
	Patient bool
}

// A Stop says why nobody is asked any more.
type Stop string

// The reasons to stop asking.
const (
	StopDecided     Stop = "decided"      // the probability has reached tau
	StopCannotReach Stop = "cannot_reach" // no answers of those left could lift it to tau: a human decides
	StopTooDear     Stop = "too_dear"     // the answers that could cost more than a human
	StopAllAsked    Stop = "all_asked"
)

// A Wave is whom to ask next, all at once.
type Wave struct {
	Ask  []int // indices into the specialists who can be asked, best first; empty if Stop is set
	Stop Stop  // "" to go on
	Cost exact.Money
	// Information is what each answer is expected to tell, in billionths of a nat,
	// by index.
	Information []int64
}

// Wave returns whom to ask next in a round, given the votes so far: all who cost
// nothing, and of the others as few as could decide if all spoke for the same, those first
// who tell most for their cost. As long as nothing establishes a tau, everyone is
// asked at once: humans decide then, and every answer teaches. Humans are not
// among those who are asked.
func (l *Ledger) Wave(q Question, open []Open, a Asking) Wave {
	q.Partial = true
	s := l.seek(&q, open, a)
	switch {
	case len(open) == 0:
		return Wave{Stop: StopAllAsked}
	case s.tau == 0 || s.b.k < 2:
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
	s := &search{b: b, removed: q.Removed, tau: cmp.Or(a.Tau, l.tau(q, policy)), mix: mixture{fit: f, shares: f.shares(policy.Experts)}}
	b.score()
	for i := range open {
		o := &open[i]
		v := l.voter(b, &Vote{SpecialistID: o.SpecialistID, Version: o.Version, Model: o.Model, OptionOrder: o.OptionOrder}, i)
		v.cost = max(0, int64(o.Cost))
		b.weigh(&v)
		s.open = append(s.open, v)
	}
	return s
}

// tau returns the probability that decides a question, 0 if none does.
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

// next returns the wave, or why there is none.
func (s *search) next(a Asking) Wave {
	w := Wave{Information: make([]int64, len(s.info))}
	for i, v := range s.info {
		w.Information[i] = int64(math.Round(v * 1e9))
	}
	switch {
	case len(s.b.voters) > 0 && s.reached():
		w.Stop = StopDecided
		return w
	case !a.Patient && !s.canReach():
		w.Stop = StopCannotReach
		return w
	}
	w.Ask = s.order[:s.shortest()]
	free := 0
	for _, i := range w.Ask {
		if s.open[i].cost == 0 {
			free++
		}
		w.Cost = w.Cost.Add(exact.Money(s.open[i].cost))
	}
	if !a.Patient && a.HumanCost > 0 && w.Cost > a.HumanCost {
		if w.Ask, w.Cost = w.Ask[:free], 0; free == 0 {
			w.Ask, w.Stop = nil, StopTooDear
		}
	}
	return w
}

// reached reports whether the votes so far decide.
func (s *search) reached() bool {
	s.mix.m = len(s.b.voters)
	p := s.mix.of(s.b)
	for t := range p {
		if !s.isRemoved(t) && billionths(p[t]) >= s.tau {
			return true
		}
	}
	return false
}

func (s *search) isRemoved(t int) bool { return t < len(s.removed) && s.removed[t] }

// inform works out what each open answer would tell, and in which order to ask.
func (s *search) inform(explore *Draw) {
	s.mix.m = len(s.b.voters)
	p := slices.Clone(s.mix.of(s.b))
	s.info = make([]float64, len(s.open))
	for i := range s.open {
		v := &s.open[i]
		crowd := 1.
		for j := range s.b.voters {
			if w := &s.b.voters[j]; s.b.pool != nil && w.human == 0 {
				crowd += s.b.pool.pairs.rho(v, w, s.b.bar)
			}
		}
		s.info[i] = s.b.information(v, p, explore) / crowd
	}
	s.order = make([]int, len(s.open))
	for i := range s.order {
		s.order[i] = i
	}
	slices.SortFunc(s.order, func(i, j int) int {
		v, w := &s.open[i], &s.open[j]
		return cmp.Or(cmp.Compare(s.worth(j), s.worth(i)), cmp.Compare(v.id, w.id), cmp.Compare(i, j))
	})
}

// worth is information per cost; what is free comes first.
func (s *search) worth(i int) float64 {
	if s.open[i].cost == 0 {
		return math.MaxFloat64
	}
	return s.info[i] / float64(s.open[i].cost)
}

// information returns the mutual information between the truth and an answer, in
// nats, under probabilities p (Lindley 1956).
func (b *ballot) information(v *voter, p []float64, explore *Draw) float64 {
	asked := *v
	if explore != nil {
		asked.p4, asked.cell = b.draw(v, explore), nil
	}
	told, noise := 0., 0.
	for l := range b.k {
		mean := 0.
		for t := range b.k {
			th := b.answer(&asked, int32(t), int32(l))
			mean += float64(p[t] * th)
			noise += float64(p[t] * surprise(th))
		}
		told += surprise(mean)
	}
	return math.Max(0, told-noise)
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

// shortest returns how many of the order to ask: all who are free, and then until
// the probability of some option would reach tau if all of them spoke for it.
func (s *search) shortest() int {
	best := len(s.order)
	for t := range s.b.k {
		if !s.isRemoved(t) {
			best = min(best, s.unanimous(int32(t), best))
		}
	}
	return best
}

// unanimous returns after how many answers that speak for t its probability
// reaches tau; it looks no further than most.
func (s *search) unanimous(t int32, most int) int {
	b := s.b.fork(most)
	for n, i := range s.order[:most] {
		v := s.open[i]
		v.option = b.voiceFor(t, &v)
		b.join(v)
		if n+1 < most && s.open[s.order[n+1]].cost == 0 {
			continue
		}
		b.add()
		s.mix.m = len(b.voters)
		if billionths(s.mix.of(b)[t]) >= s.tau {
			return n + 1
		}
	}
	return most
}

// voiceFor returns the answer of v that speaks most for t: t itself, unless v is
// known to be wrong more often than by chance.
func (b *ballot) voiceFor(t int32, v *voter) int32 {
	best, most := t, 0.
	for l := range b.k {
		others := 0.
		for r := range b.k {
			if int32(r) != t {
				others += b.answer(v, int32(r), int32(l))
			}
		}
		if ratio := b.answer(v, t, int32(l)) / others; ratio > most {
			best, most = int32(l), ratio
		}
	}
	return best
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
		b.compare(&b.voters[i], &b.voters[last])
	}
}

// canReach reports whether some answers of those left could lift an option to
// tau: each expert by itself is given the answers it would like best, undiscounted,
// at the temperature of one vote more.
func (s *search) canReach() bool {
	s.mix.m = len(s.b.voters) + 1
	for t := range s.b.k {
		if !s.isRemoved(t) && billionths(s.best(t)) >= s.tau {
			return true
		}
	}
	return false
}

// best returns a bound of the probability of t.
func (s *search) best(t int) float64 {
	p := 0.
	s.mix.of(s.b) // scores S
	for e, a := range s.mix.shares {
		if a == 0 {
			continue
		}
		g, sum := s.mix.temperature(e), 1.
		for r := range s.b.k {
			if r != t {
				gap := s.b.scores[e][t] - s.b.scores[e][r] + s.gain(e, t, r)
				sum += math.Exp(-float64(g * gap))
			}
		}
		p += a / sum
	}
	return p
}

// gain returns by how much those left could at most lift t above r.
func (s *search) gain(e, t, r int) float64 {
	sum := 0.
	plain := logOdds(s.b.mu, s.b.k)
	for i := range s.open {
		v := &s.open[i]
		switch e {
		case iV:
			sum += plain
		case iL4:
			sum += math.Abs(v.w4)
		case iL16:
			sum += math.Abs(v.w16)
		case iC:
			sum += s.b.likeliest(v, t, r)
		case iS:
			sum += math.Abs(s.mix.fit.stack.weight(v))
		}
	}
	return sum
}

// likeliest returns the largest log-likelihood ratio of t over r that an answer
// of v could give.
func (b *ballot) likeliest(v *voter, t, r int) float64 {
	most := math.Inf(-1)
	for l := range b.k {
		most = math.Max(most, math.Log(b.answer(v, int32(t), int32(l))/b.answer(v, int32(r), int32(l))))
	}
	return most
}

// weight returns what an undiscounted vote of v adds to its option.
func (s *stack) weight(v *voter) float64 {
	w := float64(s.g * v.w4)
	if v.member >= 0 && int(v.member) < len(s.z) {
		w += s.z[v.member]
	}
	return w
}
