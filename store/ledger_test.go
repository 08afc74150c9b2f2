package store_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// taught returns a store with so many lessons, all folded once.
func taught(t *testing.T, n int) *aStore {
	const sessions = 50
	a := &aStore{T: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "dialai.db")}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		m, err := machine.Parse("small.json", []byte(small), runner.Checks())
		a.ok(err)
		var wg sync.WaitGroup
		for i := range sessions { // at once, to share what a commit costs
			started, err := r.Start(a.ctx, m, runner.StartOptions{})
			a.ok(err)
			a.ids = append(a.ids, started.ID)
			wg.Go(func() {
				for range n/sessions + min(1, n%sessions/(i+1)) {
					_, err := r.Decide(a.ctx, runner.Ruling{SessionID: started.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on"})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		_, _, err = lessons.New().Read(a.ctx, s)
		a.ok(err)
	})
	return a
}

// snapshots returns what a store keeps of the ledger.
func (a *aStore) snapshots(s *store.SQLite) (list []session.LedgerSnapshot) {
	a.Helper()
	for l, err := range s.LedgerSnapshots(a.ctx, "") {
		a.ok(err)
		list = append(list, l)
	}
	return list
}

// TestLedgerIsProven: a snapshot of the ledger is what the log says, a check finds one that is not
// and one that is damaged, and rebuilding drops it, after which the next who reads keeps it again.
func TestLedgerIsProven(t *testing.T) {
	a := taught(t, 1005)
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		report, err := s.Verify(a.ctx, session.NewPrograms())
		a.ok(err)
		kept := a.snapshots(s)
		if report.Difference != nil || len(kept) != 1 {
			t.Fatalf("%d snapshots are kept, and verify finds %v", len(kept), report.Difference)
		}
		good := kept[0]
		wrong := lessons.NewFold()
		for x, err := range s.Lessons(a.ctx, 0) {
			a.ok(err)
			if x.Seq > good.Place {
				break
			}
			if o := *x.Outcome; o.Round != "" && x.Seq > 700 {
				o.Source = trust.Audited
				o.HumanID = "somebody else"
				o.Truth = o.Options[len(o.Options)-1]
				x.Outcome = &o
			}
			a.ok(wrong.Learn(x))
		}
		other := good
		other.Format += 1 << 8 // one that nobody knows
		for _, c := range []struct {
			what  string
			keep  session.LedgerSnapshot
			query string
			finds bool
			kept  int
		}{
			{"of other lessons", wrong.Snapshot(), "", true, 1},
			{"at another place", session.LedgerSnapshot{Place: good.Place - 1, Format: good.Format, Body: good.Body}, "", true, 1},
			{"in another format", other, "", false, 1},
			{"with another body", good, `UPDATE ledger_snapshots SET body=zeroblob(9)`, true, 0},
			{"with another format beside its hash", good, `UPDATE ledger_snapshots SET format=format+1`, true, 0},
			{"at another place than its hash", good, `UPDATE ledger_snapshots SET place=place-1`, true, 0},
		} {
			a.ok(s.WriterExec(`DELETE FROM ledger_snapshots`))
			a.ok(s.KeepLedger(a.ctx, c.keep))
			if c.query != "" {
				a.ok(s.WriterExec(c.query))
			}
			report, err := s.Verify(a.ctx, session.NewPrograms())
			a.ok(err)
			if d := report.Difference; (d != nil) != c.finds || d != nil && (d.Stream != "ledger_snapshots" || !d.Repaired) {
				t.Errorf("a snapshot %s: verify finds %v", c.what, d)
			}
			if kept := a.snapshots(s); len(kept) != c.kept {
				t.Errorf("a snapshot %s: %d are yielded, want %d", c.what, len(kept), c.kept)
			}
		}
		if report, err := s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil || len(a.snapshots(s)) != 0 {
			t.Fatalf("rebuilt, %d snapshots are left: %v (%v)", len(a.snapshots(s)), report.Difference, err)
		}
		_, _, err = lessons.New().Read(a.ctx, s)
		a.ok(err)
		if kept := a.snapshots(s); len(kept) != 1 || !bytes.Equal(kept[0].Body, good.Body) || kept[0].Place != good.Place {
			t.Error("rebuilt, another snapshot is kept than before")
		}
	})
}

// BenchmarkFirstDecision judges a round in a store of 100,000 lessons of 16 voters, as a process
// does that has just opened it: from a snapshot, and without one. It should take 0.5 s at most.
func BenchmarkFirstDecision(b *testing.B) {
	const n = 100_900 // that is, 900 since the snapshot
	s := openSQLite(b, filepath.Join(b.TempDir(), "dialai.db"))
	d := trust.NewDraw("first decision")
	var votes []trust.Vote
	err := s.InsertLessons(n, func(i int) trust.Lesson {
		o := &trust.Outcome{Machine: "desk", State: fmt.Sprint("s", i%3), Options: []string{"a", "b", "c", "d"}, Truth: "a", Source: trust.Forced, HumanID: "h",
			Session: fmt.Sprintf("6f1b8a52-0000-4000-8000-%012d", i/20), Round: fmt.Sprintf("6f1b8a52-0000-4000-8000-%012d/%d", i/20, i%20)}
		votes = votes[:0]
		for v := range 16 {
			p := trust.OutcomeProposal{SpecialistID: fmt.Sprintf("voter-%02d", v), Version: "1", Model: fmt.Sprint("model ", v%4), Transition: "a", Cost: exact.Money(1e6)}
			if d.Float() > .5+.02*float64(v) {
				p.Transition = o.Options[d.Perm(4)[0]]
			}
			o.Proposals = append(o.Proposals, p)
			votes = append(votes, trust.Vote{SpecialistID: p.SpecialistID, Version: "1", Model: p.Model, Option: v % 4})
		}
		return trust.Lesson{Outcome: o}
	})
	if err != nil {
		b.Fatal(err)
	}
	q := trust.Question{Machine: "desk", State: "s1", Options: []string{"a", "b", "c", "d"}, Votes: votes}
	judge := func() {
		l, place, err := lessons.New().Read(b.Context(), s)
		if err != nil || place != n {
			b.Fatal(place, err)
		}
		l.Judge(q)
	}
	b.Run("folded", func(b *testing.B) {
		for b.Loop() {
			if err := s.WriterExec(`DELETE FROM ledger_snapshots`); err != nil {
				b.Fatal(err)
			}
			judge()
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			judge()
		}
	})
}
