package store_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

// A longRun is a file with a session that has a snapshot, and one with few events that has none.
type longRun struct {
	*testing.T
	path      string
	id, short specialist.SessionID
}

func newLongRun(t *testing.T) *longRun {
	l := &longRun{T: t, path: t.TempDir() + "/dialai.db"}
	s := openSQLite(t, l.path)
	l.id, l.short = storetest.Long(t, s, 70), storetest.Long(t, s, 3)
	if at := snapshotAt(t, s, l.id); at == 0 {
		t.Fatal("a long session has no snapshot")
	}
	return l
}

func (l *longRun) load(s *store.SQLite, id specialist.SessionID) *session.Session {
	l.Helper()
	now, err := s.Load(l.Context(), session.NewPrograms(), id)
	if err != nil {
		l.Fatal(err)
	}
	return now
}

// finish has a human end the long session.
func (l *longRun) finish(s *store.SQLite) {
	l.Helper()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		l.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Decide(l.Context(), runner.Ruling{SessionID: l.id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "finish"}); err != nil {
		l.Fatal(err)
	}
}

func (l *longRun) kept(s *store.SQLite) store.Kept {
	l.Helper()
	k, err := s.KeptOf(l.Context(), l.id)
	if err != nil || k == nil {
		l.Fatalf("there is no snapshot of the long session (%v)", err)
	}
	return *k
}

func (l *longRun) keep(s *store.SQLite, k *store.Kept) {
	l.Helper()
	if err := s.Keep(l.Context(), k); err != nil {
		l.Fatal(err)
	}
}

func (l *longRun) exec(s *store.SQLite, query string) {
	l.Helper()
	if err := s.WriterExec(query); err != nil {
		l.Fatal(err)
	}
}

// TestSnapshotsAreProven: verify finds a snapshot that is not what the log comes to, a load passes it over,
// and rebuilding drops it. One in a form that is not known is nobody's business.
func TestSnapshotsAreProven(t *testing.T) {
	l := newLongRun(t)
	s := openSQLite(t, l.path)
	whole, good := len(l.load(s, l.id).History()), l.kept(s)
	for _, c := range []struct{ what, query, finds string }{
		{"good", `SELECT 1`, ""},
		{"of another body", `UPDATE snapshots SET body=zeroblob(9)`, "cannot be read"},
		{"at another event than its hash", `UPDATE snapshots SET sequence=sequence-1`, "not what its hash says"},
		{"of another head than its hash", `UPDATE snapshots SET head=zeroblob(32)`, "not what its hash says"},
		{"of another session", `UPDATE snapshots SET session=(SELECT id FROM sessions ORDER BY id DESC LIMIT 1)`, "not what its hash says"},
		{"of no session", `UPDATE snapshots SET session=999`, "of no session"},
	} {
		l.exec(s, c.query)
		fresh := openSQLite(t, l.path)
		if n := len(l.load(fresh, l.id).History()); n != whole || len(l.load(fresh, l.short).History()) != 3 {
			t.Errorf("a snapshot %s: the session has %d transitions, want %d", c.what, n, whole)
		}
		report, err := s.Verify(t.Context(), session.NewPrograms())
		if d := report.Difference; err != nil || (d != nil) != (c.finds != "") || d != nil && (d.Stream != "snapshots" || !d.Repaired || !strings.Contains(d.What, c.finds)) {
			t.Errorf("a snapshot %s: verify finds %v (%v)", c.what, d, err)
		}
		l.exec(s, `DELETE FROM snapshots`)
		l.keep(s, &good)
	}
	if report, err := s.Rebuild(t.Context(), session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil || snapshotAt(t, s, l.id) != 0 {
		t.Errorf("rebuilt, a snapshot is left: %v (%v)", report, err)
	}
}

// TestSnapshotsOfOtherLogs: a snapshot whose hash is right is used only if its head is in the chain of the
// log at its event, if it is of that session and in a form that is known; and verify says what is wrong
// with it.
func TestSnapshotsOfOtherLogs(t *testing.T) {
	l := newLongRun(t)
	s := openSQLite(t, l.path)
	whole, good := len(l.load(s, l.id).History()), l.kept(s)
	for _, c := range []struct {
		what  string
		alter func(k *store.Kept)
		finds bool
	}{
		{"of another head", func(k *store.Kept) { k.Head[3]++ }, true},
		{"of another body", func(k *store.Kept) { k.Body = append([]byte(nil), k.Body[:len(k.Body)-1]...) }, true},
		{"at another event", func(k *store.Kept) { k.Sequence-- }, true},
		{"after the end", func(k *store.Kept) { k.Sequence += 10_000 }, true},
		{"in another form", func(k *store.Kept) { k.Format++ }, false},
	} {
		k := good
		c.alter(&k)
		l.keep(s, &k)
		fresh := openSQLite(t, l.path)
		if now := l.load(fresh, l.id); len(now.History()) != whole || fresh.Used(l.id) {
			t.Errorf("a snapshot %s was used: the session has %d transitions, want %d", c.what, len(now.History()), whole)
		}
		report, err := s.Verify(t.Context(), session.NewPrograms())
		if d := report.Difference; err != nil || (d != nil) != c.finds || d != nil && d.Stream != "snapshots" {
			t.Errorf("a snapshot %s: verify finds %v (%v)", c.what, d, err)
		}
	}
	l.keep(s, &good)
	if fresh := openSQLite(t, l.path); l.load(fresh, l.id) == nil || !fresh.Used(l.id) {
		t.Error("a snapshot that fits is not used")
	}
}

// TestNoSnapshotOutlivesErasing: no snapshot is left of a session that was erased, nor written afterwards:
// texts are in it.
func TestNoSnapshotOutlivesErasing(t *testing.T) {
	l := newLongRun(t)
	s := openSQLite(t, l.path)
	l.finish(s)
	before := l.kept(s)
	if _, err := s.Erase(t.Context(), eraseOf(l.id)); err != nil {
		t.Fatal(err)
	}
	if at := snapshotAt(t, s, l.id); at != 0 {
		t.Errorf("erased, the session has a snapshot at event %d", at)
	}
	if now := l.load(openSQLite(t, l.path), l.id); !now.Erased() || strings.Contains(now.History()[0].Reasoning, "because") {
		t.Errorf("loaded anew it is %+v", now.History()[0])
	}
	if l.keep(s, &before); snapshotAt(t, s, l.id) != 0 {
		t.Error("a snapshot that was under way is written behind the erasing")
	}
	if report, err := s.Verify(t.Context(), session.NewPrograms()); err != nil || report.Difference != nil {
		t.Errorf("verify finds %v (%v)", report.Difference, err)
	}
}

// TestNoSnapshotIsArchived: of a session that was archived no snapshot is left, nor does the archive have one.
func TestNoSnapshotIsArchived(t *testing.T) {
	l := newLongRun(t)
	s := openSQLite(t, l.path)
	l.finish(s)
	storetest.Long(t, s, 1) // which has the newest record: that stays
	o := store.ArchiveOptions{Before: specialist.Time(1) << 42, At: specialist.Time(1) << 42, To: l.path + ".archive", Programs: session.NewPrograms()}
	if done, err := s.Archive(t.Context(), o); err != nil || done.Sessions != 1 {
		t.Fatalf("archived: %+v (%v)", done, err)
	}
	for _, path := range []string{l.path, o.To} {
		if n, err := openSQLite(t, path).Ints(`SELECT count(*) FROM snapshots`); err != nil || n[0] != 0 {
			t.Errorf("%s has %d snapshots (%v)", path, n, err)
		}
	}
	if report, err := s.Verify(t.Context(), session.NewPrograms()); err != nil || report.Difference != nil {
		t.Errorf("verify finds %v (%v)", report.Difference, err)
	}
}

// BenchmarkLoad loads sessions of which nothing is cached. A long one should take three times as long as a
// short one, at most.
func BenchmarkLoad(b *testing.B) {
	s := openSQLite(b, b.TempDir()+"/dialai.db")
	storetest.BenchLoad(b, storetest.Loaded{Store: s, Forget: s.Forget,
		Snapshot: func(id specialist.SessionID) int64 { return snapshotAt(b, s, id) },
		Drop: func() {
			if err := s.WriterExec(`DELETE FROM snapshots`); err != nil {
				b.Fatal(err)
			}
		}})
}

// TestSnapshotsAreReadOnly: who makes a snapshot of a session changes nothing of it, whoever else makes one or
// goes on from it meanwhile.
func TestSnapshotsAreReadOnly(t *testing.T) {
	l := newLongRun(t)
	s := openSQLite(t, l.path)
	of := l.load(s, l.id)
	made := make(chan string, 2)
	for range cap(made) {
		go func() { made <- string(of.Snapshot()) }()
	}
	l.finish(s) // which goes on from the same session
	if one, other := <-made, <-made; one != other || one == "" {
		t.Error("two snapshots of one session differ")
	}
}
