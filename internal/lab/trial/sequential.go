package trial

import (
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// What asking in waves saves on given data. The ledger learns from the first questions;
// each other question is then decided twice: with all its answers, and with those that
// waves would have asked for until the probability reaches tau. Both count ties as
// shares. Costs are those of the data. Beside that stands how often the engine itself
// would have gone back to asking everyone, by the same replay that it makes
// (trust.Ledger.Savings).

// A Sequential is what asking one worker after the other saves, in waves, until
// the probability reaches tau or all were asked.
type Sequential struct {
	Kind        string  `json:"kind"` // "sequential"
	Strategy    string  `json:"strategy"`
	N           int     `json:"n"`
	Tau         float64 `json:"tau"`
	Accuracy    float64 `json:"accuracy"`
	AccuracyAll float64 `json:"accuracyAll"` // with all votes
	Votes       float64 `json:"votes"`       // asked per question
	VotesAll    float64 `json:"votesAll"`
	Cost        float64 `json:"cost"`
	CostAll     float64 `json:"costAll"`
	// Everyone is the share of splits in which a replay of the questions learned from
	// says that this is not worth it: too little is saved, or too much accuracy lost.
	// The engine then asks everyone at once. 0 below [trust.SavingsEvery] decisions,
	// when it does not look yet.
	Everyone float64 `json:"everyone"`
}

// taus are the probabilities at which asking stops.
var taus = []float64{.9, .95, .99}

// usualTau is the one that the lines of accuracy speak of.
const usualTau = .95

// Sequentials measures bayes, in the splits and after the numbers of decisions of
// o, with one result per tau.
func Sequentials(d *Data, o Options) []Sequential {
	splits := d.splits(o.Splits, o.Seed)
	var list []Sequential
	for _, n := range o.Gold {
		if !fits(d, splits, n) {
			continue
		}
		parts := make([][]Sequential, len(splits))
		o.each("asking in turn, after "+itoa(n), len(splits), func(i int) { parts[i] = sequentials(d, splits[i][:n]) })
		for t, tau := range taus {
			sum := Sequential{Kind: "sequential", Strategy: "bayes", N: n, Tau: tau}
			for _, p := range parts {
				sum.add(p[t])
			}
			sum.divide(float64(len(parts)))
			list = append(list, sum)
		}
	}
	return list
}

func (s *Sequential) add(p Sequential) {
	s.Accuracy += p.Accuracy
	s.AccuracyAll += p.AccuracyAll
	s.Votes += p.Votes
	s.VotesAll += p.VotesAll
	s.Cost += p.Cost
	s.CostAll += p.CostAll
	s.Everyone += p.Everyone
}

// divide makes means of sums. Sums are divided once, so that a mean of ones is one.
func (s *Sequential) divide(n float64) {
	s.Accuracy /= n
	s.AccuracyAll /= n
	s.Votes /= n
	s.VotesAll /= n
	s.Cost /= n
	s.CostAll /= n
	s.Everyone /= n
}

// sequentials measures one split.
func sequentials(d *Data, gold []int) []Sequential {
	b := &bayes{plain: true}
	b.learn(d, gold)
	learned := make([]bool, len(d.Questions))
	for _, i := range gold {
		learned[i] = true
	}
	sums := make([]Sequential, len(taus))
	for i := range d.Questions {
		q := &d.Questions[i]
		if learned[i] {
			continue
		}
		all := credit(b.judge(q).P, q.Truth)
		for t, tau := range taus {
			one := Sequential{AccuracyAll: all, VotesAll: float64(len(q.Answers)), CostAll: d.cost(q)}
			b.ask(q, tau, &one)
			sums[t].add(one)
		}
	}
	for t := range sums {
		sums[t].divide(float64(len(d.Questions) - len(gold)))
		if len(gold) >= trust.SavingsEvery && !b.worth(taus[t]) {
			sums[t].Everyone = 1
		}
	}
	return sums
}

// worth reports whether asking in waves until tau was worth it in the questions that
// were learned from.
func (s *bayes) worth(tau float64) bool {
	bar, _ := exact.FromFloat(tau)
	return s.ledger.Savings(Machine, trust.Policy{NoStacking: s.plain}, bar).Worth()
}

// ask asks the workers of one question in waves.
func (s *bayes) ask(q *Question, tau float64, sum *Sequential) {
	a := s.data.question(q)
	a.Policy.NoStacking, a.Partial = s.plain, true
	costs := make([]exact.Money, len(q.Answers))
	for i, v := range q.Answers {
		costs[i] = s.data.price(v)
	}
	bar, _ := exact.FromFloat(tau)
	asked, _ := s.ledger.Asked(a, costs, trust.Asking{Tau: bar, Patient: true})
	all := a.Votes
	a.Votes = make([]trust.Vote, len(asked))
	for i, v := range asked {
		a.Votes[i] = all[v]
		sum.Votes++
		sum.Cost += s.data.Workers[q.Answers[v].Worker].Cost
	}
	j := s.ledger.Judge(a)
	p := make([]float64, len(j.P))
	for i := range p {
		p[i] = j.P[i].Float()
	}
	sum.Accuracy = credit(p, q.Truth)
}

// credit returns the share of a tie at the top that the truth holds.
func credit(p []float64, truth int) float64 {
	top, ties, holds := slices.Max(p), 0., false
	for t, v := range p {
		if v >= top-1e-12 {
			ties++
			holds = holds || t == truth
		}
	}
	if holds {
		return 1 / ties
	}
	return 0
}
