package store_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// tally returns what decisions come to for who has not counted before.
func (a *aStore) tally(s *store.SQLite) []byte {
	a.Helper()
	t, err := stats.NewFollower(s, session.NewPrograms()).Of(a.ctx, a.machineName())
	a.ok(err)
	return stats.Snapshot(a.machineName(), 0, t).Body
}

func (a *aStore) machineName() string {
	m, err := machine.Parse("small.json", []byte(small), runner.Checks())
	a.ok(err)
	return m.Name()
}

// TestTalliesAreProven: what decisions come to is kept, a check finds a snapshot of others, and rebuilding
// drops it.
func TestTalliesAreProven(t *testing.T) {
	a := taught(t, 1005)
	name := a.machineName()
	a.with(func(r *runner.Runner, s *store.SQLite) {
		kept := func() (list []session.LedgerSnapshot) {
			for l, err := range s.LedgerSnapshots(a.ctx, stats.Scope(name)) {
				a.ok(err)
				list = append(list, l)
			}
			return list
		}
		counted, err := r.Tally(a.ctx, name)
		a.ok(err)
		if sum := counted.Of(""); sum.Human < 1000 || len(kept()) != 1 {
			t.Fatalf("%+v, %d snapshots", sum, len(kept()))
		}
		good := kept()[0]
		wrong := counted.Clone()
		for _, one := range wrong.States {
			one.Human++
		}
		other := good
		other.Format++
		for _, c := range []struct {
			what  string
			keep  session.LedgerSnapshot
			finds bool
		}{
			{"as it was", good, false},
			{"of other decisions", stats.Snapshot(name, good.Place, wrong), true},
			{"at an earlier place", session.LedgerSnapshot{Scope: good.Scope, Place: good.Place - 1, Format: good.Format, Body: good.Body}, true},
			{"in another format", other, false},
		} {
			a.ok(s.WriterExec(`DELETE FROM ledger_snapshots WHERE scope<>''`))
			a.ok(s.KeepLedger(a.ctx, c.keep))
			report, err := s.Verify(a.ctx, session.NewPrograms())
			a.ok(err)
			if d := report.Difference; (d != nil) != c.finds || d != nil && !strings.Contains(d.What, "decisions") {
				t.Errorf("a snapshot %s: verify finds %v", c.what, d)
			}
		}
		if report, err := s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil || len(kept()) != 0 {
			t.Fatalf("rebuilt, %d snapshots are left: %v (%v)", len(kept()), report.Difference, err)
		}
		a.tally(s)
		if again := kept(); len(again) != 1 || !bytes.Equal(again[0].Body, good.Body) || again[0].Place != good.Place {
			t.Error("rebuilt, another snapshot is kept than before")
		}
	})
}

// TestArchivedDecisionsCount: what decisions come to stays when their sessions are archived, for whoever has
// counted them before, goes on from a snapshot, or begins anew; and is verified.
func TestArchivedDecisionsCount(t *testing.T) {
	a, _ := ended(t)
	to := filepath.Join(t.TempDir(), "archive.db")
	var before []byte
	a.with(func(r *runner.Runner, s *store.SQLite) {
		name := a.machineName()
		before = a.tally(s)
		early := stats.NewFollower(s, session.NewPrograms())
		_, err := early.Of(a.ctx, name)
		a.ok(err)
		want, err := report.MetricsOf(a.ctx, r, name, "")
		a.ok(err)
		m, err := machine.Parse("small.json", []byte(small), runner.Checks())
		a.ok(err)
		for range 2 { // which early has not counted; the second session stays, since it began last
			one, err := r.Start(a.ctx, m, runner.StartOptions{})
			a.ok(err)
			a.force(r, one.ID)
			_, err = r.Decide(a.ctx, runner.Ruling{SessionID: one.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "enough"})
			a.ok(err)
		}
		a.force(r, a.ids[1]) // the newest record
		same := func(what string) {
			t.Helper()
			if now := a.tally(s); !bytes.Equal(now, before) {
				t.Errorf("%s, decisions come to something else", what)
			}
			if report, err := s.Verify(a.ctx, session.NewPrograms()); err != nil || report.Difference != nil {
				t.Errorf("%s, verify finds %v (%v)", what, report.Difference, err)
			}
		}
		before = a.tally(s)
		done, err := s.Archive(a.ctx, inBatches(archiving(to), 2))
		a.ok(err)
		if done.Sessions == 0 {
			t.Fatal("nothing was archived")
		}
		same("archived")
		if now, err := early.Of(a.ctx, name); err != nil || !bytes.Equal(stats.Snapshot(name, 0, now).Body, before) {
			t.Errorf("for who has counted before, decisions come to something else (%v)", err)
		}
		a.ok(s.WriterExec(`DELETE FROM ledger_snapshots`))
		same("counted anew")
		a.ok(stats.NewFollower(s, session.NewPrograms()).Keep(a.ctx, name))
		same("counted anew and kept")
		if now, err := report.MetricsOf(a.ctx, r, name, ""); err != nil || now.TotalDecisions != want.TotalDecisions+5 {
			t.Errorf("metrics are of %d decisions, and were of %d and five (%v)", now.TotalDecisions, want.TotalDecisions, err)
		}
	})
}

// BenchmarkTally counts the decisions of a store as a process does that has just opened it: from a snapshot,
// and without one.
func BenchmarkTally(b *testing.B) {
	path := filepath.Join(b.TempDir(), "dialai.db")
	s := openSQLite(b, path)
	m, err := machine.Parse("small.json", []byte(small), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	const sessions, each = 100, 50
	for range sessions {
		one, err := r.Start(b.Context(), m, runner.StartOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for range each {
			if _, err := r.Decide(b.Context(), runner.Ruling{SessionID: one.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on"}); err != nil {
				b.Fatal(err)
			}
		}
	}
	count := func() {
		t, err := stats.NewFollower(s, session.NewPrograms()).Of(b.Context(), m.Name())
		if err != nil || t.Of("").Human != sessions*each {
			b.Fatal(t.Of(""), err)
		}
	}
	count()
	b.Run("counted", func(b *testing.B) {
		for b.Loop() {
			if err := s.WriterExec(`DELETE FROM ledger_snapshots`); err != nil {
				b.Fatal(err)
			}
			count()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(sessions*each), "ns/decision")
	})
	count()
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			count()
		}
	})
}
