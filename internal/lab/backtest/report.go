package backtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// What a back-test found, counted as it goes and worked out at the end. For every round there
// is a fate under the recorded policy and one under the policy that is tried; where they
// differ it is a flip. The record does not say what somebody would have answered who was not
// asked: such rounds count once for the best and once for the worst case (Sides).

// A Report is what a back-test found.
type Report struct {
	Sessions int
	// Verdicts is the number of recorded verdicts that were given again, and
	// Reproduced of those that came out the same. Both are 0 if something was
	// changed.
	Verdicts, Reproduced int
	// Late is the number of rounds whose verdict did not know the outcomes that were
	// stored just before it: sessions run side by side.
	Late int
	// Reigned is the number of verdicts by which a champion decided alone.
	Reigned  int
	States   []Result // by machine, its states in the order of their first round
	Machines []Result // sums; State is ""
	Total    Result   // of all; Machine is "" if there are several
	// Adoptions are what the tests of the policy's promises would begin with, by machine
	// and scope, once a human adopts it; Tried is not filled in. None if nothing is
	// changed.
	Adoptions []trust.Adoption
	Trial     session.Trial // what was tried; Policy is that of nothing if nothing is changed
	failed    error
}

// A Result is what became of the rounds of one state, of a machine or of all.
// Pairs are the best and the worst case: they differ where the record lacks
// somebody whom the policy would have asked.
type Result struct {
	Machine  string         `json:"machine,omitempty"`
	State    string         `json:"state,omitempty"`
	Rounds   int            `json:"rounds"`
	Unknown  int            `json:"unknown"`  // the record lacks somebody
	Coverage float64        `json:"coverage"` // share of the rounds that can be decided from the record
	Unjudged int            `json:"unjudged"` // a human decided before any arbiter had: no flip can be told
	OffPath  int            `json:"offPath"`  // rounds after a flip in their session, decided as recorded
	Flips    [2]int         `json:"flips"`
	Old      Side           `json:"old"`
	New      Sides          `json:"new"`
	Promise  *trust.Promise `json:"promise,omitempty"` // in force under the policy
	// Tau is the probability above which the promise was found to hold, once all
	// was learned; 0 if it was not, or nothing is changed.
	Tau exact.Billionths `json:"tau,omitempty"`
	// Unshared says why it is unknown how much the policy would do without a human: there
	// is no round, or its promise was not established by what is recorded, so that every
	// round went to a human, as none would later. "" if it is known.
	Unshared Unshared `json:"automaticUnknown,omitempty"`
}

// An Unshared is why a share of automatic decisions is unknown.
type Unshared string

// The reasons.
const (
	NoRounds       Unshared = "no_rounds"
	NotEstablished Unshared = "risk_not_established"
)

// A Side is how rounds were decided.
type Side struct {
	Automatic      int      `json:"automatic"`
	AutomaticShare *float64 `json:"automaticShare"` // nil if there is no round
	Humans         int      `json:"humans"`         // rounds that a human decided or has to
	Checked        int      `json:"checked"`        // automatic decisions on which there is a human's word
	Errors         int      `json:"errors"`         // of those, against it
	// ErrorShare is that of automatic decisions, errors weighted by one over the
	// probability of the look; nil if there is no human's word on any of them.
	ErrorShare   *float64    `json:"errorShare,omitempty"`
	CostUSD      exact.Money `json:"costUSD"`
	HumanMinutes float64     `json:"humanMinutes"`
	// HumanMeasured is of how many of Humans it was recorded how long they took.
	HumanMeasured int `json:"humanMeasured,omitempty"`
}

// Sides is a Side of which the best and the worst case are told.
type Sides struct {
	Automatic      [2]int         `json:"automatic"`
	AutomaticShare *[2]float64    `json:"automaticShare"` // nil if it is unknown, see Result.Unshared
	Humans         [2]int         `json:"humans"`
	Checked        [2]int         `json:"checked"`
	Errors         [2]int         `json:"errors"`
	ErrorShare     *[2]float64    `json:"errorShare,omitempty"` // nil if there is no human's word on any
	CostUSD        [2]exact.Money `json:"costUSD"`
	HumanMinutes   [2]float64     `json:"humanMinutes"`
	HumanMeasured  int            `json:"humanMeasured,omitempty"`
}

// A Flip is one round that the policy decides otherwise.
type Flip struct {
	Machine   string `json:"machine"`
	SessionID string `json:"sessionId"`
	RoundID   string `json:"roundId"`
	Round     int32  `json:"round"`
	State     string `json:"state"`
	Old       string `json:"old"` // the transition, or ToHuman
	New       string `json:"new"`
	Human     string `json:"human,omitempty"` // what a human said of it
	OffPath   bool   `json:"offPath,omitempty"`
}

// ToHuman stands for a round that was left to a human.
const ToHuman = "(human)"

func (f *fold) flip(r *round, old, now fate, truth string) {
	if f.Flip == nil || f.report.failed != nil {
		return
	}
	f.report.failed = f.Flip(Flip{
		Machine: r.part.was.Question.Machine, SessionID: r.key.Session.String(), RoundID: r.key.ID(), Round: r.key.Round, State: r.part.state.Name,
		Old: old.name(), New: now.name(), Human: truth, OffPath: r.offPath,
	})
}

func (t fate) name() string {
	if t.elected == nil {
		return ToHuman
	}
	return t.elected.Name
}

// compare counts a verdict that was given again.
func (r *Report) compare(pt *point, words bool) {
	r.Verdicts++
	if pt.decision.Rule == arbiter.ByChampion {
		r.Reigned++
	}
	j, d := pt.judged, pt.decision
	switch {
	case d.Winner != j.Decision.Winner || d.Code() != j.Decision.Code(), d.HasMargin && d.Margin != j.Margin:
		return
	case words && d.Judgement != nil:
		now, err := json.Marshal(d.Judgement)
		then, failed := json.Marshal(j.Decision.Judgement)
		if err != nil || failed != nil || !bytes.Equal(now, then) {
			return
		}
	}
	r.Reproduced++
}

// result sums up.
func (f *fold) result() (*Report, error) {
	r := f.report
	if r.failed != nil {
		return nil, r.failed
	}
	if r.Sessions == 0 {
		return nil, &session.NotFoundError{What: "Sessions of machine", ID: f.MachineName}
	}
	for _, id := range f.Policy.Drop {
		if !f.scenes.have(id) {
			return nil, fmt.Errorf("%w: %q proposes nowhere, so it cannot be left out", ErrPolicy, id)
		}
	}
	total := &tally{changed: f.changed}
	var sum *tally
	flush := func() {
		if sum != nil {
			r.Machines = append(r.Machines, sum.result(f.HumanMinutes))
		}
	}
	for _, t := range f.sorted() {
		if sum == nil || sum.machine != t.machine {
			flush()
			sum = &tally{machine: t.machine, changed: f.changed}
		}
		sum.add(t)
		total.add(t)
		r.States = append(r.States, t.result(f.HumanMinutes))
	}
	flush()
	total.machine = ""
	if len(r.Machines) == 1 {
		total.machine, total.promise, total.tau = sum.machine, sum.promise, sum.tau
	}
	r.Total = total.result(f.HumanMinutes)
	return r, nil
}

// unestablished reports whether nothing was automatic for want of a promise that holds.
func (t *tally) unestablished() bool {
	return t.new.automatic == 0 && (t.open || t.changed && t.promise != nil && t.tau == 0)
}

// result puts a tally as it is shown.
func (t *tally) result(minutes float64) Result {
	r := Result{
		Machine: t.machine, State: t.state, Rounds: t.rounds, Unknown: t.unknown, Unjudged: t.unjudged, OffPath: t.offPath,
		Coverage: share(float64(t.rounds-t.unknown), float64(t.rounds)), Flips: [2]int{t.flips, t.flips + t.unknownJudged}, Promise: t.promise, Tau: t.tau,
	}
	n := float64(t.rounds)
	old, now := &t.old, &t.new
	r.Old = Side{
		Automatic: old.automatic, Humans: old.humans, Checked: old.checked,
		Errors: old.wrong, CostUSD: old.cost, HumanMinutes: old.minutes(minutes, 0), HumanMeasured: old.measured,
	}
	most := now.automatic + t.unknown
	r.New = Sides{
		Automatic:     [2]int{most, now.automatic},
		Humans:        [2]int{now.humans, now.humans + t.unknown},
		Checked:       [2]int{now.checked + t.unknownWrong, now.checked + t.unknownWrong},
		Errors:        [2]int{now.wrong, now.wrong + t.unknownWrong},
		CostUSD:       [2]exact.Money{now.cost, now.cost.Add(t.costliest)},
		HumanMinutes:  [2]float64{now.minutes(minutes, 0), now.minutes(minutes, t.unknown)},
		HumanMeasured: now.measured,
	}
	switch {
	case t.rounds == 0:
		r.Unshared = NoRounds
	case t.unestablished():
		r.Unshared = NotEstablished
	default:
		r.New.AutomaticShare = &[2]float64{share(float64(most), n), share(float64(now.automatic), n)}
	}
	if t.rounds > 0 {
		r.Old.AutomaticShare = new(share(float64(old.automatic), n))
	}
	if old.weight > 0 {
		e := share(old.error, old.weight)
		r.Old.ErrorShare = &e
	}
	if all := now.weight + t.unknownChecked; all > 0 {
		r.New.ErrorShare = &[2]float64{share(now.error, all), share(now.error+t.unknownChecked, all)}
	}
	return r
}

// share returns part of whole, to nine decimals; 0 of nothing.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(part/whole*1e9) / 1e9
}

// minutes returns what humans took, at some minutes for each round of which it is not known,
// and for some more, to one decimal.
func (s *side) minutes(each float64, more int) float64 {
	return math.Round((each*float64(s.humans-s.measured+more)+float64(s.looked)/60_000)*10) / 10
}

// add adds a tally to a sum.
func (t *tally) add(u *tally) {
	t.promise, t.tau, t.open = u.promise, u.tau, t.open || u.unestablished()
	t.rounds += u.rounds
	t.unjudged += u.unjudged
	t.unknown += u.unknown
	t.unknownJudged += u.unknownJudged
	t.unknownChecked += u.unknownChecked
	t.unknownWrong += u.unknownWrong
	t.flips += u.flips
	t.offPath += u.offPath
	t.costliest = t.costliest.Add(u.costliest)
	t.old.add(&u.old)
	t.new.add(&u.new)
}

func (s *side) add(u *side) {
	s.automatic += u.automatic
	s.humans += u.humans
	s.measured += u.measured
	s.looked += u.looked
	s.checked += u.checked
	s.wrong += u.wrong
	s.weight += u.weight
	s.error += u.error
	s.cost = s.cost.Add(u.cost)
}
