package trust

import (
	"math"
	"slices"
)

// The experts by index. Their scores follow section "experts" of docs/decisions.md.
const (
	iV = iota
	iL4
	iL16
	iC
	iS
	experts // their number
)

var expertNames = [experts]string{"V", "L4", "L16", "C", "S"}

// Strengths of the priors of trust, in outcomes.
const (
	pullMean  = 20. // of mu toward priorMean
	priorMean = .7
	aboveLuck = .05 // mu stays this much above guessing
	pull4     = 4.  // from each level to the one below
	pull16    = 16.
	pullCell  = 4. // of a confusion row toward its symmetric form
)

// Trust stays within these, so no vote is ever proof.
const (
	leastTrust = .02
	mostTrust  = .98
)

// A voter is a live vote with all that its weight depends on.
type voter struct {
	id     string
	option int32
	member int32 // -1 if the machine does not know it
	cell   *cell
	levels [3]counts // state, other states, other machines: in thousandths
	model  string
	order  string
	human  float64 // probability that this human is right; 0 for others
	own    bool    // its own outcome is in the counts and has to be left out
	place  int     // in Question.Votes

	p4, p16 float64
	w4, w16 float64
	d       float64
}

// A ballot is a round to be scored. Voters are sorted by id.
type ballot struct {
	pool    *pool // nil if the machine is unknown
	state   *stateCounts
	k       int     // options
	classes []int32 // by option, the class in the state, -1 if unknown
	truth   int32   // option to be left out of the counts, -1 if none is
	own     counts  // to be left out of pool.all
	voters  []voter
	bar     float64

	mu     float64
	scores [experts][]float64 // by option; iS only where there is a stacking fit
}

// score fills in mu, the voters' weights and the scores of V, L4, L16 and C.
func (b *ballot) score() {
	b.mu = b.mean()
	b.weigh()
	b.discount()
	for e := range iS {
		if cap(b.scores[e]) < b.k {
			b.scores[e] = make([]float64, b.k)
		}
		b.scores[e] = b.scores[e][:b.k]
		clear(b.scores[e])
	}
	b.tally()
	b.confusion()
}

// mean returns mu: how often anybody but humans agrees in this machine, at least
// a little above guessing, so that nobody unknown is counted against its vote.
func (b *ballot) mean() float64 {
	var all counts
	if b.pool != nil {
		all = b.pool.all.minus(b.own)
	}
	return math.Min(mostTrust, math.Max(1/float64(b.k)+aboveLuck, all.mean()))
}

// mean returns how often anybody but humans agrees in this machine.
func (m *pool) mean() float64 { return m.all.mean() }

func (c counts) mean() float64 {
	return (float64(c.k) + pullMean*priorMean) / (float64(c.n) + pullMean)
}

// posterior returns the mean of the Beta posterior of agreeing, from the levels
// outside in, each a prior of strength c to the next.
func posterior(levels *[3]counts, mu, c float64) float64 {
	p := mu
	for i := len(levels) - 1; i >= 0; i-- {
		p = (float64(levels[i].k)/1000 + float64(c*p)) / (float64(levels[i].n)/1000 + c)
	}
	return p
}

func clampTrust(p float64) float64 { return math.Min(mostTrust, math.Max(leastTrust, p)) }

// logOdds returns what a vote of somebody right with probability p adds to its
// option, of k.
func logOdds(p float64, k int) float64 { return math.Log(float64(p*float64(k-1)) / (1 - p)) }

func (b *ballot) weigh() {
	for i := range b.voters {
		v := &b.voters[i]
		v.d = 1
		if v.human > 0 {
			v.p4, v.p16 = clampTrust(v.human), clampTrust(v.human)
		} else {
			levels := v.levels
			if v.own {
				levels[0].n -= 1000
				if v.option == b.truth {
					levels[0].k -= 1000
				}
			}
			v.p4 = clampTrust(posterior(&levels, b.mu, pull4))
			v.p16 = clampTrust(posterior(&levels, b.mu, pull16))
		}
		if b.k > 1 {
			v.w4, v.w16 = logOdds(v.p4, b.k), logOdds(v.p16, b.k)
		}
	}
}

// discount gives each voter of a bloc less, the more its errors go with those of
// stronger members: the strongest keeps its full weight.
func (b *ballot) discount() {
	if b.pool == nil {
		return
	}
	for i := range b.voters {
		v := &b.voters[i]
		if v.human > 0 {
			continue
		}
		sum := 0.
		for j := range b.voters {
			w := &b.voters[j]
			if j != i && w.option == v.option && w.human == 0 && w.before(v) {
				sum += b.pool.pairs.rho(v, w, b.bar)
			}
		}
		v.d = 1 / (1 + sum)
	}
}

// before reports whether v ranks before w: by weight, then by id.
func (v *voter) before(w *voter) bool {
	a, b := math.Abs(v.w4), math.Abs(w.w4)
	return a > b || a == b && v.id < w.id
}

// tally scores V, L4 and L16.
func (b *ballot) tally() {
	plain := logOdds(b.mu, b.k)
	for i := range b.voters {
		v := &b.voters[i]
		one := plain
		if v.human > 0 {
			one = v.w4
		}
		b.scores[iV][v.option] += one
		b.scores[iL4][v.option] += float64(v.d * v.w4)
		b.scores[iL16][v.option] += float64(v.d * v.w16)
	}
}

// confusion scores C: how likely these answers are if each option in turn were
// the right one.
func (b *ballot) confusion() {
	prior := b.prior()
	for t := range b.k {
		sum := math.Log(prior[t])
		for i := range b.voters {
			v := &b.voters[i]
			sum += float64(v.d * math.Log(b.likelihood(v, int32(t))))
		}
		b.scores[iC][t] = sum
	}
}

// likelihood returns the probability that v answers as it did if option t were
// right.
func (b *ballot) likelihood(v *voter, t int32) float64 { return b.answer(v, t, v.option) }

// answer returns the probability that v answers option l if t were right.
func (b *ballot) answer(v *voter, t, l int32) float64 {
	th0 := v.p4
	if l != t {
		th0 = (1 - v.p4) / float64(b.k-1)
	}
	if v.cell == nil || v.human > 0 || b.classes[t] < 0 {
		return th0
	}
	var hits, row int32
	for o := range b.k {
		row += v.cell.at(b.classes[t], b.classes[o])
	}
	hits = v.cell.at(b.classes[t], b.classes[l])
	if v.own && t == b.truth {
		row--
		if l == v.option {
			hits--
		}
	}
	return (float64(hits) + float64(pullCell*th0)) / (float64(row) + pullCell)
}

// prior returns the probability of each option before anybody spoke, from the
// outcomes of the state.
func (b *ballot) prior() []float64 {
	prior := make([]float64, b.k)
	sum := 0.
	for t := range prior {
		prior[t] = 1
		if c := b.classes[t]; c >= 0 && b.state != nil {
			prior[t] += float64(b.state.truths[c])
			if int32(t) == b.truth {
				prior[t]--
			}
		}
		sum += prior[t]
	}
	for t := range prior {
		prior[t] /= sum
	}
	return prior
}

// softmax writes the probabilities that belong to g times the scores.
func softmax(dst, scores []float64, g float64) {
	top := slices.Max(scores)
	sum := 0.
	for t, s := range scores {
		dst[t] = math.Exp(float64(g * (s - top)))
		sum += dst[t]
	}
	for t := range dst {
		dst[t] /= sum
	}
}

// logLoss returns -ln of the probability of option y under softmax of g times the
// scores, at most that of a billionth.
func logLoss(scores []float64, g float64, y int32) float64 {
	top := slices.Max(scores)
	sum := 0.
	for _, s := range scores {
		sum += math.Exp(float64(g * (s - top)))
	}
	return math.Min(mostLoss, math.Log(sum)-float64(g*(scores[y]-top)))
}

// lossAt is logLoss at temperature 1, unbounded.
func lossAt(scores []float64, y int32) float64 {
	top := slices.Max(scores)
	sum := 0.
	for _, s := range scores {
		sum += math.Exp(s - top)
	}
	return math.Log(sum) - (scores[y] - top)
}

// mostLoss is -ln of the least probability that is ever charged, a billionth.
const mostLoss = 20.72326583694641
