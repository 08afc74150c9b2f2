package trust

import (
	"math"

	"github.com/dialai/dialai/exact"
)

// Who says the same as another whatever is right is one witness with it, and no
// correlation short of that is enough to say so. Of n common outcomes, with error shares u
// and v, two who err independently differ in
//
//	e = n (u (1-v) + v (1-u))
//
// if they say the same where both err. Copies are taken to differ in a twentieth of that,
// those who are merely alike in two fifths; one pair in ten is expected to be copies. With
// c the probability of that given that they differed in m,
//
//	copy = c (1 - m/e), within 0..1
//
// and of two who say the same, the one that ranks second keeps a share of 1 - copy of its
// vote with every expert. Any number of exact copies comes to one vote. The odds turn where
// m is a sixth of e: below that correlation (some .83), however many outcomes there are,
// nothing is taken away but by rho. Only outcomes count: that rounds without a human's word
// change nothing is worth more than knowing copies sooner.
const (
	copiesDiffer = .05
	alikeDiffer  = .4
	oddsOfCopies = 1. / 9
)

// copied returns how far two are copies, in billionths.
func (q *pair) copied() int64 {
	if q.n <= 0 {
		return 0
	}
	n, m := float64(q.n), float64(q.apart)
	u, v := float64(q.first)/n, float64(q.second)/n
	e := float64(u*(1-v)) + float64(v*(1-u))
	if e <= 0 || m >= float64(n*e) {
		return 0
	}
	odds := math.Log(oddsOfCopies) + float64(m*math.Log(copiesDiffer/alikeDiffer)) +
		float64((n-m)*math.Log((1-float64(copiesDiffer*e))/(1-float64(alikeDiffer*e))))
	c := 1 / (1 + math.Exp(-odds))
	return int64(math.Round(c * (1 - m/float64(n*e)) * float64(exact.One)))
}

// copies reports whether two are rather copies than not.
func (q *pair) copies() bool { return q.copy > int64(exact.One)/2 }

// copied returns how far two voters are copies, 0..1.
func (p *pairs) copied(a, b *voter) float64 {
	if p.many || a.member < 0 || b.member < 0 {
		return 0
	}
	if i := triangle(a.member, b.member); i < len(p.of) {
		return float64(p.of[i].copy) / float64(exact.One)
	}
	return 0
}
