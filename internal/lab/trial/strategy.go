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
//   - bayes: the ledger of package trust, as the engine uses it;
//   - oneCoin: one reliability for each worker, by expectation and maximisation on the
//     other questions (confusion.go), the usual reference beside semi;
//   - bayesRounds: bayes with learnFrom set to humansAndRounds, the other questions being
//     rounds that no human has decided.
//
// The last two are measured where they are named.
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

// Others are the names of those that are measured only where they are named.
func Others() []string { return []string{"oneCoin", "bayesRounds"} }

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
		return &confusion{rounds: emRounds}
	case "stacking":
		return &regression{}
	case "bayes":
		return &bayes{}
	case "oneCoin":
		return &oneCoin{rounds: emRounds}
	case "bayesRounds":
		return &bayes{rounds: true}
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
	right, n := make([]float64, len(list)), make([]float64, len(list))
	for i, t := range list {
		right[i], n[i] = float64(t.Matching), float64(t.Total)
	}
	return shrunk(right, n)
}

// shrunk returns the shares of right answers, each drawn to the mean of all.
func shrunk(right, n []float64) []float64 {
	var k, all float64
	for i := range n {
		k, all = k+right[i], all+n[i]
	}
	m := (k + 1.4) / (all + 2)
	p := make([]float64, len(n))
	for i := range p {
		p[i] = min(.999, max(.001, (right[i]+4*m)/(n[i]+4)))
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
	s.weigh()
}

// believe weighs by so many right answers of n.
func (s *logodds) believe(right, n []float64) {
	s.w = shrunk(right, n)
	s.weigh()
}

// weigh makes weights of reliabilities.
func (s *logodds) weigh() {
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
	rounds bool // with all other questions as rounds that no human has decided
	data   *Data
	ledger *trust.Ledger
}

func (s *bayes) learn(d *Data, gold []int) {
	s.data, s.ledger = d, trust.New()
	for _, i := range gold {
		mustAdd(s.ledger, d.outcome(&d.Questions[i]))
	}
	if s.rounds {
		s.enter(gold)
	}
	s.ledger.Refit(Machine)
}

// enter has the ledger learn from all questions but those of the gold.
func (s *bayes) enter(gold []int) {
	known := make([]bool, len(s.data.Questions))
	for _, i := range gold {
		known[i] = true
	}
	for i := range known {
		if u := s.data.unruled(&s.data.Questions[i]); !known[i] && u != nil {
			must(s.ledger.EnterUnruled(*u))
		}
	}
}

// mustAdd adds an outcome that was made here, and so is good.
func mustAdd(l *trust.Ledger, o trust.Outcome) { must(l.Add(o)) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *bayes) judge(q *Question) Claim {
	a := s.data.question(q)
	a.Policy.NoStacking, a.Policy.Rounds = s.plain, s.rounds
	j := s.ledger.Judge(a)
	p := make([]float64, len(j.P))
	for i, v := range j.P {
		p[i] = v.Float()
	}
	return claim(p)
}
