package trust

import (
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// Who errs together. Two voters with the same fault are one witness, not two, so the
// weaker of a pair with the same vote is discounted by rho, the correlation of their
// errors (score.go). With n common outcomes, error shares u and v and a share b in which
// both erred,
//
//	phi = (b - u v) / sqrt((u(1-u) + .02) (v(1-v) + .02))
//
//	rho = (n (phi - bar) + 20 rho0) / (n + 20), within 0..1
//
// The .02 keep rare errors from looking like certain correlation. bar is the mean phi of
// pairs of different models: a round that is hard is hard for all. rho0 is what is assumed
// of a pair: .3 for the same model that saw the options in the same order, .1 in another,
// else 0. Beyond PairLimit voters only groups by model are kept.

// PairLimit is the number of proposers of a machine up to which every pair has
// statistics of its own; above it there are only those of model groups.
const PairLimit = 256

// Weights of what is assumed about two voters before they erred together.
const (
	pairPrior      = 20 // common outcomes
	priorSameOrder = .3 // correlation: same model, same option order
	priorSameModel = .1 // same model, another order
)

// A joint counts the errors of two voters in their common outcomes. In a joint
// of a whole group errors are doubled, so that they stay whole: see group.
type joint struct{ n, first, second, both int64 }

// phi returns the correlation of the errors in billionths, shrunk where errors
// are rare.
func (j joint) phi() int64 {
	if j.n == 0 {
		return 0
	}
	n := float64(j.n)
	u, v := float64(j.first)/n, float64(j.second)/n
	spread := math.Sqrt((float64(u*(1-u)) + .02) * (float64(v*(1-v)) + .02))
	return int64(math.Round((float64(j.both)/n - float64(u*v)) / spread * float64(exact.One)))
}

// A pair is a joint with its phi.
type pair struct {
	joint
	apart    int64 // common outcomes in which they did not say the same
	phi      int64
	evidence float64 // for copies (copies.go); not encoded, since it follows from the counts
}

// pairs say who errs together. Up to PairLimit members, of is a triangle: the
// pair of a and b < a stands at a(a-1)/2+b.
type pairs struct {
	of     []pair
	many   bool             // more than PairLimit members: only groups are kept
	groups map[string]group // by model, known ones
	others group            // pairs of different or unknown models
	// phiSum and phiN make the mean phi of pairs of different or unknown models,
	// weighted by their common outcomes.
	phiSum, phiN int64
}

// A group sums all pairs within one model, or across models.
type group struct {
	joint          // n is twice the number of pairs observed
	outcomes int64 // in which there was such a pair
}

func (p pairs) clone() pairs {
	p.of, p.groups = slices.Clone(p.of), maps.Clone(p.groups)
	return p
}

func triangle(a, b int32) int {
	if a < b {
		a, b = b, a
	}
	return int(a)*(int(a)-1)/2 + int(b)
}

// add counts the votes of one outcome, so many times.
func (p *pairs) add(l *Ledger, m *pool, o *past, times int64) {
	p.addGroups(l, o, times)
	if len(m.list) > PairLimit {
		p.many, p.of = true, nil
	}
	if p.many {
		return
	}
	if need := len(m.list) * (len(m.list) - 1) / 2; need > len(p.of) {
		p.of = append(p.of, make([]pair, need-len(p.of))...)
	}
	for i := range o.votes {
		v := &o.votes[i]
		for j := range i {
			if w := &o.votes[j]; v.unit >= 0 && w.unit >= 0 {
				p.addPair(l, v, w, o.truth, times)
			}
		}
	}
}

func (p *pairs) addPair(l *Ledger, v, w *pastVote, truth int32, times int64) {
	if v.member < w.member {
		v, w = w, v
	}
	q := &p.of[triangle(v.member, w.member)]
	across := !sameModel(l.units.list[v.unit].model, l.units.list[w.unit].model)
	if across && !q.copies() {
		p.phiSum, p.phiN = p.phiSum-q.n*q.phi, p.phiN-q.n
	}
	x, y := wrong(v.option, truth), wrong(w.option, truth)
	q.n, q.first, q.second, q.both = q.n+times, q.first+times*x, q.second+times*y, q.both+times*x*y
	if v.option != w.option {
		q.apart += times
	}
	q.phi, q.evidence = q.joint.phi(), q.evident()
	if across && !q.copies() {
		p.phiSum, p.phiN = p.phiSum+q.n*q.phi, p.phiN+q.n
	}
}

func wrong(option, truth int32) int64 {
	if option == truth {
		return 0
	}
	return 1
}

func sameModel(a, b string) bool { return a == b && a != "" }

// addGroups sums the pairs of one outcome by model, without looking at each: of m
// voters with e errors there are m(m-1) ordered pairs, the first of which errs in
// e(m-1) and both in e(e-1).
func (p *pairs) addGroups(l *Ledger, o *past, times int64) {
	type votes struct{ m, e int64 }
	var all votes
	byModel := map[string]votes{}
	for i := range o.votes {
		v := &o.votes[i]
		if v.unit < 0 {
			continue
		}
		x := wrong(v.option, o.truth)
		all.m, all.e = all.m+1, all.e+x
		if model := l.units.list[v.unit].model; model != "" {
			g := byModel[model]
			byModel[model] = votes{g.m + 1, g.e + x}
		}
	}
	rest := ordered(all.m, all.e)
	for model, v := range byModel {
		within := ordered(v.m, v.e)
		p.groups[model] = p.groups[model].plus(within, times)
		rest = joint{rest.n - within.n, rest.first - within.first, rest.second - within.second, rest.both - within.both}
	}
	p.others = p.others.plus(rest, times)
}

func ordered(m, e int64) joint { return joint{m * (m - 1), e * (m - 1), e * (m - 1), e * (e - 1)} }

func (g group) plus(j joint, times int64) group {
	if j.n > 0 {
		g.outcomes += times
	}
	return group{joint{g.n + times*j.n, g.first + times*j.first, g.second + times*j.second, g.both + times*j.both}, g.outcomes}
}

// common returns phi above what voters of different models share, in correlation,
// and the outcomes it rests on.
func (p *pairs) common(a, b *voter) (phi, n float64) {
	if a.member < 0 || b.member < 0 {
		return 0, 0
	}
	if p.many {
		g := p.others
		if sameModel(a.model, b.model) {
			g = p.groups[a.model]
		}
		return float64(g.joint.phi()) / 1e9, float64(g.outcomes)
	}
	if i := triangle(a.member, b.member); i < len(p.of) {
		return float64(p.of[i].phi) / 1e9, float64(p.of[i].n)
	}
	return 0, 0
}

// bar returns the mean phi over pairs of different or unknown models, at least 0:
// difficulty that all share is no reason to discount.
func (p *pairs) bar() float64 {
	if p.many {
		return max(0, float64(p.others.joint.phi())/1e9)
	}
	if p.phiN == 0 {
		return 0
	}
	return max(0, float64(p.phiSum)/float64(p.phiN)/1e9)
}

// rho returns the correlation of two voters for which the weaker is discounted,
// in 0..1, given bar.
func (p *pairs) rho(a, b *voter, bar float64) float64 {
	phi, n := p.common(a, b)
	rho0 := 0.
	if sameModel(a.model, b.model) {
		rho0 = priorSameModel
		if a.order == b.order {
			rho0 = priorSameOrder
		}
	}
	return min(1, max(0, (float64(n*(phi-bar))+pairPrior*rho0)/(n+pairPrior)))
}
