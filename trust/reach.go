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
