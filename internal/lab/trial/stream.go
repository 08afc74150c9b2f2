package trial

import (
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// Questions one after the other, as an engine meets them: what a strategy decides alone
// is wrong or right and goes on, everything else is asked of a human, who is right, and
// from whom the strategy learns; so are audits, drawn at random. What counts is how
// often a human was asked, and how often automatic decisions were wrong.
//
// A run counts as above its promise if the one-sided 95 % lower bound of its error is
// above what was promised. Orders and audits are drawn from the seed, so a run can be
// made again.

// UsualOrders is how many streams are run where nobody says how many.
const UsualOrders = 40

// With more answers there are fewer: as many as make up mostStreamed, at least fewestOrders.
const (
	fewestOrders = 4
	mostStreamed = UsualOrders * mostInTurn
)

// Orders returns how many streams are run where nobody says: [UsualOrders], fewer where
// there are more than 60,000 answers.
func (d *Data) Orders() int {
	return min(UsualOrders, max(fewestOrders, mostStreamed/max(1, d.answers())))
}

// A Stream is what happens if questions come one after the other: each is decided
// automatically if the strategy may, else by a human, from whom it learns.
type Stream struct {
	Kind                  string  `json:"kind"` // "stream"
	Strategy              string  `json:"strategy"`
	Eps                   float64 `json:"eps"`                   // promised
	HumansAsked           float64 `json:"humansAsked"`           // share of questions, audits left out
	HumansAskedSecondHalf float64 `json:"humansAskedSecondHalf"` //
	AutoError             float64 `json:"autoError"`             // of automatic decisions
	RunsAboveEps          int     `json:"runsAboveEps"`          // whose one-sided 95 % lower bound of the error exceeds eps
	Runs                  int     `json:"runs"`
}

// Settings of the streams.
const (
	auditRate     = .05
	streamSure    = 900_000_000 // confidence of the promise
	aboveAt       = .95         // confidence that a run is above eps
	policyOfTrial = "trial"
)

// A decider is a strategy in a stream.
type decider interface {
	// decide returns the pick and whether it is decided automatically.
	decide(q *Question) (pick int, auto bool)
	// tell says what a human chose for the question just decided; audit that the
	// engine had decided it and it was drawn.
	tell(q *Question, audit bool)
}

// streamed are the strategies that streams are run with.
var streamed = []string{"alignmentMargin", "rawMargin", "bayes", "bayesRounds"}

func newDecider(name string, d *Data, eps float64) decider {
	switch name {
	case "alignmentMargin", "rawMargin":
		return &marginStream{d: d, w: newStrategy(name).(*weighted), tallies: make([]trust.Tally, len(d.Workers))}
	}
	b, _ := exact.FromFloat(eps)
	return &bayesStream{d: d, rounds: name == "bayesRounds", ledger: trust.New(), promise: trust.Promise{MaxError: b, Confidence: streamSure}}
}

// marginStream decides from a margin of a half.
type marginStream struct {
	d       *Data
	w       *weighted
	tallies []trust.Tally
}

func (s *marginStream) decide(q *Question) (int, bool) {
	s.w.k, s.w.of = len(s.d.Classes), make([]float64, len(s.d.Workers))
	for _, a := range q.Answers {
		t := s.tallies[a.Worker]
		s.w.of[a.Worker] = s.w.weigh(t.Matching, t.Total)
	}
	c := s.w.judge(q)
	return slices.Index(c.P, slices.Max(c.P)), c.Certain
}

func (s *marginStream) tell(q *Question, _ bool) { q.compare(s.tallies) }

// bayesStream decides under a promise.
type bayesStream struct {
	d       *Data
	rounds  bool // learns from what it decides alone, too
	ledger  *trust.Ledger
	promise trust.Promise
	last    trust.Judgement
}

func (s *bayesStream) decide(q *Question) (int, bool) {
	a := s.d.question(q)
	a.Policy.Promise, a.Policy.Rounds, a.PolicyDigest = &s.promise, s.rounds, policyOfTrial
	s.last = s.ledger.Judge(a)
	auto := s.last.Code == trust.Decided
	if u := s.d.unruled(q); auto && s.rounds && u != nil {
		must(s.ledger.AddUnruled(*u)) // until an audit has its outcome take its place
	}
	return s.last.Best, auto
}

// tell learns. Audits are not shown to the detector, which streams are without.
func (s *bayesStream) tell(q *Question, audit bool) {
	o := s.d.outcome(q)
	o.Promise, o.PolicyDigest = &s.promise, policyOfTrial
	o.Pick, o.N = s.last.Pick, s.last.N
	if o.Pick != "" {
		o.P = s.last.P[s.last.Best]
	}
	if audit {
		o.Source, o.SamplingProb = trust.Audited, auditRate*1e9
	}
	mustAdd(s.ledger, o)
}

// Streams runs every strategy that can be streamed over seeded orders of all
// questions.
func Streams(d *Data, o Options) []Stream {
	names := slices.DeleteFunc(slices.Clone(o.Strategies), func(name string) bool { return !slices.Contains(streamed, name) })
	runs := make([]run, len(names)*o.Orders)
	o.each("streams", len(runs), func(i int) {
		n, order := i%len(names), i/len(names) // as the pieces of accuracies
		runs[n*o.Orders+order].play(d, newDecider(names[n], d, o.MaxError), o.Seed, order)
	})
	list := make([]Stream, len(names))
	for i, name := range names {
		list[i] = streamOf(name, o.MaxError, runs[i*o.Orders:(i+1)*o.Orders])
	}
	return list
}

// A run is one order.
type run struct{ n, asked, half, late, auto, wrong int }

func (r *run) play(d *Data, s decider, seed string, order int) {
	audits := trust.NewDraw("trial audit", seed, itoa(order))
	r.n = len(d.Questions)
	for place, i := range d.order(seed, order) {
		q := &d.Questions[i]
		pick, auto := s.decide(q)
		late := place >= r.n/2
		r.half += one(late)
		audit := audits.Float() < auditRate
		if auto {
			r.auto++
			r.wrong += one(pick != q.Truth)
		} else {
			r.asked++
			r.late += one(late)
		}
		if !auto || audit {
			s.tell(q, auto)
		}
	}
}

func streamOf(name string, eps float64, runs []run) Stream {
	s := Stream{Kind: "stream", Strategy: name, Eps: eps, Runs: len(runs)}
	var all run
	for _, r := range runs {
		all.n, all.asked, all.half, all.late = all.n+r.n, all.asked+r.asked, all.half+r.half, all.late+r.late
		all.auto, all.wrong = all.auto+r.auto, all.wrong+r.wrong
		if trust.ErrorBelow(int64(r.wrong), int64(r.auto), aboveAt) > eps {
			s.RunsAboveEps++
		}
	}
	s.HumansAsked, s.HumansAskedSecondHalf = ratio(all.asked, all.n), ratio(all.late, all.half)
	s.AutoError = ratio(all.wrong, all.auto)
	return s
}

// ratio returns a/b, 0 for 0/0.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
