package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// A judgement, in this order: the ballot is opened (every vote with all that is known of
// its author), scored (score.go), and mixed to a probability of each option (fit.go); what
// guards removed loses its probability to the others; the option of the highest
// probability is the pick, and of its supporters the most trusted wins. Then the code says
// whether the pick decides: only where enough outcomes are known, and where its
// probability reaches tau, which a promise has established (risk.go), or the threshold
// that the machine declares. Nothing here remembers anything: what is known is the
// ledger's, and it changes only with outcomes.

// CalibratedFrom is the number of outcomes of a machine from which a judgement may
// decide.
const CalibratedFrom = 20

// Judge answers a question from what the ledger knows. It is a pure function: the
// same ledger and question give the same judgement, whatever order the votes came
// in, up to ties, which go to the option or vote first in that order. Votes
// that name no option are not counted.
func (l *Ledger) Judge(q Question) Judgement {
	b := l.open(&q)
	j := Judgement{Strategy: "bayes", Stop: q.Stop, Options: q.Options, Best: -1, Winner: -1, P: make([]exact.Billionths, b.k)}
	if b.pool != nil {
		j.N = b.pool.n
	}
	policy := q.Policy.normal()
	if policy.Promise != nil {
		j.Risk = b.pool.view(*policy.Promise, q.State, q.PolicyDigest)
	} else {
		j.Threshold = policy.Threshold
	}
	j.Calibrated = j.N >= CalibratedFrom && (j.Risk == nil || j.Risk.Tau > 0)
	if b.k > 1 {
		b.score()
		b.mix(&j, policy, &q)
	} else if b.k == 1 {
		b.score()
		j.P[0] = exact.One
	}
	b.forbid(&j, q.Removed)
	b.choose(&j, &q)
	b.report(l, &j, &q)
	j.Code = j.code(&q)
	return j
}

// normal fills in the defaults of a policy.
func (p Policy) normal() Policy {
	if p.Promise == nil && p.Threshold == nil {
		p.Promise = new(DefaultPromise())
	}
	if p.Experts == 0 {
		p.Experts = ExpertV | ExpertL4 | ExpertL16 | ExpertC | ExpertW | ExpertS | unruledExperts
	}
	if !p.Rounds {
		p.Experts &^= unruledExperts
	}
	if p.NoStacking {
		p.Experts &^= ExpertS
	}
	return p
}

// open makes the ballot of a question.
func (l *Ledger) open(q *Question) *ballot {
	m, f := l.pools[q.Machine], (*fit)(nil)
	if m != nil {
		f = m.fit.judge()
	}
	return l.openIn(m, f, q)
}

// openIn is open where the pool of the machine is known, nil if there is none, and the fit, nil if
// the ballot is not to be mixed.
func (l *Ledger) openIn(m *pool, f *fit, q *Question) *ballot {
	b := &ballot{pool: m, fitted: f, k: len(q.Options), truth: -1, classes: make([]int32, len(q.Options))}
	b.state = b.pool.state(q.State)
	if b.pool != nil {
		b.bar = b.pool.pairs.bar()
	}
	for t, name := range q.Options {
		b.classes[t] = b.state.class(name)
	}
	b.seat(q.State, func(t int) string { return q.Options[t] })
	b.voters = make([]voter, 0, len(q.Votes))
	for i := range q.Votes {
		v := &q.Votes[i]
		if v.Option < 0 || v.Option >= b.k {
			continue
		}
		b.voters = append(b.voters, l.voter(b, v, i))
	}
	slices.SortFunc(b.voters, func(v, w voter) int { return cmp.Or(cmp.Compare(v.id, w.id), cmp.Compare(v.place, w.place)) })
	return b
}

// voter looks up the author of a vote.
func (l *Ledger) voter(b *ballot, v *Vote, place int) voter {
	w := voter{id: v.SpecialistID, version: v.Version, option: int32(v.Option), member: -1, model: v.Model, order: v.OptionOrder, place: place}
	if v.Human {
		w.version, w.human = "", l.humans.chance(v.SpecialistID)
		return w
	}
	if u, known := l.units.index[unitKey{v.SpecialistID, v.Version}]; known {
		if b.pool != nil {
			if m, member := b.pool.members[u]; member {
				w.member = m
			}
		}
		b.fillKnown(l, &w, u)
		w.model = cmp.Or(v.Model, w.model)
		return w
	}
	if earlier, any := l.units.latest[v.SpecialistID]; any {
		b.expect(l, &w, earlier)
	}
	return w
}

// expect fills in what a version that the ledger has never seen will inherit.
func (b *ballot) expect(l *Ledger, v *voter, earlier int32) {
	u := &l.units.list[earlier]
	share := u.inheritance()
	all := cell{tally: u.tally, prior: u.prior}
	v.levels[2] = all.left(share)
	if b.pool == nil {
		return
	}
	i, known := b.pool.members[earlier]
	if !known {
		return
	}
	m := &b.pool.list[i]
	here := cell{tally: m.tally, prior: m.prior}
	v.levels[1] = here.left(share)
	v.levels[2] = v.levels[2].minus(v.levels[1])
	if c := b.state.cell(i); c != nil {
		v.levels[0] = c.left(share)
		v.levels[1] = v.levels[1].minus(v.levels[0])
	}
}

// mix makes the probabilities of the options.
func (b *ballot) mix(j *Judgement, policy Policy, q *Question) {
	f := b.fit()
	x := newMixture(f, policy.Experts, q.Removed)
	x.m, x.all = len(b.voters), !q.Partial
	j.Experts = make([]ExpertShare, 0, experts)
	x.each = func(e int, g float64, p []float64) {
		j.Experts = append(j.Experts, ExpertShare{expertNames[e], billionths(x.shares[e]), exact.Billionths(math.Round(g * 1e9)), allBillionths(p)})
	}
	copy(j.P, allBillionths(x.of(b)))
}

// A mixture makes probabilities of the experts' scores. O and D, where they take part, only help to choose the pick.
// Where it is that of humans' words alone, so are the probabilities; where it is another one, it is no more probable than by
// these. So what is learned from rounds without a human's word decides nothing, and moves no tau: it makes another
// pick, on which a human rules.
type mixture struct {
	fit     fit
	shares  [experts]float64
	m       int  // number of votes
	all     bool // all were asked: a temperature goes by m only where outcomes say that it does
	p, q    []float64
	each    func(e int, g float64, q []float64) // nil, or told of each expert
	bounded bool
	removed []bool           // by guards; read only where bounded
	humans  [experts]float64 // shares without O and D, where bounded
	h       []float64
}

func newMixture(f fit, set Experts, removed []bool) mixture {
	x := mixture{fit: f, shares: f.shares(set), removed: removed}
	if x.bounded = f.unruled != nil && set&unruledExperts != 0 && set&^unruledExperts != 0; x.bounded {
		x.humans = f.shares(set &^ unruledExperts)
	}
	return x
}

// of returns the probabilities of a scored ballot's options. They belong to x.
func (x *mixture) of(b *ballot) []float64 {
	if len(x.p) != b.k {
		x.p, x.q, x.h = make([]float64, b.k), make([]float64, b.k), make([]float64, b.k)
	}
	clear(x.p)
	clear(x.h)
	for e, a := range x.shares {
		if a == 0 {
			continue
		}
		g := x.temperature(e)
		x.complete(b, e)
		softmax(x.q, b.scores[e], g)
		for t := range x.p {
			x.p[t] += float64(a * x.q[t])
			x.h[t] += float64(x.humans[e] * x.q[t])
		}
		if x.each != nil {
			x.each(e, g, x.q)
		}
	}
	if x.bounded {
		leave(x.p, x.removed)
		leave(x.h, x.removed)
		bound(x.p, x.h)
	}
	return x.p
}

// leave gives the probability of what was removed to the others in proportion, as forbid does.
func leave(p []float64, removed []bool) {
	left := 0.
	for t := range p {
		if t >= len(removed) || !removed[t] {
			left += p[t]
		}
	}
	if left == 0 {
		return
	}
	for t := range p {
		if p[t] /= left; t < len(removed) && removed[t] {
			p[t] = 0
		}
	}
}

// lead is by how much the pick stays the most probable where it is bounded: more than rounding to
// billionths takes away.
const lead = 1e-6

// bound sets p to h where both have the same largest. Else it lowers the largest of p to that of h at the same place, or as
// far as it stays the largest; what it loses goes to the others in proportion.
func bound(p, h []float64) {
	best := 0
	for t := range p {
		if p[t] > p[best] {
			best = t
		}
	}
	next, same := 0., true
	for t := range p {
		if t != best {
			next, same = max(next, p[t]), same && h[t]+lead < h[best]
		}
	}
	if same {
		copy(p, h)
		return
	}
	others := 1 - p[best]
	to := min(p[best], max(h[best], next/(others+next)+lead))
	if to >= p[best] || others <= 0 {
		return
	}
	for t := range p {
		if t != best {
			p[t] = float64(p[t] * ((1 - to) / others))
		}
	}
	p[best] = to
}

// complete makes the scores of an expert that are not made with those of all others.
func (x *mixture) complete(b *ballot, e int) {
	switch e {
	case iS:
		x.fit.stack.score(b, b.place(), b.scoresOf(e))
	case iO, iD:
		b.scoreUnruled(e, b.scoresOf(e))
	}
}

func (x *mixture) temperature(e int) float64 {
	if e == iS || x.all {
		return x.fit.at(e, x.m)
	}
	return temperature(x.fit.g[e], x.m, x.fit.panel)
}

// scoresOf returns room for the scores of one expert.
func (b *ballot) scoresOf(e int) []float64 {
	if len(b.scores[e]) != b.k {
		b.scores[e] = make([]float64, b.k)
	}
	return b.scores[e]
}

// fit returns the fit in force.
func (b *ballot) fit() fit {
	if b.fitted == nil {
		return initialFit()
	}
	return *b.fitted
}

// place returns the index of the ballot's state, -1 if it is unknown.
func (b *ballot) place() int32 {
	if b.state == nil {
		return -1
	}
	return b.pool.stateOf[b.state.name]
}

func allBillionths(p []float64) []exact.Billionths {
	list := make([]exact.Billionths, len(p))
	for i := range p {
		list[i] = billionths(p[i])
	}
	return list
}

// forbid takes what guards removed out, and gives its probability to the others
// in proportion.
func (b *ballot) forbid(j *Judgement, removed []bool) {
	var left exact.Billionths
	any := false
	for t := range j.P {
		if t < len(removed) && removed[t] {
			j.P[t], any = 0, true
		}
		left += j.P[t]
	}
	if !any || left == 0 {
		return
	}
	for t := range j.P {
		j.P[t] = exact.Share(j.P[t], left)
	}
}

// choose sets the pick, its first supporter in the round's order breaking ties,
// and the vote that wins with it.
func (b *ballot) choose(j *Judgement, q *Question) {
	if len(b.voters) == 0 {
		return
	}
	seen := func(t int) int { // where the option was first proposed
		if i := slices.IndexFunc(q.Votes, func(v Vote) bool { return v.Option == t }); i >= 0 {
			return i
		}
		return len(q.Votes)
	}
	for t := range j.P {
		if t < len(q.Removed) && q.Removed[t] {
			continue
		}
		if j.Best < 0 || j.P[t] > j.P[j.Best] || j.P[t] == j.P[j.Best] && seen(t) < seen(j.Best) {
			j.Best = t
		}
	}
	if j.Best < 0 {
		return
	}
	j.Pick = q.Options[j.Best]
	var most exact.Billionths
	for i := range b.voters {
		v := &b.voters[i]
		if p := billionths(v.p4); int(v.option) == j.Best && (j.Winner < 0 || p > most || p == most && v.place < j.Winner) {
			j.Winner, most = v.place, p
		}
	}
}

// code says what the judgement came to.
func (j *Judgement) code(q *Question) Code {
	undecided := len(q.Options) > 1 && j.Winner >= 0 && j.undecided() != ""
	switch {
	case q.Stop == StopCannotReach && (j.Winner < 0 || undecided):
		return CannotReach
	case j.Winner < 0:
		return NoProposals
	case undecided:
		return j.undecided()
	case j.Best < len(q.Irreversible) && q.Irreversible[j.Best]:
		return Irreversible
	}
	return Decided
}

// undecided says why the probability of the pick does not decide, "" if it does.
func (j *Judgement) undecided() Code {
	p := j.P[j.Best]
	switch {
	case j.N == 0 || j.Risk == nil && j.N < CalibratedFrom:
		return ColdStart
	case j.Risk == nil && p < *j.Threshold:
		return BelowThreshold
	case j.Risk == nil:
		return ""
	case !j.Calibrated:
		return RiskNotEstablished
	case p < j.Risk.Tau:
		return BelowTau
	}
	return ""
}
