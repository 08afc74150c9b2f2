package trust

import "math"

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
	best := len(s.order)
	said := make([][]float64, len(s.open))
	for i := range s.open {
		said[i] = s.b.said(&s.open[i])
	}
	for t := range s.b.k {
		if s.isRemoved(t) {
			continue
		}
		if n, reached := s.unanimous(int32(t), best, said); reached {
			best, decisive = n, true
		}
	}
	return best, decisive
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
		if billionths(s.mix.of(b)[t]) >= s.tau {
			return n + 1, true
		}
	}
	return most, false
}

// said returns by answer the sum, over the options that could be right, of how
// likely v gives it.
func (b *ballot) said(v *voter) []float64 {
	sums := make([]float64, b.k)
	for t := range sums {
		for l := range sums {
			sums[l] += b.answer(v, int32(t), int32(l))
		}
	}
	return sums
}

// voiceFor returns the answer of v that speaks most for t: t itself, unless v is
// known to be wrong more often than by chance. said is that of v.
func (b *ballot) voiceFor(t int32, v *voter, said []float64) int32 {
	ratio := func(l int32) float64 {
		p := b.answer(v, t, l)
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
