package trust

import (
	"math"
	"slices"
)

// What each vote counts for, and what the experts make of all of them. Of K options,
// for a voter v with k agreements in n comparisons at a level:
//
//	mu    = (sum of u k/n + 20*.7) / (sum of u + 20), over everybody in the machine
//	        but humans, not below 1/K + .05; u = 5n / (n + 4): the random-effects
//	        mean of workers, of whom none counts for more than five answers
//	p     = (k + c*p') / (n + c), where p' is the p of the level further out:
//	        mu, other machines, other states, this state; c is 4 (p4) or 16 (p16);
//	        within [.02, .98]. The mean of a Beta posterior.
//	w     = ln(p (K-1) / (1-p)): what one vote adds to its option, if the others
//	        are equally likely where it is wrong (Nitzan, Paroush 1982)
//	o     = 1 - the largest copy, over those of the same option that rank before v:
//	        copies are one vote (copies.go)
//	d     = o / (1 + sum of rho), over the same: who errs together counts less together
//	V     = sum of o w at p = mu        a plain vote
//	L4    = sum of d w, p = p4          a vote weighed by records
//	L16   = sum of d w, p = p16         likewise, slower to believe them
//	C     = ln prior + sum of d ln P    naive Bayes over who says what when
//	P     = (h + 4 q) / (r + 4): v proposed this option in h of r rounds in which t
//	        was right; q is p4 if the option is t, else (1-p4) / (K-1)
//	W     = 3 * sum of o times the alignment of v, Wilson's lower bound of its record in the
//	        machine, as alignmentMargin weighs votes
//	prior = (1 + rounds in which t was right) / their sum, in the state
//
// S, the sixth, is fitted: stack.go; O and D learn from rounds without a human's word, too:
// unruled_fit.go. docs/decisions.md says how they compare. The sums of
// products are written float64(a*b), which keeps a compiler from fusing them, so that the
// scores are the same on every machine.

// The experts by index. Their scores follow section "experts" of docs/decisions.md.
const (
	iV = iota
	iL4
	iL16
	iC
	iW
	iS
	iO
	iD
	experts // their number
)

var expertNames = [experts]string{"V", "L4", "L16", "C", "W", "S", "O", "D"}

// Strengths of the priors of trust, in outcomes.
const (
	pullMean  = 20. // of mu toward priorMean
	priorMean = .7
	aboveLuck = .05 // mu stays this much above guessing
	pull4     = 4.  // from each level to the one below
	pull16    = 16.
	pullCell  = 4. // of a confusion row toward its symmetric form
	perWorker = 4. // answers after which another one of the same worker tells mu half as much

	alignmentScale = 3. // brings alignments near to log-odds, so that temperatures fit both
)

// Trust stays within these, so no vote is ever proof.
const (
	leastTrust = .02
	mostTrust  = .98
)

// A voter is a live vote with all that its weight depends on.
type voter struct {
	id      string
	version string // "" for humans
	option  int32
	member  int32 // -1 if the machine does not know it
	cell    *cell
	levels  [3]counts // state, other states, other machines: in thousandths
	model   string
	order   string
	human   float64 // probability that this human is right; 0 for others
	own     bool    // its own outcome is in the counts and has to be left out,
	said    int32   // in which it proposed this option
	place   int     // in Question.Votes
	cost    int64   // pico-dollars

	p4, p16 float64
	w4, w16 float64
	align   float64   // the weight of W
	rho     float64   // sum of correlations with those of its option that rank before it
	whole   float64   // 1 less how far it is a copy of one of these (copies.go)
	d       float64   // whole/(1+rho)
	logs    []float64 // by option, of the probability to answer so if it were right
	rows    []int32   // by option, how often it was right in cell; nil if not tabulated
	memo    *memo     // nil if not tabulated, or options are few
}

// A ballot is a round to be scored. Voters are sorted by id.
type ballot struct {
	pool    *pool // nil if the machine is unknown
	fitted  *fit  // nil if the machine is unknown, or the ballot is not to be mixed
	state   *stateCounts
	k       int     // options
	classes []int32 // by option, the class in the state, -1 if unknown
	truth   int32   // option to be left out of the counts, -1 if none is
	own     crowd   // to be left out of pool.crowd
	voters  []voter
	bar     float64

	mu     float64
	prior  []float64
	logs   []float64          // of prior
	scores [experts][]float64 // by option; those from iS on only where there is a fit of them
	room   []float64          // of all voter.logs

	soft     *softState // what is expected of the state (unruled_score.go); nil if nothing is
	softName string
	seats    []int // by option, its place in soft; -1 if there is none
}

// score fills in mu, the voters' weights and the scores of all experts before S.
func (b *ballot) score() {
	b.mu = b.mean()
	for i := range b.voters {
		b.weigh(&b.voters[i])
	}
	b.discount()
	b.judgeAnswers()
	b.add()
}

// add makes the scores from what is known of the voters.
func (b *ballot) add() {
	if cap(b.scores[0]) < b.k {
		room := make([]float64, iS*b.k)
		for e := range iS {
			b.scores[e] = room[e*b.k : (e+1)*b.k : (e+1)*b.k]
		}
	}
	for e := range iS {
		b.scores[e] = b.scores[e][:b.k]
		clear(b.scores[e])
	}
	for i := range b.voters {
		b.voters[i].d = b.voters[i].whole / (1 + b.voters[i].rho)
	}
	b.tally()
	b.confusion()
}

// mean returns mu: how often anybody but humans agrees in this machine, at least
// a little above guessing, so that nobody unknown is counted against its vote.
func (b *ballot) mean() float64 {
	var all crowd
	if b.pool != nil {
		all = b.pool.crowd.minus(b.own)
	}
	return min(mostTrust, max(1/float64(b.k)+aboveLuck, all.mean()))
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

func clampTrust(p float64) float64 { return min(mostTrust, max(leastTrust, p)) }

// logOdds returns what a vote of somebody right with probability p adds to its
// option, of k.
func logOdds(p float64, k int) float64 { return math.Log(float64(p*float64(k-1)) / (1 - p)) }

// weigh sets what the voter's word counts for.
func (b *ballot) weigh(v *voter) {
	v.rho, v.whole, v.d = 0, 1, 1
	if v.human > 0 {
		v.p4, v.p16 = clampTrust(v.human), clampTrust(v.human)
	} else {
		levels := v.without(b.truth)
		v.p4 = clampTrust(posterior(&levels, b.mu, pull4))
		v.p16 = clampTrust(posterior(&levels, b.mu, pull16))
		here := levels[0].plus(levels[1])
		v.align = alignmentScale * wilson(float64(here.k)/1000, float64(here.n)/1000, Z)
	}
	if b.k > 1 {
		v.w4, v.w16 = logOdds(v.p4, b.k), logOdds(v.p16, b.k)
	}
	if v.human > 0 {
		v.align = v.w4
	}
}

// without returns the levels without what the voter's own outcome has added, where truth is right.
func (v *voter) without(truth int32) [3]counts {
	levels := v.levels
	if v.own {
		levels[0].n -= 1000
		if v.said == truth {
			levels[0].k -= 1000
		}
	}
	return levels
}

// discount gives each voter of a bloc less, the more its errors go with those of
// stronger members: the strongest keeps its full weight.
func (b *ballot) discount() {
	for i := range b.voters {
		for j := range i {
			b.copies(&b.voters[i], &b.voters[j])
		}
	}
	for i := range b.voters {
		for j := range i {
			b.compare(&b.voters[i], &b.voters[j])
		}
	}
}

// ranked returns the stronger of two voters first; it is false unless both say the same
// and it is known how they err.
func (b *ballot) ranked(v, w *voter) (first, second *voter, comparable bool) {
	if b.pool == nil || v.option != w.option || v.human > 0 || w.human > 0 {
		return nil, nil, false
	}
	if v.before(w) {
		return v, w, true
	}
	return w, v, true
}

// copies takes what is a copy away from the second of two voters.
func (b *ballot) copies(v, w *voter) {
	if v, w, ok := b.ranked(v, w); ok {
		w.whole = min(w.whole, 1-b.copied(v, w))
	}
}

// compare counts the correlation of two voters against the second; a copy counts against
// nobody once more.
func (b *ballot) compare(v, w *voter) {
	if v, w, ok := b.ranked(v, w); ok {
		w.rho += float64(v.whole * b.pool.pairs.rho(v, w, b.bar))
	}
}

// before reports whether v ranks before w: by weight, then by id.
func (v *voter) before(w *voter) bool {
	a, b := math.Abs(v.w4), math.Abs(w.w4)
	return a > b || a == b && v.id < w.id
}

// tally scores V, L4, L16 and W.
func (b *ballot) tally() {
	plain := logOdds(b.mu, b.k)
	for i := range b.voters {
		v := &b.voters[i]
		one := plain
		if v.human > 0 {
			one = v.w4
		}
		b.scores[iV][v.option] += float64(v.whole * one)
		b.scores[iL4][v.option] += float64(v.d * v.w4)
		b.scores[iL16][v.option] += float64(v.d * v.w16)
		b.scores[iW][v.option] += float64(v.whole * v.align)
	}
}

// confusion scores C: how likely these answers are if each option in turn were
// the right one.
func (b *ballot) confusion() {
	dst := b.scores[iC]
	copy(dst, b.logs)
	for i := range b.voters {
		v := &b.voters[i]
		for t, l := range v.logs {
			dst[t] += float64(v.d * l)
		}
	}
}

// judgeAnswers fills in the prior and how likely each answer is if each option
// were right.
func (b *ballot) judgeAnswers() {
	b.setPrior()
	if need := len(b.voters) * b.k; cap(b.room) < need {
		b.room = make([]float64, need)
	}
	for i := range b.voters {
		b.voters[i].logs = b.room[i*b.k : (i+1)*b.k : (i+1)*b.k]
		b.judgeAnswer(&b.voters[i])
	}
}

func (b *ballot) judgeAnswer(v *voter) {
	for t := range v.logs {
		if v.memo == nil {
			v.logs[t] = math.Log(b.answer(v, int32(t), v.option))
		} else {
			v.logs[t] = b.word(v, int32(t), v.option).log
		}
	}
}

// answer returns the probability that v answers option l if t were right.
func (b *ballot) answer(v *voter, t, l int32) float64 {
	hits, row := b.counted(v, t, l)
	return v.chance(t == l, hits, row, b.k)
}

// counted returns how often v proposed option l where t was right, of how often it was.
func (b *ballot) counted(v *voter, t, l int32) (hits, row int32) {
	if v.cell == nil || v.human > 0 || b.classes[t] < 0 || v.rows != nil && v.rows[t] == 0 {
		return 0, 0
	}
	hits, row = v.cell.at(b.classes[t], b.classes[l]), b.row(v, t)
	if v.own && t == b.truth {
		row--
		if l == v.said {
			hits--
		}
	}
	return hits, row
}

// chance returns the probability of an answer, which agrees with the option that is
// right or does not, from counts of both; of k options.
func (v *voter) chance(agrees bool, hits, row int32, k int) float64 {
	th0 := v.p4
	if !agrees {
		th0 = (1 - v.p4) / float64(k-1)
	}
	return (float64(hits) + float64(pullCell*th0)) / (float64(row) + pullCell)
}

// row returns how often option t was right in the cell of v.
func (b *ballot) row(v *voter, t int32) (n int32) {
	if v.rows != nil {
		return v.rows[t]
	}
	for o := range b.k {
		n += v.cell.at(b.classes[t], b.classes[o])
	}
	return n
}

// setPrior sets the probability of each option before anybody spoke, from the
// outcomes of the state.
func (b *ballot) setPrior() {
	if cap(b.prior) < b.k {
		room := make([]float64, 2*b.k)
		b.prior, b.logs = room[:b.k:b.k], room[b.k:]
	}
	b.prior, b.logs = b.prior[:b.k], b.logs[:b.k]
	sum := 0.
	for t := range b.prior {
		n := 1.
		if c := b.classes[t]; c >= 0 && b.state != nil {
			n += float64(b.state.truths[c])
			if int32(t) == b.truth {
				n--
			}
		}
		b.prior[t] = n
		sum += n
	}
	for t := range b.prior {
		b.prior[t] /= sum
		b.logs[t] = math.Log(b.prior[t])
	}
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
	return min(mostLoss, lossAt(scores, g, y))
}

// lossAt is logLoss unbounded.
func lossAt(scores []float64, g float64, y int32) float64 {
	top := slices.Max(scores)
	sum := 0.
	for _, s := range scores {
		sum += math.Exp(float64(g * (s - top)))
	}
	return math.Log(sum) - float64(g*(scores[y]-top))
}

// mostLoss is -ln of the least probability that is ever charged, a billionth.
const mostLoss = 20.72326583694641
