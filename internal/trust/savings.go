package trust

import (
	"fmt"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// Would asking one specialist after the other have been as good as asking all? The
// ledger answers by replaying the latest rounds in which everyone was asked, so every
// answer is known:
//
//  1. The round is opened again as a ballot, without what it has taught itself.
//  2. All votes are judged: was the most probable option the truth, and what did the
//     votes cost?
//  3. The same round is asked again in waves (wave_plan.go), which see only the answers that
//     they have paid for, until asking stops; that is judged likewise.
//  4. Both are summed, each round with the number of rounds that it stands for (an
//     audited round with the inverse of its probability).
//
// Where options tie for the most probable, a hit counts as one in so many.

// ReplayRounds is the number of rounds in which everyone was asked that
// [Ledger.Savings] replays, the latest. SavingsEvery is after how many outcomes of
// a machine they are to be replayed again.
const (
	ReplayRounds = 200
	SavingsEvery = 50
)

// When asking one after the other is worth it.
const (
	worthAccuracy = .01 // may be lost
	worthCost     = .1  // must be saved
)

// Savings say what asking one after the other would have saved in rounds in which
// everyone was asked at once, and what it would have cost in accuracy. Rounds that
// a human saw by chance count as often as there are rounds that they stand for.
type Savings struct {
	Rounds             int64            `json:"rounds"`
	AccuracyAll        exact.Billionths `json:"accuracyAll"`
	AccuracySequential exact.Billionths `json:"accuracySequential"`
	VotesAll           int64            `json:"votesAll"` // in all rounds together
	VotesSequential    int64            `json:"votesSequential"`
	CostAll            exact.Money      `json:"costAll"`
	CostSequential     exact.Money      `json:"costSequential"`
}

// String says what is saved of the cost, or of the votes where they are free, and what
// that does to accuracy.
func (s Savings) String() string {
	saved := 1 - float64(s.CostSequential)/float64(s.CostAll)
	what := "cost"
	if s.CostAll == 0 {
		saved, what = 1-float64(s.VotesSequential)/max(1, float64(s.VotesAll)), "votes"
	}
	return fmt.Sprintf("%.0f %% of the %s saved, accuracy %.3f instead of %.3f", 100*saved, what, s.AccuracySequential.Float(), s.AccuracyAll.Float())
}

// Worth reports whether to ask one after the other: no more than a hundredth of
// accuracy is lost, or one round where a hundredth is less than that, and at least
// a tenth of the cost is saved, or of the votes where they are free. Otherwise the
// panel is weak or correlated, and asking everyone at once is quicker. Nothing is
// worth it before there are rounds.
func (s Savings) Worth() bool {
	if s.Rounds == 0 {
		return false
	}
	all, part := float64(s.CostAll), float64(s.CostSequential)
	if s.CostAll == 0 {
		all, part = float64(s.VotesAll), float64(s.VotesSequential)
	}
	lost := max(worthAccuracy, 1/float64(s.Rounds))
	return s.AccuracySequential.Float() >= s.AccuracyAll.Float()-lost-1e-9 && part <= float64((1-worthCost)*all)
}

// Savings replays the latest rounds of a machine in which everyone was asked, each
// judged by what the others teach, under a policy with probability tau.
func (l *Ledger) Savings(machine string, policy Policy, tau exact.Billionths) Savings {
	var s Savings
	m := l.pools[machine]
	if m == nil {
		return s
	}
	policy = policy.normal()
	f := m.fit.judge()
	r := replay{l: l, m: m, fit: f, tau: tau, mix: newMixture(*f, policy.Experts, nil)}
	for i := len(m.window) - 1; i >= 0 && s.Rounds < ReplayRounds; i-- {
		if o := m.window[i]; o.stands > 0 && len(o.votes) > 0 {
			s.Rounds++
			r.weight += o.stands
			r.everyone(o)
			r.waves(o)
		}
	}
	r.all.into(r.weight, &s.AccuracyAll, &s.VotesAll, &s.CostAll)
	r.part.into(r.weight, &s.AccuracySequential, &s.VotesSequential, &s.CostSequential)
	return s
}

// A replay asks for the votes of past rounds again.
type replay struct {
	l         *Ledger
	m         *pool
	fit       *fit
	mix       mixture
	tau       exact.Billionths
	weight    float64 // rounds that those replayed stand for
	all, part expense
}

// An expense is what asking came to.
type expense struct{ right, votes, cost float64 }

func (e *expense) into(weight float64, accuracy *exact.Billionths, votes *int64, cost *exact.Money) {
	*accuracy = billionths(e.right / max(1, weight))
	*votes, *cost = int64(math.Round(e.votes)), exact.Money(math.Round(e.cost))
}

// reopen returns the ballot of a past round, scored.
func (r *replay) reopen(o *past) *ballot {
	b := &ballot{pool: r.m, fitted: r.fit, bar: r.m.pairs.bar()}
	b.reopen(r.l, o)
	b.score()
	return b
}

// everyone judges a past round with all its votes.
func (r *replay) everyone(o *past) {
	b := r.reopen(o)
	for i := range b.voters {
		if v := &b.voters[i]; v.human == 0 {
			r.all.votes += o.stands
			r.all.cost += float64(o.stands * float64(v.cost))
		}
	}
	r.mix.m, r.mix.all = len(b.voters), true
	r.all.right += float64(o.stands * credit(r.mix.of(b), o.truth))
	r.mix.all = false
}

// waves judges it by waves. Humans were not asked: they had spoken before.
func (r *replay) waves(o *past) {
	b := r.reopen(o)
	w := &search{b: b.fork(len(b.voters)), tau: r.tau, mix: r.mix}
	w.b.voters = w.b.voters[:0]
	for _, v := range b.voters {
		v.rho = 0
		if v.human > 0 {
			w.b.voters = append(w.b.voters, v)
		} else {
			b.tabulate(&v)
			w.open = append(w.open, v)
		}
	}
	w.b.add()
	for len(w.open) > 0 {
		w.inform("")
		wave := w.next(Asking{Tau: r.tau, Patient: true})
		if len(wave.Ask) == 0 {
			break
		}
		r.part.votes += float64(o.stands * float64(len(wave.Ask)))
		r.part.cost += float64(o.stands * float64(wave.Cost))
		w.collect(wave.Ask)
	}
	w.mix.m = len(w.b.voters)
	r.part.right += float64(o.stands * credit(w.mix.of(w.b), o.truth))
}

// collect moves those who were asked from the open to the voters, with what they said.
func (s *search) collect(asked []int) {
	answered := make([]bool, len(s.open))
	for _, i := range asked {
		v := s.open[i]
		v.option, answered[i] = v.said, true
		s.b.join(v)
	}
	rest := s.open[:0]
	for i := range s.open {
		if !answered[i] {
			rest = append(rest, s.open[i])
		}
	}
	s.open = rest
	s.b.add()
}

// credit returns 1 if the most probable option is the truth, a share for ties.
func credit(p []float64, truth int32) float64 {
	ties, holds := 0., false
	top := slices.Max(p)
	for t, v := range p {
		if v == top {
			ties++
			holds = holds || int32(t) == truth
		}
	}
	if holds {
		return 1 / ties
	}
	return 0
}
