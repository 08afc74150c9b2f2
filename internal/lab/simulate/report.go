package simulate

import (
	"math"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// What a simulation came to. Each run keeps its rounds as they were; all shares are sums over
// rounds of all runs, so a curve's parts add up to the summary. Trust is that at the end of
// the first run, and so are the events: those of all runs would be a heap.

// A Report is what a simulation came to.
type Report struct {
	Machine string
	Curve   []Point  // in equal parts, the means of all runs
	Voters  []Record // in roster order
	Events  []Event  // of the first run
	Summary Summary

	config *Config
	m      *machine.Machine
	runs   []*run
}

// A run is one play of all rounds.
type run struct {
	rounds  []Round
	events  []Event
	ledger  *trust.Ledger
	promise *trust.Promise
	voters  []counts
}

// Counts are those of one voter.
type counts struct{ asked, answers, rights int64 }

// A Round is one simulated round.
type Round struct {
	Automatic bool // the engine decided it
	Human     bool // a human did
	Right     bool // what was executed is the truth
	Looks     int  // of humans at it once it was closed
	Asked     int  // voters
	Cost      exact.Money
	NEff      exact.Billionths // 0 if no verdict says
}

// A Point is a part of the rounds, as a learning curve shows it.
type Point struct {
	From       int     `json:"from"` // first round
	To         int     `json:"to"`   // last round
	Accuracy   float64 `json:"accuracy"`
	Automatic  float64 `json:"automatic"`  // share of the rounds
	Humans     float64 `json:"humans"`     // share of the rounds that a human decided
	Looks      float64 `json:"looks"`      // audits and second humans for each round
	Error      float64 `json:"error"`      // share of the automatic decisions against the truth
	Asked      float64 `json:"asked"`      // voters for each round
	CostUSD    float64 `json:"costUSD"`    // of a round
	NEff       float64 `json:"nEff"`       // mean effective voters, where verdicts say
	HumansLow  float64 `json:"humansLow"`  // the run with the fewest humans
	HumansHigh float64 `json:"humansHigh"` // and that with the most
}

// A Record is what came of one voter, over all runs.
type Record struct {
	ID       string           `json:"specialist"`
	Group    string           `json:"group,omitempty"`
	TrueP    float64          `json:"trueP"`    // at the end, the mean over the states
	Observed float64          `json:"observed"` // share of its answers that were right
	Asked    float64          `json:"asked"`    // rounds of a run
	Share    float64          `json:"share"`    // of the rounds
	CostUSD  exact.Money      `json:"costUSD"`  // of all runs
	Trust    exact.Billionths `json:"trust"`    // in the first run's ledger, at the end, in its first state
}

// An Event is something that changed on the way.
type Event struct {
	Round      int              `json:"round"`
	What       string           `json:"event"` // risk.met, risk.lost, …, stage.consensus, …, champion.promoted, champion.demoted
	State      string           `json:"state,omitempty"`
	Specialist string           `json:"specialist,omitempty"`
	TrueP      float64          `json:"trueP,omitempty"`
	Tau        exact.Billionths `json:"tau,omitempty"`
	Why        string           `json:"why,omitempty"`
}

// A Summary is the whole in one line.
type Summary struct {
	Rounds       int            `json:"rounds"`
	Runs         int            `json:"runs"`
	Seed         uint64         `json:"seed"`
	Accuracy     float64        `json:"accuracy"`
	Automatic    float64        `json:"automatic"`
	Humans       float64        `json:"humans"`
	Quarters     [4]float64     `json:"humansByQuarter"`
	Error        float64        `json:"error"`     // of automatic decisions, against the truth
	RunError     [2]float64     `json:"errorRuns"` // least and greatest of a run
	Promise      *trust.Promise `json:"promise,omitempty"`
	CostUSD      exact.Money    `json:"costUSD"` // of a run
	HumanMinutes float64        `json:"humanMinutes"`
	NEff         float64        `json:"nEff"` // of the last quarter
	Voters       int            `json:"voters"`
	Promoted     int            `json:"promoted"` // over all runs
	Demoted      int            `json:"demoted"`
}

// points is how many parts a learning curve has.
const points = 20

// sums of some rounds.
type sums struct {
	n, automatic, human, right, wrong, looks, asked, measured float64
	cost                                                      exact.Money
	nEff                                                      float64
}

func (s *sums) add(r *Round) {
	s.n++
	one := func(on bool, into *float64) {
		if on {
			*into++
		}
	}
	one(r.Automatic, &s.automatic)
	one(r.Human, &s.human)
	one(r.Right, &s.right)
	one(r.Automatic && !r.Right, &s.wrong)
	s.looks += float64(r.Looks)
	s.asked += float64(r.Asked)
	s.cost = s.cost.Add(r.Cost)
	if r.NEff > 0 {
		s.measured++
		s.nEff += r.NEff.Float()
	}
}

// over adds up the rounds from one to another of some runs; from counts from 0, to
// is the one behind.
func over(runs []*run, from, to int) (s sums) {
	for _, r := range runs {
		for i := from; i < to && i < len(r.rounds); i++ {
			s.add(&r.rounds[i])
		}
	}
	return s
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(part/whole*1e9) / 1e9
}

// sum makes the report of the runs.
func (r *Report) sum() {
	n := r.config.Rounds
	parts := min(points, n)
	for i := range parts {
		r.Curve = append(r.Curve, r.point(i*n/parts, (i+1)*n/parts))
	}
	for i := range r.config.Panel.Voters {
		r.Voters = append(r.Voters, r.record(i))
	}
	r.Events = r.runs[0].events
	r.summary()
}

func (r *Report) point(from, to int) Point {
	s := over(r.runs, from, to)
	p := Point{
		From: from + 1, To: to, Accuracy: ratio(s.right, s.n), Automatic: ratio(s.automatic, s.n), Humans: ratio(s.human, s.n), Looks: ratio(s.looks, s.n),
		Error: ratio(s.wrong, s.automatic), Asked: ratio(s.asked, s.n), CostUSD: ratio(float64(s.cost)/float64(exact.Dollar), s.n), NEff: ratio(s.nEff, s.measured),
		HumansLow: 1,
	}
	for _, one := range r.runs {
		s := over([]*run{one}, from, to)
		p.HumansLow, p.HumansHigh = math.Min(p.HumansLow, ratio(s.human, s.n)), math.Max(p.HumansHigh, ratio(s.human, s.n))
	}
	return p
}

func (r *Report) record(i int) Record {
	v := &r.config.Panel.Voters[i]
	drift := r.config.Panel.drifted(v.ID, r.config.Rounds)
	rec := Record{ID: v.ID, Group: v.Group}
	for s := range r.config.Panel.States {
		rec.TrueP += v.right(&r.config.Panel.States[s], drift) / float64(len(r.config.Panel.States))
	}
	rec.TrueP = ratio(rec.TrueP, 1)
	var sum counts
	for _, one := range r.runs {
		c := one.voters[i]
		sum = counts{sum.asked + c.asked, sum.answers + c.answers, sum.rights + c.rights}
	}
	rec.Observed, rec.Asked = ratio(float64(sum.rights), float64(sum.answers)), ratio(float64(sum.asked), float64(len(r.runs)))
	rec.Share = ratio(rec.Asked, float64(r.config.Rounds))
	rec.CostUSD = exact.Money(sum.asked * int64(v.Cost))
	rec.Trust = r.trust(v)
	return rec
}

// trust returns what the first run's ledger makes of a voter.
func (r *Report) trust(v *Voter) exact.Billionths {
	s := &r.config.Panel.States[0]
	q := trust.Question{Machine: r.m.Name(), State: s.Name, Options: s.Classes, Votes: []trust.Vote{{SpecialistID: v.ID, Version: r.version(v.ID), Model: v.Group}}}
	j := r.runs[0].ledger.Judge(q)
	if len(j.Votes) == 0 {
		return 0
	}
	return j.Votes[0].Trust
}

// version returns the version under which the ledger knows a voter.
func (r *Report) version(id string) string {
	casts, err := planning.Cast(r.m, &session.Roster{})
	if err != nil {
		return ""
	}
	for i := range casts {
		for _, m := range casts[i].Proposers {
			if m.SpecialistID == id {
				return m.Version
			}
		}
	}
	return ""
}

func (r *Report) summary() {
	n := r.config.Rounds
	all := over(r.runs, 0, n)
	s := Summary{
		Rounds: n, Runs: len(r.runs), Seed: r.config.Seed, Accuracy: ratio(all.right, all.n), Automatic: ratio(all.automatic, all.n), Humans: ratio(all.human, all.n),
		Error: ratio(all.wrong, all.automatic), CostUSD: all.cost / exact.Money(len(r.runs)), Voters: len(r.config.Panel.Voters), Promise: r.runs[0].promise,
		HumanMinutes: math.Round(10*r.config.Panel.Human.Minutes*(all.human+all.looks)/float64(len(r.runs))) / 10, RunError: [2]float64{1, 0},
	}
	for i := range s.Quarters {
		q := over(r.runs, i*n/4, (i+1)*n/4)
		s.Quarters[i] = ratio(q.human, q.n)
		s.NEff = ratio(q.nEff, q.measured)
	}
	for _, one := range r.runs {
		own := over([]*run{one}, 0, n)
		e := ratio(own.wrong, own.automatic)
		s.RunError = [2]float64{math.Min(s.RunError[0], e), math.Max(s.RunError[1], e)}
		for _, e := range one.events {
			switch e.What {
			case "champion.promoted":
				s.Promoted++
			case "champion.demoted":
				s.Demoted++
			}
		}
	}
	r.Summary = s
}
