package trust

import (
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// What answers that are still out could do. Two questions are asked of them: can they lift
// any option to tau at all, and how few could? Both must never say no where the truth is
// yes, for that would send a round to a human that a vote would have decided. So the first
// gives every expert the answers it would like best, undiscounted, at the temperature of
// one vote more; and the second lets all speak for one option, each with the answer that
// speaks most for it. Where options are many, those of which nothing is known stand for
// each other, and bounds replace sums.

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
	p, h := 0., 0.
	s.mix.of(s.b) // scores S, O and D
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
		p, h = p+a/sum, h+s.mix.humans[e]/sum
	}
	return max(p, h)
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
		case iW:
			sum += v.align
		case iC:
			sum += s.b.likeliest(v, t, r)
		case iS:
			sum += math.Abs(s.mix.fit.stack.weight(v))
		case iO:
			sum += math.Abs(logOdds(s.b.oneCoin(v, s.b.expected(v)), s.b.k))
		case iD:
			sum += s.b.mostExpected(v, t, r)
		}
	}
	return sum
}

// likeliest returns the largest log-likelihood ratio of t over r that an answer
// of v could give.
func (b *ballot) likeliest(v *voter, t, r int) float64 {
	most := 0.
	for l := range b.k {
		most = max(most, b.likely(v, int32(t), int32(l))/b.likely(v, int32(r), int32(l)))
	}
	return math.Log(most)
}

// weight returns what an undiscounted vote of v adds to its option.
func (s *stack) weight(v *voter) float64 {
	w := float64(s.g * v.w4)
	if v.member >= 0 && int(v.member) < len(s.z) {
		w += s.z[v.member]
	}
	return w
}

// known reports whether enough is known to say who tells something.
func (b *ballot) known() bool { return b.pool != nil && b.pool.n >= CalibratedFrom }

// littleTold is the information in nats below which nobody is asked where even all
// together could not decide. It is less than what prunes: the human who decides then
// sees who was asked, and many who tell little each tell something together.
const littleTold = .005

// telling returns those of the order who are free or tell something.
func (s *search) telling() (list []int) {
	for _, i := range s.order {
		if s.open[i].cost == 0 || s.info[i] >= littleTold {
			list = append(list, i)
		}
	}
	return list
}

// shortest returns how many of the order to ask: all who are free, and then until
// the probability of some option would reach tau if all of them spoke for it. It is
// not decisive, and returns all, if it never would.
func (s *search) shortest() (n int, decisive bool) {
	best, blank := len(s.order), s.blank()
	said := make([][]float64, len(s.open))
	for i := range s.open {
		said[i] = s.b.sums(&s.open[i])
	}
	for t := range s.b.k {
		if s.isRemoved(t) || blank[t] {
			continue
		}
		if n, reached := s.unanimous(int32(t), best, said); reached {
			best, decisive = n, true
		}
		if decisive && best <= max(1, s.free()) {
			break // nothing is shorter
		}
	}
	return best, decisive
}

// blank says of which options nothing is known but what is known of an earlier one, too:
// they were never right nor proposed, here nor by anybody who takes part. To speak for
// one of them does the same as to speak for the other. Where options are few, or S or D
// tells them apart, none is.
func (s *search) blank() []bool {
	b := s.b
	blank := make([]bool, b.k)
	if b.k < manyOptions || s.mix.shares[iS] > 0 || s.mix.shares[iD] > 0 {
		return blank
	}
	least := slices.Min(b.prior)
	for t := range blank {
		blank[t] = !s.isRemoved(t) && b.prior[t] == least
	}
	for i := range b.voters {
		b.touch(blank, &b.voters[i])
	}
	for i := range s.open {
		b.touch(blank, &s.open[i])
	}
	if first := slices.Index(blank, true); first >= 0 {
		blank[first] = false
	}
	return blank
}

// touch takes the options out of blank that v has to do with.
func (b *ballot) touch(blank []bool, v *voter) {
	blank[v.option] = false
	for t := range int32(b.k) {
		if v.cell == nil || b.classes[t] < 0 || b.row(v, t) == 0 {
			continue
		}
		blank[t] = false
		for l := range int32(b.k) {
			if v.cell.at(b.classes[t], b.classes[l]) > 0 {
				blank[l] = false
			}
		}
	}
}

// unanimous returns after how many answers that speak for t its probability
// reaches tau; it looks no further than most.
func (s *search) unanimous(t int32, most int, said [][]float64) (n int, reached bool) {
	b := s.b.fork(most)
	for n, i := range s.order[:most] {
		v := s.open[i]
		v.option = b.voiceFor(t, &v, said[i])
		b.join(v)
		if n+1 < most && s.open[s.order[n+1]].cost == 0 {
			continue
		}
		b.add()
		s.mix.m = len(b.voters)
		if !s.mix.below(b, int(t), s.tau) && billionths(s.mix.of(b)[t]) >= s.tau {
			return n + 1, true
		}
	}
	return most, false
}

// below reports whether the probability of t is surely below tau, at less cost than
// of, where options are many.
func (x *mixture) below(b *ballot, t int, tau exact.Billionths) bool {
	if b.k < manyOptions {
		return false
	}
	p, h := 0., 0.
	for e, a := range x.shares {
		if a == 0 {
			continue
		}
		x.complete(b, e)
		most := ceiling(b.scores[e], t, x.temperature(e))
		p, h = p+float64(a*most), h+float64(x.humans[e]*most)
	}
	return max(p, h) < tau.Float()-1e-7
}

// ceiling returns no less than softmax would for t, with two exponentials: options
// other than t and its strongest rival weigh no less together than if all of them had
// their mean score, since the exponential is convex (Jensen).
func ceiling(scores []float64, t int, g float64) float64 {
	top, sum := math.Inf(-1), 0.
	for r, s := range scores {
		if r != t {
			top, sum = max(top, s), sum+s
		}
	}
	rest := float64(len(scores) - 2)
	rivals := math.Exp(float64(g * (top - scores[t])))
	if rest > 0 {
		rivals += float64(rest * math.Exp(float64(g*((sum-top)/rest-scores[t]))))
	}
	return 1 / (1 + rivals)
}

// sums returns by answer the sum, over the options that could be right, of how
// likely v gives it.
func (b *ballot) sums(v *voter) []float64 {
	sums := make([]float64, b.k)
	for t := range sums {
		for l := range sums {
			sums[l] += b.likely(v, int32(t), int32(l))
		}
	}
	return sums
}

// voiceFor returns the answer of v that speaks most for t: t itself, unless v is
// known to be wrong more often than by chance. said are the sums of v.
func (b *ballot) voiceFor(t int32, v *voter, said []float64) int32 {
	ratio := func(l int32) float64 {
		p := b.likely(v, t, l)
		return p / (said[l] - p)
	}
	best, most := t, ratio(t)
	for l := range int32(b.k) {
		if r := ratio(l); r > most*(1+1e-9) { // more than rounding
			best, most = l, r
		}
	}
	return best
}
