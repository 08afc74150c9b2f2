package trust

import (
	"cmp"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// What somebody's word counted for is a fold, too: the ledger is learned lesson by lesson, and
// after each a point is noted for whoever was compared with a human in it. Points are thinned as
// they come (series.go), so that a series takes the same room however long it gets.

// A Point is what somebody's word in a state counted for right after a human had decided a
// round in which it was heard, or had taken such a decision back. It is a value.
type Point struct {
	Index   int64           // of the series, from 1: how many human decisions that was
	At      specialist.Time // when the human decided
	Trust   exact.Billionths
	K, N    int64 // agreements and comparisons at Level; see [VoteShare]
	Level   string
	Session string // whose round it was, as the outcome names it; "" if that is not known
	Round   string
	// Retracted says that the human has taken back what was decided in Round.
	Retracted bool
}

// A VersionMark is where a series goes on with another version of its specialist.
type VersionMark struct {
	Index   int64 // of the first point of that version
	At      specialist.Time
	Version string
}

// A History is what everybody's word has counted for over the lessons of a store: the fold of
// the same lessons as a [Ledger]. It must not be used concurrently. Use [NewHistory].
type History struct {
	ledger *Ledger
	at     specialist.Time
	series map[seriesKey]*series
}

type seriesKey struct{ machine, state, specialist string }

// NewHistory returns a History that has learned nothing yet.
func NewHistory() *History { return &History{ledger: New(), series: map[seriesKey]*series{}} }

// Ledger returns what was learned so far. It is the History's own.
func (h *History) Ledger() *Ledger { return h.ledger }

// At returns when the newest lesson was given; 0 before the first.
func (h *History) At() specialist.Time { return h.at }

// Learn counts a lesson, and notes what it has changed. It returns an error, and changes
// nothing, if [Lesson.Check] refuses it.
func (h *History) Learn(x Lesson) error {
	if err := h.ledger.Learn(x); err != nil {
		return err
	}
	h.at = max(h.at, x.At)
	o := cmp.Or(x.Outcome, x.Retracts)
	if s := x.Second; s != nil && s.judged() {
		of := Outcome{Machine: s.Machine, State: s.State, Options: []string{s.First}}
		if o != nil {
			of.Session, of.Round = o.Session, o.Round
		}
		for _, id := range []string{s.FirstHuman, s.SecondHuman} {
			h.note(&x, &of, Vote{SpecialistID: id, Human: true})
		}
	}
	if o == nil || len(o.Options) < 2 { // where there was nothing to choose, nothing was learned
		return nil
	}
	for _, p := range o.Proposals {
		if !p.Human && !p.Replaced && !p.Failed {
			h.note(&x, o, Vote{SpecialistID: p.SpecialistID, Version: p.Version, Model: p.Model})
		}
	}
	return nil
}

// note adds a point of somebody who was compared in a round.
func (h *History) note(x *Lesson, o *Outcome, v Vote) {
	key := seriesKey{o.Machine, o.State, v.SpecialistID}
	s := h.series[key]
	if s == nil {
		s = &series{}
		h.series[key] = s
	}
	w := h.ledger.Word(Question{Machine: o.Machine, State: o.State, Options: o.Options, Votes: []Vote{v}})
	s.add(Point{At: x.At, Trust: w.Trust, K: w.K, N: w.N, Level: w.Level, Session: o.Session, Round: o.Round, Retracted: x.Retracts != nil}, v.Version)
}

// An Axis is what a series is thinned along.
type Axis string

// The axes.
const (
	ByDecisions Axis = "decisions"
	ByDates     Axis = "dates"
)

// Series returns the points of a specialist in a state, in their order, and the newest marks of
// its versions, the first included: [MostPoints] - 1 and [MostMarks] at most. Where there were
// more points, the first, the newest, and the extremes of trust in equal parts of the axis are
// left. What was asked for before is not changed by lessons to come.
func (h *History) Series(machine, state, specialist string, by Axis) ([]Point, []VersionMark) {
	s := h.series[seriesKey{machine, state, specialist}]
	if s == nil {
		return nil, nil
	}
	return s.thinned(by)
}
