package trust

import "math"

// Who says the same as another whatever is right is one witness with it, and no
// correlation short of that is enough to say so. Of n common outcomes, with error shares u
// and v, two who err independently differ in n e,
//
//	e = u (1-v) + v (1-u)
//
// if they say the same where both err. Copies are taken to differ in a twentieth of that,
// those who are merely alike in two fifths. That they differed in m speaks for copies by
//
//	x = m log(.05/.4) + (n-m) log((1 - .05e) / (1 - .4e))
//
// and one pair in ten is expected to be copies. A few outcomes tell little of two, but much
// of many: ten who have never differed are hardly ten who are alike. So whoever says the same
// as two, now and before, speaks for these, by the lesser of its two x where both are above 0,
// and whoever does not speaks against them, by .2: of a hundred who are alike some never
// differ. Together the others can only speak for them. With c the probability that comes of x
// and what the others add,
//
//	copy = c (1 - m/(n e)), within 0..1
//
// and of two who say the same, the one that ranks second keeps a share of 1 - copy of its
// vote with every expert. Any number of exact copies comes to one vote. x is above 0 where
// m is below a sixth of n e: below that correlation (some .83), however many outcomes there
// are, nothing is taken away but by rho. Only outcomes count: that rounds without a human's
// word change nothing is worth more than knowing copies sooner.
const (
	copiesDiffer = .05
	alikeDiffer  = .4
	oddsOfCopies = 1. / 9
	beyondDoubt  = 10. // an x to which others add nothing that is told
	noCopy       = .2  // what who is no copy of two speaks against their being copies
)

// differ returns how many common outcomes a pair has, in how many of them they did not say the
// same, and in what share they would if their errors had nothing in common.
func (q *pair) differ() (n, m, e float64) {
	if q.n <= 0 {
		return 0, 0, 0
	}
	n, m = float64(q.n), float64(q.apart)
	u, v := float64(q.first)/n, float64(q.second)/n
	return n, m, float64(u*(1-v)) + float64(v*(1-u))
}

// evident returns by how much what a pair has said speaks for copies, x; 0 if it says nothing.
func (q *pair) evident() float64 {
	n, m, e := q.differ()
	if e <= 0 {
		return 0
	}
	return float64(m*math.Log(copiesDiffer/alikeDiffer)) + float64((n-m)*math.Log((1-float64(copiesDiffer*e))/(1-float64(alikeDiffer*e))))
}

// copied returns how far a pair are copies, 0..1, given the x of others.
func (q *pair) copied(others float64) float64 {
	n, m, e := q.differ()
	if e <= 0 || m >= float64(n*e) {
		return 0
	}
	c := 1 / (1 + math.Exp(-(math.Log(oddsOfCopies) + q.evidence + others)))
	return c * (1 - m/float64(n*e))
}

// copies reports whether a pair, of whom others say nothing, are rather copies than not.
func (q *pair) copies() bool { return q.copied(0) > .5 }

// between returns the pair of two voters; nil if nothing is known of it.
func (p *pairs) between(a, b *voter) *pair {
	if p.many || a.member < 0 || b.member < 0 {
		return nil
	}
	if i := triangle(a.member, b.member); i < len(p.of) {
		return &p.of[i]
	}
	return nil
}

// copied returns how far two voters of the same option are copies, 0..1.
func (b *ballot) copied(v, w *voter) float64 {
	p := &b.pool.pairs
	q := p.between(v, w)
	if q == nil {
		return 0
	}
	others := 0.
	if q.evidence > 0 && q.evidence < beyondDoubt {
		for i := range b.voters {
			if z := &b.voters[i]; z.member >= 0 && z.member != v.member && z.member != w.member {
				others += p.another(v, w, z)
			}
		}
	}
	return q.copied(max(0, others))
}

// another returns by how much a third voter speaks for two being copies.
func (p *pairs) another(v, w, z *voter) float64 {
	if z.option != v.option {
		return -noCopy
	}
	a, b := p.between(v, z), p.between(w, z)
	if a == nil || b == nil {
		return 0
	}
	if x := min(a.evidence, b.evidence); x > 0 {
		return x
	}
	return -noCopy
}
