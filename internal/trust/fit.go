package trust

import (
	"math"
)

// How much the experts are believed. Their scores become probabilities as
// softmax(g score), with a temperature g of each expert's own, and those are mixed:
//
//	g     = the one of the grid with the least sum of losses over the window, plus
//	        (ln(g/.3) / .5)^2 / 2, the negative logarithm of its prior
//	loss  = -ln of the probability of what a human chose, with that outcome taken
//	        out of the counts that the probability comes from (leave-one-out)
//	share = prior exp(-loss), normed: V has half of the prior, the others share the
//	        rest (of what O and D leave them, where these take part: unruled_fit.go);
//	        loss has caution added. Mixtures by losses are pseudo-BMA.
//
// Where only m of a panel of M have answered they repeat each other less, so
//
//	g(m)  = 1 / (1 + (m-1) r), with r = (1/g - 1) / (M-1)
//
// which is g at m = M and 1 at m = 1. Rounds in which everybody was asked differ in size, too: of
// one answer nothing is repeated. But small panels may also be those that repeat each other most, so
// outcomes say whether the temperature of an expert goes by size there: where the losses on n of them
// are less with g(m) than with g, by more than ln(n) / 2 (Schwarz 1978). A fit is made again when outcomes have grown by a
// fifth, so that all fits together cost a constant for each outcome.

// grid holds the temperatures among which the fit of an expert chooses.
var grid = [...]float64{.02, .035, .05, .08, .12, .18, .25, .35, .5, .7, 1, 1.4}

// The prior of a temperature is log-normal.
const (
	gCentre = .3
	gSpread = .5
)

// caution is how many standard errors of the difference between its loss and that of
// the plain vote are added to the loss of an expert before the experts are weighed, so
// that one that was only lucky on few outcomes does not displace the vote: the
// correction of pseudo-BMA weights by Yao, Vehtari, Simpson and Gelman (Using stacking
// to average Bayesian predictive distributions, Bayesian Analysis 13, 2018), who take
// half a standard error of each model's own loss.
const caution = .5

// A fit is what the outcomes of a machine say of the experts.
type fit struct {
	n      int64 // outcomes of the machine when it was made; -1 never
	g      [experts]float64
	loss   [experts]float64 // leave-one-out log-loss over the window, with what caution adds
	bySize [experts]bool    // g is that of a mean panel, and goes by the number of votes where all were asked, too
	panel  float64          // mean number of votes per outcome
	stack  *stack           // nil below StackingFrom outcomes
	scored int              // outcomes of the window in loss
	// unruled is what O and D go by; nil as long as there are no rounds without a human's word.
	unruled *unruledFit
}

func initialFit() fit {
	f := fit{n: -1}
	for e := range iS {
		f.g[e] = grid[leastLoss(&[len(grid)]float64{})]
	}
	f.g[iS] = 1
	return f
}

// penalty returns the negative log-prior of a temperature.
func penalty(g float64) float64 {
	d := math.Log(g/gCentre) / gSpread
	return .5 * float64(d*d)
}

// leastLoss returns the place in the grid of the temperature with the least loss,
// penalty included.
func leastLoss(loss *[len(grid)]float64) int {
	best, least := 0, math.Inf(1)
	for i, g := range grid {
		if l := loss[i] + penalty(g); l < least {
			best, least = i, l
		}
	}
	return best
}

// dueForRefit reports whether the schedule asks for a fit: after each of the
// first ten outcomes, then when their number has grown by a fifth.
func (m *pool) dueForRefit() bool {
	return m.n > 0 && (m.n <= 10 || m.n*5 >= m.fit.n*6)
}

// losses are those of one outcome, left out, by expert and temperature.
type losses [iS][len(grid)]float64

// of writes what the experts of a scored ballot lose; with by, at the temperatures of its number of votes
// where panels have a mean size.
func (x *losses) of(b *ballot, truth int32, by bool, panel float64) {
	for i, g := range grid {
		if by {
			g = temperature(g, len(b.voters), panel)
		}
		for e := range x {
			x[e][i] = logLoss(b.scores[e], g, truth)
		}
	}
}

// sizes returns the mean number of votes of the outcomes of the window, and whether they differ in it.
func (m *pool) sizes() (mean float64, differ bool) {
	for _, o := range m.window {
		mean += float64(len(o.votes))
		differ = differ || len(o.votes) != len(m.window[0].votes)
	}
	return mean / max(1, float64(len(m.window))), differ
}

// fitOutcomes fits the temperatures, and the stacking expert where there is enough to
// learn from, by leave-one-out loss over the window.
func (m *pool) fitOutcomes(l *Ledger) fit {
	f := fit{n: m.n, scored: len(m.window)}
	f.g[iS] = 1
	panel, differ := m.sizes()
	f.panel = panel
	each, bySize := make([]losses, len(m.window)), []losses(nil)
	if differ {
		bySize = make([]losses, len(m.window))
	}
	rows := make([]stackRow, len(m.window))
	b := ballot{pool: m, bar: m.pairs.bar()}
	for j, o := range m.window {
		b.reopen(l, o)
		b.score()
		each[j].of(&b, o.truth, false, panel)
		if differ {
			bySize[j].of(&b, o.truth, true, panel)
		}
		rows[j] = newStackRow(&b, o)
	}
	plain := f.settle(each, bySize)
	if m.n >= StackingFrom {
		var stacked []float64
		f.stack, stacked = fitStack(m, rows, f.g[iL4])
		f.loss[iS] = charged(stacked, plain, caution)
	}
	return f
}

// settle chooses the temperatures of all experts but S, and with them their losses: of those at each
// temperature, and of those where it goes by size, nil if all panels are of one. It returns those of V on
// each outcome.
func (f *fit) settle(each, bySize []losses) (plain []float64) {
	for e := range iS {
		own := f.cool(e, len(each), func(j int) *[len(grid)]float64 { return &each[j][e] }, len(bySize) > 0, func(j int) *[len(grid)]float64 { return &bySize[j][e] })
		if e == iV {
			plain = own
		}
		f.loss[e] = charged(own, plain, caution)
	}
	return plain
}

// cool chooses the temperature of an expert by its losses on n outcomes, and where panels differ in size whether it
// goes by that. It returns the losses with it.
func (f *fit) cool(e, n int, each func(j int) *[len(grid)]float64, differ bool, bySize func(j int) *[len(grid)]float64) []float64 {
	at, own := chosen(n, each)
	f.bySize[e] = false
	if differ {
		sized, less := chosen(n, bySize)
		if sum(less)+penalty(grid[sized])+float64(.5*math.Log(float64(n))) < sum(own)+penalty(grid[at]) {
			at, own, f.bySize[e] = sized, less, true
		}
	}
	f.g[e] = grid[at]
	return own
}

// chosen returns the place of the temperature with the least loss over n outcomes, and the loss
// on each at that.
func chosen(n int, each func(j int) *[len(grid)]float64) (at int, own []float64) {
	var sum [len(grid)]float64
	for j := range n {
		for i, loss := range each(j) {
			sum[i] += loss
		}
	}
	at = leastLoss(&sum)
	own = make([]float64, n)
	for j := range own {
		own[j] = each(j)[at]
	}
	return at, own
}

func sum(list []float64) (all float64) {
	for _, v := range list {
		all += v
	}
	return all
}

// charged returns the sum of the losses of an expert, and so many standard errors for how
// little is known of the difference between it and that of V.
func charged(own, plain []float64, caution float64) float64 {
	sum, mean, square := 0., 0., 0.
	for j := range own {
		sum, mean = sum+own[j], mean+(own[j]-plain[j])
	}
	mean /= max(1, float64(len(own)))
	for j := range own {
		d := own[j] - plain[j] - mean
		square += float64(d * d)
	}
	return sum + float64(caution*math.Sqrt(square))
}

// reopen makes b the ballot of a past outcome with that outcome left out.
func (b *ballot) reopen(l *Ledger, o *past) {
	b.state, b.k, b.classes = b.pool.states[o.state], len(o.classes), o.classes
	b.truth, b.own = o.truth, b.pool.ownOf(o)
	b.seat(b.state.name, func(t int) string { return b.state.classes[o.classes[t]] })
	b.voters = b.voters[:0]
	for i := range o.votes {
		v := &o.votes[i]
		w := voter{id: v.id(l.units), option: v.option, member: v.member, order: v.order, place: i, cost: v.cost, said: v.option}
		if v.unit < 0 {
			w.human = l.humans.chance(v.human)
		} else {
			b.fillKnown(l, &w, v.unit)
			w.version, w.own = l.units.list[v.unit].version, true
		}
		b.voters = append(b.voters, w)
	}
}

// fillKnown fills in what the ledger knows of a unit.
func (b *ballot) fillKnown(l *Ledger, v *voter, unit int32) {
	u := &l.units.list[unit]
	v.model = u.model
	rest := u.tally
	prior := u.prior
	if v.member >= 0 {
		m := &b.pool.list[v.member]
		v.cell = b.state.cell(v.member)
		rest, prior = rest.minus(m.tally), prior.minus(m.prior)
		other, otherPrior := m.tally, m.prior
		if v.cell != nil {
			v.levels[0] = v.cell.tally.inThousandths().plus(v.cell.prior)
			other, otherPrior = other.minus(v.cell.tally), otherPrior.minus(v.cell.prior)
		}
		v.levels[1] = other.inThousandths().plus(otherPrior)
	}
	v.levels[2] = rest.inThousandths().plus(prior)
}

func (c counts) inThousandths() counts { return counts{1000 * c.k, 1000 * c.n} }

// shares writes the weights of the experts in a mixture of those in the set. V
// has half of the prior, the others share the rest.
func (f *fit) shares(set Experts) (a [experts]float64) {
	if f.stack == nil {
		set &^= ExpertS
	}
	if f.unruled == nil {
		set &^= unruledExperts
	}
	if set == 0 {
		set = ExpertV
	}
	others, least := 0., math.Inf(1)
	for e := range a {
		if set&(1<<e) == 0 {
			continue
		}
		least = min(least, f.loss[e])
		if e != iV && unruledExperts&(1<<e) == 0 {
			others += portion(e)
		}
	}
	sum := 0.
	for e := range a {
		if set&(1<<e) == 0 {
			continue
		}
		a[e] = expertPrior(e, set, others) * math.Exp(least-f.loss[e])
		sum += a[e]
	}
	for e := range a {
		a[e] /= sum
	}
	return a
}

// expertPrior returns the prior of an expert in a mixture, of whose others the parts
// come to so much: V has half, the others share the rest. L16 and W, which say much
// the same as L4 and V, have half a part. O and D share a half, which is
// taken from all.
func expertPrior(e int, set Experts, parts float64) float64 {
	if with := set & unruledExperts; with != 0 {
		if with&(1<<e) != 0 {
			return unruledPrior * unruledPart(e, with)
		}
		return (1 - unruledPrior) * expertPrior(e, set&^with, parts)
	}
	switch {
	case e == iV && parts == 0:
		return 1
	case e == iV:
		return .5
	case set&ExpertV == 0:
		return portion(e) / parts
	}
	return .5 * portion(e) / parts
}

// unruledPart returns the part of O or D in what those of the set share.
func unruledPart(e int, set Experts) float64 {
	switch {
	case set&^(1<<e) == 0:
		return 1
	case e == iO:
		return oneCoinPart
	}
	return 1 - oneCoinPart
}

func portion(e int) float64 {
	if e == iL16 || e == iW {
		return .5
	}
	return 1
}

// at returns the temperature of an expert where all were asked, who are m.
func (f *fit) at(e, m int) float64 {
	if f.bySize[e] {
		return temperature(f.g[e], m, f.panel)
	}
	return f.g[e]
}

// temperature returns g for m votes, where the fit saw panels of a mean size: the
// fewer votes, the less they repeat each other, and the more each may count.
func temperature(g float64, m int, panel float64) float64 {
	if g >= 1 || panel <= 1 || m < 1 {
		return g
	}
	r := (1/g - 1) / (panel - 1)
	return 1 / (1 + float64(float64(m-1)*r))
}
