package trial

import (
	"math"
	"slices"

	"github.com/dialai/dialai/internal/trust"
)

// The ways to decide that a trial compares, each learning from the same first
// questions:
//
//   - majority: each vote counts 1;
//   - alignmentMargin, rawMargin: each counts the alignment of its author, or the plain
//     share of agreements;
//   - logodds: each counts log(p (K-1) / (1-p)), the optimal weight of independent
//     workers of reliability p among K classes (Nitzan and Paroush 1982 for two); p is
//     shrunk towards the mean of all;
//   - confusion, semi: confusion matrices, with or without rounds of expectation and
//     maximisation on the other questions (confusion.go; Dawid and Skene 1979);
//   - stacking: a regression on the votes (regression.go), for two classes;
//   - bayes: the ledger of package trust, as the engine uses it.
//
// All return probabilities by class, so that accuracy, log loss and calibration can be
// compared; for margins they are shares of weight.

// A Claim is what a strategy says of one question.
type Claim struct {
	P       []float64 // by class; the largest is the pick, equals are a tie
	Certain bool      // it would decide this alone: P >= .95, or margin >= .5
}

// A strategy learns from the first questions of an order, and then judges others.
type strategy interface {
	learn(d *Data, gold []int)
	judge(q *Question) Claim
}

// certainFrom is the probability from which a strategy is asked whether it was
// right to be sure.
const certainFrom = .95

// marginFrom is the margin that stands in for it where there is no probability.
const marginFrom = .5

// Strategies are the names of all strategies, in the order of the tables.
func Strategies() []string {
	return []string{"majority", "alignmentMargin", "rawMargin", "logodds", "confusion", "semi", "stacking", "bayes"}
}

// newStrategy returns a strategy that has learned nothing; nil if there is none of
// that name.
func newStrategy(name string) strategy {
	switch name {
	case "majority":
		return &weighted{weigh: func(_, _ int64) float64 { return 1 }}
	case "alignmentMargin":
		return &weighted{weigh: func(k, n int64) float64 { return trust.Score(k, n).Float() }, margin: true}
	case "rawMargin":
		return &weighted{weigh: func(k, n int64) float64 { return ratio(int(k), int(n)) }, margin: true}
	case "logodds":
		return &logodds{}
	case "confusion":
		return &confusion{}
	case "semi":
		return &confusion{rounds: 40}
	case "stacking":
		return &regression{}
	case "bayes":
		return &bayes{}
	case "bayes-nostack":
		return &bayes{plain: true}
	}
	return nil
}

// tallies counts agreements of each worker.
func tallies(d *Data, gold []int) []trust.Tally {
	list := make([]trust.Tally, len(d.Workers))
	for _, i := range gold {
		d.Questions[i].compare(list)
	}
	return list
}

// compare adds to the tallies of workers whether their answers are right.
func (q *Question) compare(list []trust.Tally) {
	for _, a := range q.Answers {
		t := &list[a.Worker]
		t.Total, t.Matching = t.Total+1, t.Matching+int64(one(a.Class == q.Truth))
	}
}

// A weighted strategy adds up a weight per vote.
type weighted struct {
	weigh  func(k, n int64) float64
	margin bool
	k      int
	of     []float64 // by worker
}

func (s *weighted) learn(d *Data, gold []int) {
	s.k, s.of = len(d.Classes), make([]float64, len(d.Workers))
	for i, t := range tallies(d, gold) {
		s.of[i] = s.weigh(t.Matching, t.Total)
	}
}

func (s *weighted) judge(q *Question) Claim {
	p := make([]float64, s.k)
	total := 0.
	for _, a := range q.Answers {
		p[a.Class] += s.of[a.Worker]
		total += s.of[a.Worker]
	}
	for t := range p {
		if total > 0 {
			p[t] /= total
		} else {
			p[t] = 1 / float64(s.k)
		}
	}
	if !s.margin {
		return claim(p)
	}
	first, second := 0., 0.
	for _, v := range p {
		first, second = max(first, v), max(second, min(first, v))
	}
	return Claim{p, total > 0 && first-second >= marginFrom}
}

func claim(p []float64) Claim {
	return Claim{p, slices.Max(p) >= certainFrom}
}

// reliability is what logodds, confusion and semi believe of each worker.
func reliability(d *Data, gold []int) []float64 {
	list := tallies(d, gold)
	var k, n int64
	for _, t := range list {
		k, n = k+t.Matching, n+t.Total
	}
	m := (float64(k) + 1.4) / (float64(n) + 2)
	p := make([]float64, len(list))
	for i, t := range list {
		p[i] = min(.999, max(.001, (float64(t.Matching)+4*m)/(float64(t.Total)+4)))
	}
	return p
}

// logodds is the optimal rule for independent workers of known reliability.
type logodds struct {
	k int
	w []float64
}

func (s *logodds) learn(d *Data, gold []int) {
	s.k, s.w = len(d.Classes), reliability(d, gold)
	for i, p := range s.w {
		s.w[i] = math.Log(p * float64(s.k-1) / (1 - p))
	}
}

func (s *logodds) judge(q *Question) Claim {
	p := make([]float64, s.k)
	for _, a := range q.Answers {
		p[a.Class] += s.w[a.Worker]
	}
	return claim(normalise(p))
}

// normalise turns log-scores into probabilities.
func normalise(p []float64) []float64 {
	top, sum := slices.Max(p), 0.
	if math.IsInf(top, 0) { // where there is one class
		for i := range p {
			p[i] = 1 / float64(len(p))
		}
		return p
	}
	for i, v := range p {
		p[i] = math.Exp(v - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// bayes is the strategy of the same name.
type bayes struct {
	plain  bool // without stacking
	data   *Data
	ledger *trust.Ledger
}

func (s *bayes) learn(d *Data, gold []int) {
	s.data, s.ledger = d, trust.New()
	for _, i := range gold {
		mustAdd(s.ledger, d.outcome(&d.Questions[i]))
	}
	s.ledger.Refit(Machine)
}

// mustAdd adds an outcome that was made here, and so is good.
func mustAdd(l *trust.Ledger, o trust.Outcome) {
	if err := l.Add(o); err != nil {
		panic(err)
	}
}

func (s *bayes) judge(q *Question) Claim {
	a := s.data.question(q)
	a.Policy.NoStacking = s.plain
	j := s.ledger.Judge(a)
	p := make([]float64, len(j.P))
	for i, v := range j.P {
		p[i] = v.Float()
	}
	return claim(p)
}
