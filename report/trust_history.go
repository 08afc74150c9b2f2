package report

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A TrustSeries is what somebody's word in a state of a machine has counted for, over human
// decisions. It holds 500 points at most: where there were more, the first, the newest, and
// those of least and of most trust in equal parts of the axis.
type TrustSeries struct {
	MachineName  string `json:"machineName"`
	State        string `json:"state"`
	SpecialistID string `json:"specialist"`
	Off          bool   `json:"off,omitempty"`
	Human        bool   `json:"human,omitempty"`
	// Points are in order. The newest is what TrustOf says now; it is of no round if something
	// else has changed that since the last human decision, such as a lesson of another state, or
	// a new version, or if there was no such decision.
	Points []TrustPoint `json:"points"`
	Marks  []TrustMark  `json:"marks"` // in the order of time; the newest 500 of versions, and of stages
}

// A TrustPoint is what somebody's word counted for right after a human decision on a round in
// which it was heard; of a human, after it was known whether another one agreed.
type TrustPoint struct {
	Index int64            `json:"index"` // how many of these there had been, with this one
	At    specialist.Time  `json:"at,omitzero"`
	Trust exact.Billionths `json:"trust"` // probability of agreeing with a human
	K     int64            `json:"k"`     // agreements at Level
	N     int64            `json:"n"`     // comparisons at Level
	Level string           `json:"level"` // where the nearest record was
	// Low and High are Wilson's score interval for the share K of N, at 90 %.
	Low       exact.Billionths `json:"low"`
	High      exact.Billionths `json:"high"`
	SessionID string           `json:"sessionId,omitempty"`
	RoundID   string           `json:"roundId,omitempty"`
	Retracted bool             `json:"retracted,omitempty"` // the human has taken back what was decided in that round
}

// A TrustMark is a change beside the points.
type TrustMark struct {
	// Kind is version, or, of the state or the whole machine, stage_changed, champion_promoted
	// or champion_demoted.
	Kind         string          `json:"kind"`
	Index        int64           `json:"index"` // of a version the first point that is of it; of others the last point shown before
	At           specialist.Time `json:"at,omitzero"`
	Version      string          `json:"version,omitempty"`
	Stage        trust.Stage     `json:"stage,omitempty"`
	SpecialistID string          `json:"specialist,omitempty"` // the champion
	Reason       string          `json:"reason,omitempty"`
}

// markVersion is the kind of marks of versions.
const markVersion = "version"

// A HistoryQuery says which series are wanted; "" is all, and by decisions.
type HistoryQuery struct {
	State, SpecialistID string
	By                  string // decisions or dates: along what a series is thinned
}

// TrustHistoryOf yields a series for everybody who takes part in a state, in the order of
// [TrustOf]. It yields ErrNotFound for a machine, a state or a specialist that is not there.
func TrustHistoryOf(ctx context.Context, r *runner.Runner, machineName string, q HistoryQuery) iter.Seq2[TrustSeries, error] {
	return func(yield func(TrustSeries, error) bool) {
		found := false
		err := eachSeries(ctx, r, machineName, q, func(t TrustSeries) bool {
			found = true
			return yield(t, nil)
		})
		if err == nil && !found && q.SpecialistID != "" {
			err = &session.NotFoundError{What: "Specialist", ID: q.SpecialistID}
		}
		if err != nil {
			yield(TrustSeries{}, err)
		}
	}
}

func eachSeries(ctx context.Context, r *runner.Runner, machineName string, q HistoryQuery, yield func(TrustSeries) bool) error {
	d, err := deciding(ctx, r, machineName)
	if err != nil {
		return err
	}
	if err := known(d.Machine, machine.StateName(q.State)); err != nil {
		return err
	}
	stages, err := stagesOf(ctx, r, machineName)
	if err != nil {
		return err
	}
	for i := range d.States {
		s := &d.States[i]
		if len(s.State.Transitions) == 0 || q.State != "" && q.State != s.State.Name {
			continue
		}
		for _, m := range slices.Concat(s.Proposers, s.Humans) {
			if q.SpecialistID != "" && q.SpecialistID != m.SpecialistID {
				continue
			}
			var t TrustSeries
			if err := r.TrustHistory(ctx, func(h *trust.History) { t = seriesOf(h, s, &m, trust.Axis(q.By)) }); err != nil {
				return err
			}
			for _, place := range []string{"", s.State.Name} {
				t.mark(stages[place])
			}
			if !yield(t) {
				return nil
			}
		}
	}
	return nil
}

// seriesOf returns the series of one participant, up to now.
func seriesOf(h *trust.History, s *runner.StateDeciding, m *planning.Participant, by trust.Axis) TrustSeries {
	now := wordOf(h.Ledger(), s, m)
	t := TrustSeries{MachineName: now.MachineName, State: now.State, SpecialistID: now.SpecialistID, Off: now.Off, Human: now.Human, Points: []TrustPoint{}, Marks: []TrustMark{}}
	points, versions := h.Series(now.MachineName, now.State, now.SpecialistID, by)
	last := trust.Point{At: h.At(), Trust: now.Trust, K: now.K, N: now.N, Level: now.Level}
	renewed := !now.Human && (len(versions) == 0 || versions[len(versions)-1].Version != now.Version)
	if n := len(points); n > 0 {
		last.Index = points[n-1].Index
	}
	if n := len(points); n == 0 || renewed || !same(points[n-1], last) {
		points = append(points, last)
	}
	switch {
	case now.Human:
		versions = nil
	case renewed:
		versions = append(versions, trust.VersionMark{Index: last.Index, At: last.At, Version: now.Version})
	}
	for _, p := range points {
		low, high := trust.Interval(p.K, p.N)
		t.Points = append(t.Points, TrustPoint{p.Index, p.At, p.Trust, p.K, p.N, p.Level, low, high, p.Session, p.Round, p.Retracted})
	}
	for _, v := range versions {
		t.Marks = append(t.Marks, TrustMark{Kind: markVersion, Index: v.Index, At: v.At, Version: v.Version})
	}
	return t
}

// same reports whether two points say the same of a word.
func same(p, q trust.Point) bool {
	return p.Trust == q.Trust && p.K == q.K && p.N == q.N && p.Level == q.Level
}

// mark enters what has happened to a place.
func (t *TrustSeries) mark(events []session.RosterEvent) {
	for i := range events {
		e := &events[i]
		m := TrustMark{Kind: e.Kind, At: e.At, SpecialistID: e.ID, Reason: e.Reason}
		if e.Stage != nil {
			m.Stage = e.Stage.StageOf()
		}
		for _, p := range t.Points {
			if p.At <= e.At {
				m.Index = p.Index
			}
		}
		t.Marks = append(t.Marks, m)
	}
	slices.SortStableFunc(t.Marks, func(a, b TrustMark) int { return cmp.Compare(a.At, b.At) })
}

// stagesOf returns the newest changes of stages and champions, by state; "" is the machine.
func stagesOf(ctx context.Context, r *runner.Runner, machineName string) (map[string][]session.RosterEvent, error) {
	all := map[string][]session.RosterEvent{}
	for e, err := range stageEvents(ctx, r, machineName) {
		if err != nil {
			return nil, err
		}
		list := append(all[e.State], e)
		all[e.State] = list[max(0, len(list)-trust.MostMarks):]
	}
	return all, nil
}

// stageEvents yields how stages and champions of a machine have changed.
func stageEvents(ctx context.Context, r *runner.Runner, machineName string) iter.Seq2[session.RosterEvent, error] {
	return func(yield func(session.RosterEvent, error) bool) {
		for rec, err := range r.Store().RosterRecords(ctx, machineName, 0) {
			var events []session.RosterEvent
			if err == nil {
				if events, err = session.DecodeRosterEvents(rec.Events); err != nil {
					err = &session.CorruptError{What: "the log of machine " + machineName, Problem: err.Error()}
				}
			}
			if err != nil {
				yield(session.RosterEvent{}, err)
				return
			}
			for _, e := range events {
				if (e.Kind == session.KindPromoted || e.Kind == session.KindDemoted || e.Kind == session.KindStage) && !yield(e, nil) {
					return
				}
			}
		}
	}
}
