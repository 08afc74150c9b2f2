package postgres_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

// TestSnapshotsAreProven: a snapshot that is not of the log is passed over, and verify finds it;
// an ended session gets none.
func TestSnapshotsAreProven(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	id, short := storetest.Long(t, s, 70), storetest.Long(t, s, 3)
	if snapshotAt(t, s, id) == 0 {
		t.Fatal("a long session has no snapshot")
	}
	load := func(id specialist.SessionID) (int, bool) {
		t.Helper()
		s.Forget()
		now, err := s.Load(t.Context(), session.NewPrograms(), id)
		if err != nil {
			t.Fatal(err)
		}
		return len(now.History()), s.Used(id)
	}
	exec(t, address, `CREATE SCHEMA saved; CREATE TABLE saved.snapshots AS TABLE dialai.snapshots`)
	for _, c := range []struct {
		what, query, finds string
		used               bool
	}{
		{"good", `SELECT 1`, "", true},
		{"of another body", `UPDATE snapshots SET body='\x00'`, "not what its hash says", false},
		{"at another event", `UPDATE snapshots SET sequence=sequence-1`, "not what its hash says", false},
		{"of another head", `UPDATE snapshots SET head=decode(repeat('00', 32), 'hex')`, "not what its hash says", false},
		{"of another session", `UPDATE snapshots SET session=2`, "not what its hash says", false},
		{"of no session", `UPDATE snapshots SET session=999`, "of no session", false},
	} {
		exec(t, address, `SET search_path=dialai; `+c.query)
		if n, used := load(id); n != 70 || used != c.used {
			t.Errorf("a snapshot %s: the session has %d transitions (used: %v)", c.what, n, used)
		}
		if n, used := load(short); n != 3 || used {
			t.Errorf("a snapshot %s: the short session has %d transitions (used: %v)", c.what, n, used)
		}
		report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
		if d := report.Difference; err != nil || (d != nil) != (c.finds != "") || d != nil && !strings.Contains(d.What, c.finds) {
			t.Errorf("a snapshot %s: verify finds %v (%v)", c.what, d, err)
		}
		exec(t, address, `TRUNCATE dialai.snapshots; INSERT INTO dialai.snapshots SELECT * FROM saved.snapshots`)
	}
	exec(t, address, `DROP SCHEMA saved CASCADE`)
	exec(t, address, `DELETE FROM dialai.snapshots`)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish"}); err != nil {
		t.Fatal(err)
	}
	if at := snapshotAt(t, s, id); at != 0 {
		t.Errorf("a session that has ended has a snapshot at event %d", at)
	}
}

// BenchmarkLoad loads sessions of which nothing is cached. A long one should take three times as long as a
// short one, at most.
func BenchmarkLoad(b *testing.B) {
	address := pgtest.Database(b)
	s := open(b, address, postgres.Options{})
	storetest.BenchLoad(b, storetest.Loaded{Store: s, Forget: s.Forget,
		Snapshot: func(id specialist.SessionID) int64 { return snapshotAt(b, s, id) },
		Drop:     func() { exec(b, address, `DELETE FROM dialai.snapshots`) }})
}
