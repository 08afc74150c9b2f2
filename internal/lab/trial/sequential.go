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
//
// A question is judged again for each wave, so this costs far more than all the rest. Where
// there are more than mostInTurn answers it is measured on a sample of the questions, drawn
// from the seed: of 600 questions a share has a standard error of two points at most.

// A Sequential is what asking one worker after the other saves, in waves, until
// the probability reaches tau or all were asked.
type Sequential struct {
	Kind        string  `json:"kind"` // "sequential"
	Strategy    string  `json:"strategy"`
	N           int     `json:"n"`
	Questions   int     `json:"questions"` // measured in each split: all that are not learned from, or a sample
	Tau         float64 `json:"tau"`
	Accuracy    float64 `json:"accuracy"`
	AccuracyAll float64 `json:"accuracyAll"` // with all votes
	Votes       float64 `json:"votes"`       // asked per question
	VotesAll    float64 `json:"votesAll"`
	Cost        float64 `json:"cost"`
	CostAll     float64 `json:"costAll"`
	// Everyone is the share of splits in which a replay of the questions learned from
	// says that this is not worth it: too little is saved, or too much accuracy lost.
	// The engine then asks everyone at once, and so is counted in these splits. Nil below [trust.SavingsEvery] decisions,
	// when it does not look yet.
	Everyone *float64 `json:"everyone,omitempty"`

	everyone float64
}

// taus are the probabilities at which asking stops.
var taus = []float64{.9, .95, .99}

// mostInTurn is how many answers the questions may have that are asked in turn. A sample has
// at least leastInTurn questions.
const (
	mostInTurn  = 60_000
	leastInTurn = 400
)

// usualTau is the one that the lines of accuracy speak of.
const usualTau = .95

// Sequentials measures bayes, in the splits and after the numbers of decisions of
// o, with one result per tau.
func Sequentials(d *Data, o Options) []Sequential {
	splits, sample := d.splits(o.Splits, o.Seed), d.order(o.Seed+" in turn", 0)
	var list []Sequential
	for _, n := range o.Gold {
		if !fits(d, splits, n) {
			continue
		}
		parts, most := make([][]Sequential, len(splits)), d.mostInTurn(n)
		o.each("asking in turn, after "+itoa(n), len(splits), func(i int) { parts[i] = sequentials(d, splits[i][:n], sample, most) })
		o.follow--
		for t, tau := range taus {
			sum := Sequential{Kind: "sequential", Strategy: "bayes", N: n, Questions: most, Tau: tau}
			for _, p := range parts {
				sum.add(p[t])
			}
			if sum.divide(float64(len(parts))); n >= trust.SavingsEvery {
				sum.Everyone = &sum.everyone
			}
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
	s.everyone += p.everyone
}

// divide makes means of sums. Sums are divided once, so that a mean of ones is one.
func (s *Sequential) divide(n float64) {
	s.Accuracy /= n
	s.AccuracyAll /= n
	s.Votes /= n
	s.VotesAll /= n
	s.Cost /= n
	s.CostAll /= n
	s.everyone /= n
}

// mostInTurn returns how many questions are asked in turn of those that are not among the n
// learned from.
func (d *Data) mostInTurn(n int) int {
	left, answers := len(d.Questions)-n, d.answers()
	if answers <= mostInTurn {
		return left
	}
	return min(left, max(leastInTurn, len(d.Questions)*mostInTurn/answers))
}

// sequentials measures one split, on the first questions of a sample that are not learned from.
func sequentials(d *Data, gold, sample []int, most int) []Sequential {
	b := &bayes{plain: true}
	b.learn(d, gold)
	learned := make([]bool, len(d.Questions))
	for _, i := range gold {
		learned[i] = true
	}
	sample = slices.DeleteFunc(slices.Clone(sample), func(i int) bool { return learned[i] })[:most]
	slices.Sort(sample) // in one order of sums, whatever was drawn
	sums := make([]Sequential, len(taus))
	for _, i := range sample {
		q := &d.Questions[i]
		all := credit(b.judge(q).P, q.Truth)
		for t, tau := range taus {
			one := Sequential{AccuracyAll: all, VotesAll: float64(len(q.Answers)), CostAll: d.cost(q)}
			b.ask(q, tau, &one)
			sums[t].add(one)
		}
	}
	for t := range sums {
		sums[t].divide(float64(len(sample)))
		if len(gold) >= trust.SavingsEvery && !b.worth(taus[t]) {
			s := &sums[t]
			s.everyone, s.Accuracy, s.Votes, s.Cost = 1, s.AccuracyAll, s.VotesAll, s.CostAll
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
