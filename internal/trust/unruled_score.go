package trust

import "math"

// What O and D make of a ballot: what outcomes have counted so far, and what the newest fit
// expects of rounds without a human's word beside it.

// seat notes what the fit expects of the state of a ballot, whose options have these names.
func (b *ballot) seat(state string, names func(t int) string) {
	b.soft, b.seats = nil, nil
	if b.fitted == nil || b.fitted.unruled == nil {
		return
	}
	if b.soft = b.fitted.unruled.states[state]; b.soft == nil {
		return
	}
	b.softName = state
	b.seats = make([]int, b.k)
	for t := range b.seats {
		b.seats[t] = b.soft.class(names(t))
	}
}

// class returns the place of an option, -1 if it was never seen.
func (s *softState) class(name string) int {
	for i, c := range s.classes {
		if c == name {
			return i
		}
	}
	return -1
}

// expected returns what the fit expects of a voter, nil if that is nothing.
func (b *ballot) expected(v *voter) *softVoter {
	if b.fitted == nil || b.fitted.unruled == nil || v.human > 0 {
		return nil
	}
	return b.fitted.unruled.voters[v.unitKey()]
}

func (v *voter) unitKey() unitKey { return unitKey{v.id, v.version} }

// inMachine returns agreements and comparisons in the machine, and trust elsewhere.
func (b *ballot) inMachine(levels [3]counts) (k, n, outer float64) {
	here := levels[0].plus(levels[1])
	levels[0], levels[1] = counts{}, counts{}
	return float64(here.k) / 1000, float64(here.n) / 1000, posterior(&levels, b.mu, pull4)
}

// oneCoin returns O's trust.
func (b *ballot) oneCoin(v *voter, u *softVoter) float64 {
	if v.human > 0 {
		return v.p4
	}
	k, n, outer := b.inMachine(v.without(b.truth))
	if u != nil {
		k, n = k+u.k, n+u.n
	}
	return clampTrust((k + float64(pull4*outer)) / (n + pull4))
}

// scoreUnruled writes the scores of O or of D.
func (b *ballot) scoreUnruled(e int, dst []float64) {
	clear(dst)
	if e == iD {
		b.expectedPrior(dst)
	}
	for i := range b.voters {
		v := &b.voters[i]
		u := b.expected(v)
		if e == iO {
			dst[v.option] += float64(v.d * logOdds(b.oneCoin(v, u), b.k))
			continue
		}
		for t := range dst {
			dst[t] += float64(v.d * math.Log(b.expectedAnswer(v, u, int32(t), v.option)))
		}
	}
}

// expectedPrior writes the logarithms of D's prior.
func (b *ballot) expectedPrior(dst []float64) {
	sum := 0.
	for t := range dst {
		dst[t] = 1
		if c := b.classes[t]; c >= 0 && b.state != nil {
			if dst[t] += float64(b.state.truths[c]); int32(t) == b.truth {
				dst[t]--
			}
		}
		if b.soft != nil && b.seats[t] >= 0 {
			dst[t] += b.soft.truths[b.seats[t]]
		}
		sum += dst[t]
	}
	for t := range dst {
		dst[t] = math.Log(dst[t] / sum)
	}
}

// expectedAnswer returns the probability that v answers option l if t were right, as D has it.
func (b *ballot) expectedAnswer(v *voter, u *softVoter, t, l int32) float64 {
	hits, row := b.counted(v, t, l)
	th0 := v.p4
	if t != l {
		th0 = (1 - v.p4) / float64(b.k-1)
	}
	h, r := float64(hits), float64(row)
	if u != nil && b.soft != nil && b.seats[t] >= 0 {
		if cell := u.cells[b.softName]; cell != nil {
			w := len(b.soft.classes)
			of := cell[b.seats[t]*w : (b.seats[t]+1)*w]
			for _, s := range b.seats {
				if s >= 0 {
					r += of[s]
				}
			}
			if s := b.seats[l]; s >= 0 {
				h += of[s]
			}
		}
	}
	return (h + float64(pullCell*th0)) / (r + pullCell)
}

// mostExpected returns the largest log-likelihood ratio of t over r that an answer of v could
// give, as D has it.
func (b *ballot) mostExpected(v *voter, t, r int) float64 {
	most, u := 0., b.expected(v)
	for l := range int32(b.k) {
		most = max(most, b.expectedAnswer(v, u, int32(t), l)/b.expectedAnswer(v, u, int32(r), l))
	}
	return math.Log(most)
}
