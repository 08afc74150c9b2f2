package sim_test

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Now and then somebody counts what decisions come to, goes on from the snapshot of another, and leaves
// one. In the end that is what all decisions and lessons come to, looked at one by one.

// countEvery is after how many commits somebody counts.
const countEvery = 23

// A keeper is the store of whoever counts, with room for snapshots.
type keeper struct {
	session.Store
	w        *world
	programs *session.Programs
	kept     []session.LedgerSnapshot // the newest first
}

func (k *keeper) KeepLedger(_ context.Context, s session.LedgerSnapshot) error {
	if k.w.mutation.is("snapshot lacks a decision") {
		s.Place++
	}
	k.kept = append([]session.LedgerSnapshot{s}, k.kept...)
	k.w.count("tallies kept")
	return nil
}

func (k *keeper) LedgerSnapshots(context.Context, string) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		for _, s := range k.kept {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// tally has somebody count who has not counted before.
func (w *world) tally() {
	if w.keeper == nil {
		w.keeper = &keeper{Store: w.base, w: w, programs: session.NewPrograms()}
	}
	if err := stats.NewFollower(w.keeper, w.keeper.programs).Keep(context.Background(), w.machine.Name()); err != nil {
		w.fail(talliesKept, "%v", err)
	}
}

// compareTallies holds what was counted against what there is to count.
func (w *world) compareTallies() {
	w.tally()
	name, ctx := w.machine.Name(), context.Background()
	want := w.counted()
	for what, f := range map[string]func() (*stats.Tally, error){
		"at once":           func() (*stats.Tally, error) { return stats.NewFollower(w.base, w.keeper.programs).Of(ctx, name) },
		"from snapshots":    func() (*stats.Tally, error) { return stats.NewFollower(w.keeper, w.keeper.programs).Of(ctx, name) },
		"as it was counted": func() (*stats.Tally, error) { return w.reader.Tally(ctx, name) },
	} {
		if got, err := f(); err != nil || !bytes.Equal(stats.Snapshot(name, 0, got).Body, stats.Snapshot(name, 0, want).Body) {
			w.fail(talliesKept, "%s: %+v instead of %+v (%v)", what, got.Of(""), want.Of(""), err)
		}
	}
}

// counted counts decisions and lessons one by one.
func (w *world) counted() *stats.Tally {
	ctx, t, human := context.Background(), &stats.Tally{}, map[string]bool{}
	failed := func(err error) *stats.Tally {
		w.fail(talliesKept, "%v", err)
		return t
	}
	places := map[session.DecisionRef]int64{}
	for e, err := range w.base.Log(ctx, "", 0) {
		if err != nil {
			return failed(err)
		}
		places[session.DecisionRef{Session: e.Session, Seq: e.First}] = e.Place
	}
	for ref, err := range w.base.Decided(ctx, w.machine.Name()) {
		if err != nil {
			return failed(err)
		}
		decisions, err := w.reader.SessionDecisions(ctx, ref.Session)
		if err != nil {
			return failed(err)
		}
		if d := decisions[ref.Seq]; d != nil {
			t.Add(places[ref], stats.Record{Decision: d}) // which has the looks of its reviews
			human[d.RoundID] = d.IsHuman
			w.count("decisions counted")
		}
	}
	for _, s := range w.sessions {
		f := &session.Folder{Charged: func(at specialist.Time, c session.Charge) {
			on := stats.Spending{Day: specialist.TimeOf(at.Time().Truncate(24 * time.Hour)), SpecialistID: c.SpecialistID, Model: c.Model, Guards: c.Guards}
			t.Add(0, stats.Record{Charges: []stats.Charge{{Spending: on, Book: c.Book}}})
			w.count("charges counted")
		}}
		for _, err := range w.reader.Fold(ctx, s.id, f) {
			if err != nil {
				return failed(err)
			}
		}
	}
	for x, err := range w.base.Lessons(ctx, 0) {
		if err != nil {
			return failed(err)
		}
		t.Learn(&x, x.Outcome != nil && human[x.Outcome.Round])
	}
	return t
}
