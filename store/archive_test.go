package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

// archiving says that everything that has ended is archived.
func archiving(to string) store.ArchiveOptions {
	return store.ArchiveOptions{Before: specialist.Time(1) << 50, To: to, At: 7, Programs: session.NewPrograms()}
}

// inBatches has so many sessions moved in one transaction, and afterStep f called after each step.
func inBatches(o store.ArchiveOptions, n int) store.ArchiveOptions { o.Batch = n; return o }
func afterStep(o store.ArchiveOptions, f func(step string) error) store.ArchiveOptions {
	o.After = f
	return o
}

// ended returns a store of which the sessions have ended but for one, and humans have taught something in
// each; agents have logged about two. last are the rounds that ended them.
func ended(t *testing.T) (a *aStore, last map[specialist.SessionID]string) {
	a, last = newStore(t), map[specialist.SessionID]string{}
	round := func(r *runner.Runner, id specialist.SessionID) string {
		now, err := r.Session(a.ctx, id)
		a.ok(err)
		return now.Key().ID()
	}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		for range 5 {
			m, err := machine.Parse("small.json", []byte(small), runner.Checks())
			a.ok(err)
			one, err := r.Start(a.ctx, m, runner.StartOptions{})
			a.ok(err)
			a.ids = append(a.ids, one.ID)
			a.force(r, one.ID)
		}
		for _, id := range a.ids[1:3] {
			a.ok(s.AppendAgentLog(a.ctx, id, 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"on it"}`)}))
		}
		for i, id := range a.ids {
			if i == 1 { // goes on
				continue
			}
			wrong := round(r, id)
			a.force(r, id)
			_, err := r.Retract(a.ctx, runner.Retracting{SessionID: id, RoundID: wrong, SpecialistID: "h", Note: "no"})
			a.ok(err)
			last[id] = round(r, id)
			_, err = r.Decide(a.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "enough"})
			a.ok(err)
		}
	})
	return a, last
}

// whole returns what is wrong with a store of which a report was made.
func whole(report store.Report, err error) error {
	if err == nil && report.Difference != nil {
		err = report.Difference
	}
	return err
}

var archiveFile = storetest.ArchiveFile(func(t *testing.T, path string) (session.Store, func() error, func() error) {
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() error { return whole(s.Verify(t.Context(), session.NewPrograms())) }, s.Close
})

// TestArchiveContract holds a file to the suite of archiving.
func TestArchiveContract(t *testing.T) {
	open := func(t *testing.T, path string) *store.SQLite {
		t.Helper()
		s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	storetest.RunArchive(t, func(t *testing.T) storetest.ArchiveMaker {
		path := filepath.Join(t.TempDir(), "dialai.db")
		return storetest.ArchiveMaker{
			Open: func(t *testing.T) storetest.ArchiveStore {
				s := open(t, path)
				t.Cleanup(func() { s.Close() })
				return s
			},
			Verify: func(t *testing.T, s storetest.ArchiveStore) error {
				return whole(s.(*store.SQLite).Verify(t.Context(), session.NewPrograms()))
			},
			Rebuild: func(t *testing.T, s storetest.ArchiveStore) error {
				return whole(s.(*store.SQLite).Rebuild(t.Context(), session.NewPrograms(), store.RebuildOptions{}))
			},
			Exec: func(t *testing.T, query string) {
				execRaw(t, path, strings.ReplaceAll(query, "min(session_id::text)::uuid", "min(session_id)"))
			},
			File: archiveFile,
		}
	})
}

// logs returns the records of each session, from whichever of the files has it, and in how many it is.
func (a *aStore) logs(paths ...string) (texts map[specialist.SessionID]string, in map[specialist.SessionID]int) {
	a.Helper()
	texts, in = map[specialist.SessionID]string{}, map[specialist.SessionID]int{}
	for _, path := range paths {
		a.at(path, func(_ *runner.Runner, s *store.SQLite) {
			for _, id := range a.ids {
				var b bytes.Buffer
				var failed error
				for r, err := range s.Records(a.ctx, id, 0) {
					if failed = err; err != nil {
						break
					}
					fmt.Fprintf(&b, "%d %s %x\n", r.First, r.Events, r.Hash)
				}
				for e, err := range s.AgentLog(a.ctx, id, 0) {
					a.ok(err)
					fmt.Fprintf(&b, "%+v\n", e)
				}
				switch {
				case errors.Is(failed, session.ErrNotFound):
					continue
				case failed != nil:
					a.Fatal(failed)
				case texts[id] != "" && texts[id] != b.String():
					a.Errorf("session %s is another one in %s:\n%s", id, path, firstDifference(texts[id], b.String()))
				}
				texts[id] = b.String()
				in[id]++
			}
		})
	}
	return texts, in
}

// whole fails unless a file verifies.
func (a *aStore) whole(path string) {
	a.Helper()
	if err := a.verified(path); err != nil {
		a.Errorf("%s: %v", path, err)
	}
}

// verified returns what is wrong with a file.
func (a *aStore) verified(path string) (err error) {
	a.Helper()
	a.at(path, func(_ *runner.Runner, s *store.SQLite) { err = whole(s.Verify(a.ctx, session.NewPrograms())) })
	return err
}

// kept is what a store keeps of what was taught.
func (a *aStore) kept() string {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	var b strings.Builder
	for _, query := range []string{`SELECT * FROM alignment ORDER BY 1, 2, 3`, `SELECT * FROM exemplars ORDER BY id`, `SELECT * FROM lessons ORDER BY id`, `SELECT * FROM roster_log`, `SELECT * FROM definitions`} {
		a.ok(writeRows(&b, db, query))
	}
	return b.String()
}

// TestArchive: sessions that have ended are in the archive as they were, and nowhere else; what they taught stays,
// is verified and rebuilt as before; their ids and places stay taken.
func TestArchive(t *testing.T) {
	a, _ := ended(t)
	to := filepath.Join(t.TempDir(), "archive.db")
	before, _ := a.logs(a.path)
	taught := a.kept()
	if strings.Count(taught, "\n") < 10 {
		t.Fatalf("humans taught nothing: %s", taught)
	}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		var told int64
		o := archiving(to)
		o.Compact = true
		o.Deleted = func(done, _ int64) { told = done }
		may, err := s.Archivable(a.ctx, o)
		a.ok(err)
		head, err := s.Head(a.ctx)
		a.ok(err)
		done, err := s.Archive(a.ctx, inBatches(o, 2))
		a.ok(err)
		// of eight one lives, and the last one to begin, the newest record and the newest entry of an agent are in two of the others
		if done.Sessions != 5 || done.Kept != 2 || done.Sessions != may.Sessions || done.Records != may.Records || done.Bytes != may.Bytes || done.Kept != may.Kept || told != 5 || done.Archive != to {
			t.Errorf("archived: %+v, of %+v, told %d", done, may, told)
		}
		if kept := a.kept(); kept != taught {
			t.Errorf("what was taught is other: %s", firstDifference(taught, kept))
		}
		if report, err := s.Verify(a.ctx, session.NewPrograms(), head); err != nil || report.Difference != nil {
			t.Errorf("against the head from before: %v %v", err, report.Difference)
		}
		if now, err := s.Head(a.ctx); err != nil || now != head {
			t.Errorf("the head was %s, and is %s", head, now)
		}
		place, err := s.Place(a.ctx)
		a.ok(err)
		gone := a.ids[0]
		_, err = s.Load(a.ctx, session.NewPrograms(), gone)
		if at, ok := errors.AsType[*session.ArchivedError](err); !ok || at.Archive != to || !errors.Is(err, session.ErrNotFound) || s.Recent(gone) != nil {
			t.Errorf("an archived session = %v", err)
		}
		if _, err := r.Decide(a.ctx, runner.Ruling{SessionID: gone, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on"}); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("ruling on an archived session = %v", err)
		}
		m, err := machine.Parse("small.json", []byte(small), runner.Checks())
		a.ok(err)
		if _, err := r.Start(a.ctx, m, runner.StartOptions{ID: gone}); !errors.Is(err, session.ErrExists) {
			t.Errorf("starting an archived session = %v", err)
		}
		one, err := r.Start(a.ctx, m, runner.StartOptions{})
		a.ok(err)
		if now, err := s.Place(a.ctx); err != nil || now <= place {
			t.Errorf("the place after %d is %d", place, now)
		}
		a.force(r, one.ID)
		a.force(r, a.ids[1])
	})
	after, in := a.logs(a.path, to)
	for _, id := range a.ids {
		if !strings.HasPrefix(after[id], before[id][:strings.LastIndex(before[id], "\n")]) && id != a.ids[1] || in[id] != 1 {
			t.Errorf("session %s is in %d files, and was another one:\n%s", id, in[id], firstDifference(before[id], after[id]))
		}
	}
	for range 2 {
		a.whole(a.path)
		a.whole(to)
		dumped := a.dump()
		if report := a.rebuild(false); report.Difference != nil {
			t.Errorf("rebuilt: %v", report.Difference)
		}
		if rebuilt := a.dump(); rebuilt != dumped {
			t.Errorf("rebuilt it is another one: %s", firstDifference(dumped, rebuilt))
		}
	}
}

// TestArchiveInterrupted: wherever it ends, every session is in one of the files as it was, both are whole or
// made so by the next run, and that finishes.
func TestArchiveInterrupted(t *testing.T) {
	stop := errors.New("the power fails")
	for n := 1; ; n += 1 + fewer/15 {
		a, _ := ended(t)
		to := filepath.Join(t.TempDir(), "archive.db")
		before, _ := a.logs(a.path)
		taught := a.kept()
		left, at := n, ""
		a.with(func(_ *runner.Runner, s *store.SQLite) {
			_, err := s.Archive(a.ctx, afterStep(inBatches(archiving(to), 2), func(step string) error {
				if left--; left == 0 {
					at = step
					return stop
				}
				return nil
			}))
			if at != "" && !errors.Is(err, stop) || at == "" && err != nil {
				t.Fatalf("interrupted at %s: %v", at, err)
			}
		})
		a.whole(a.path)
		if begun := at == "copying" || at == "copied"; at != "" {
			if err := a.verified(to); begun != (err != nil) || begun && !strings.HasPrefix(err.Error(), "sessions: archiving to this file was interrupted, and dialai store archive finishes it") {
				t.Errorf("interrupted at %s %d: to verify the archive = %v", at, n, err)
			}
			file, err := os.ReadFile(to)
			a.ok(err)
			rebuilt := filepath.Join(t.TempDir(), "rebuilt.db") // as it is advised to
			a.ok(os.WriteFile(rebuilt, file, 0o600))
			a.at(rebuilt, func(_ *runner.Runner, s *store.SQLite) {
				a.ok(whole(s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{})))
			})
			a.whole(rebuilt)
		}
		for range 2 {
			after, _ := a.logs(a.path, to)
			for id, text := range before {
				if after[id] != text {
					t.Errorf("interrupted at %s %d: session %s is another one:\n%s", at, n, id, firstDifference(text, after[id]))
				}
			}
			if kept := a.kept(); kept != taught {
				t.Errorf("interrupted at %s %d: what was taught is other: %s", at, n, firstDifference(taught, kept))
			}
			a.with(func(_ *runner.Runner, s *store.SQLite) {
				_, err := s.Archive(a.ctx, archiving(to))
				a.ok(err)
			})
		}
		if _, in := a.logs(a.path, to); in[a.ids[0]] != 1 || in[a.ids[1]] != 1 {
			t.Errorf("interrupted at %s %d, and run again: sessions are in %v", at, n, in)
		}
		a.whole(a.path)
		a.whole(to)
		if at == "" {
			if n < 8 {
				t.Errorf("it has only %d steps", n-1)
			}
			return
		}
	}
}

// TestArchiveChangedMeanwhile: a session that somebody changes after it was copied stays, as it is then, and goes with the
// next run.
func TestArchiveChangedMeanwhile(t *testing.T) {
	a, last := ended(t)
	to := filepath.Join(t.TempDir(), "archive.db")
	a.with(func(r *runner.Runner, s *store.SQLite) {
		now, err := r.Session(a.ctx, a.ids[0])
		a.ok(err)
		done, err := s.Archive(a.ctx, afterStep(archiving(to), func(step string) error {
			if step != "verified" {
				return nil
			}
			_, err := r.Retract(a.ctx, runner.Retracting{SessionID: a.ids[0], RoundID: last[a.ids[0]], SpecialistID: "h", Note: "no"})
			a.ok(err)
			a.force(r, a.ids[1]) // has the newest record
			return nil
		}))
		a.ok(err)
		if done.Kept != 3 {
			t.Errorf("archived: %+v", done)
		}
		then, err := r.Session(a.ctx, a.ids[0])
		a.ok(err)
		if then.Sequence <= now.Sequence {
			t.Errorf("the session is at %d, as before", then.Sequence)
		}
	})
	a.whole(a.path)
	a.with(func(r *runner.Runner, s *store.SQLite) {
		m, err := machine.Parse("small.json", []byte(small), runner.Checks())
		a.ok(err)
		_, err = r.Start(a.ctx, m, runner.StartOptions{}) // now another one holds what is newest
		a.ok(err)
		done, err := s.Archive(a.ctx, archiving(to))
		a.ok(err)
		if done.Sessions < 2 {
			t.Errorf("archived: %+v", done)
		}
	})
	a.whole(a.path)
	a.whole(to)
	if _, in := a.logs(a.path, to); in[a.ids[0]] != 1 {
		t.Errorf("sessions are in %v", in)
	}
}

// TestArchiveRefused: nothing is written to a file that is no archive of the store, nor taken from a store whose archive
// is damaged.
func TestArchiveRefused(t *testing.T) {
	a, _ := ended(t)
	other := newStore(t)
	for path, want := range map[string]error{a.path: store.ErrSame, other.path: store.ErrNoArchive} {
		a.with(func(_ *runner.Runner, s *store.SQLite) {
			if _, err := s.Archive(a.ctx, archiving(path)); !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
				t.Errorf("archiving to %s = %v, want %v", path, err, want)
			}
		})
	}
	to := filepath.Join(t.TempDir(), "archive.db")
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		o := archiving(to)
		o.Before = 1
		if done, err := s.Archive(a.ctx, o); err != nil || done.Sessions != 0 || done.Archive != "" {
			t.Errorf("archiving nothing = %+v, %v", done, err)
		}
		_, err := s.Archive(a.ctx, afterStep(archiving(to), func(step string) error {
			if step == "copied" {
				db := openRaw(t, to)
				defer db.Close()
				_, err := db.Exec(`UPDATE log SET hash=zeroblob(32) WHERE id=(SELECT min(id) FROM log)`)
				return err
			}
			return nil
		}))
		if damaged, ok := errors.AsType[*session.CorruptError](err); !ok || !strings.Contains(damaged.Error(), to) {
			t.Errorf("archiving to a damaged file = %v", err)
		}
	})
	if _, in := a.logs(a.path); len(in) != len(a.ids) {
		t.Errorf("of %d sessions %d are there", len(a.ids), len(in))
	}
	a.whole(a.path)
}

// TestArchiveAfterRestore: a store that was set back to a backup gives rows and places a second time. What the
// archive has is not written over then; another file takes what is archived from there on.
func TestArchiveAfterRestore(t *testing.T) {
	a, _ := ended(t)
	dir := t.TempDir()
	backup, to := filepath.Join(dir, "backup.db"), filepath.Join(dir, "archive.db")
	more := func() (ids []specialist.SessionID) {
		a.with(func(r *runner.Runner, _ *store.SQLite) {
			m, err := machine.Parse("small.json", []byte(small), runner.Checks())
			a.ok(err)
			for range 3 {
				one, err := r.Start(a.ctx, m, runner.StartOptions{})
				a.ok(err)
				_, err = r.Decide(a.ctx, runner.Ruling{SessionID: one.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "enough"})
				a.ok(err)
				ids = append(ids, one.ID)
			}
		})
		return ids
	}
	archive := func(to string) (err error) {
		a.with(func(_ *runner.Runner, s *store.SQLite) { _, err = s.Archive(a.ctx, archiving(to)) })
		return err
	}
	a.with(func(_ *runner.Runner, s *store.SQLite) { a.ok(s.Backup(a.ctx, backup, nil)) })
	a.ids = append(a.ids, more()...)
	a.ok(archive(to))
	before, _ := a.logs(to)
	if len(before) < 8 {
		t.Fatalf("only %d sessions were archived", len(before))
	}
	a.at(backup, func(_ *runner.Runner, s *store.SQLite) {
		_, err := s.Restore(a.ctx, store.RestoreOptions{Path: a.path, At: time.Unix(0, 0)})
		a.ok(err)
	})
	a.ids = append(a.ids, more()...)
	if err := archive(to); !errors.Is(err, store.ErrNoArchive) || !strings.Contains(err.Error(), to) {
		t.Errorf("archiving other sessions under the same numbers = %v", err)
	}
	after, _ := a.logs(to)
	for id, text := range before {
		if after[id] != text {
			t.Errorf("session %s is another one in the archive: %s", id, firstDifference(text, after[id]))
		}
	}
	a.whole(to)
	a.ok(archive(filepath.Join(dir, "other.db")))
	a.whole(a.path)
	a.whole(filepath.Join(dir, "other.db"))
}

// TestArchiveUnderLists: a list whose last session was archived goes on behind it, and a file gives back its room also
// when nothing is moved any more.
func TestArchiveUnderLists(t *testing.T) {
	a, _ := ended(t)
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		_, err := s.Archive(a.ctx, archiving(filepath.Join(t.TempDir(), "archive.db")))
		a.ok(err)
		all, err := s.List(a.ctx, session.ListQuery{})
		a.ok(err)
		for _, desc := range []bool{false, true} {
			list, err := s.List(a.ctx, session.ListQuery{Desc: desc, After: cursorAfter(session.ListQuery{Desc: desc}, a.ids[0])})
			if want := map[bool]int{false: len(all), true: 0}[desc]; err != nil || len(list) != want {
				t.Errorf("behind the first one, which was archived, backwards %t: %d, %v; want %d", desc, len(list), err, want)
			}
		}
		free := func() int64 {
			n, err := s.Ints(`SELECT freelist_count FROM pragma_freelist_count()`)
			a.ok(err)
			return n[0]
		}
		if free() == 0 {
			t.Error("nothing of the file is free")
		}
		o := archiving(filepath.Join(t.TempDir(), "archive.db"))
		o.Before, o.Compact = 1, true
		_, err = s.Archive(a.ctx, o)
		if a.ok(err); free() != 0 {
			t.Errorf("%d pages of the file are free", free())
		}
	})
}

// TestRebuildLeaves: what nothing follows from, and is damaged, is no reason not to make everything else anew; the report says that it is left.
func TestRebuildLeaves(t *testing.T) {
	for damage, kind := range map[string]store.Kind{
		`UPDATE secrets SET value=randomblob(32) WHERE name='store'`: "secret",
		`UPDATE agent_log SET event=event||' ' WHERE id=1`:           "agent_log",
	} {
		a, _ := ended(t)
		taught := a.kept()
		execRaw(t, a.path, damage+`; UPDATE sessions SET calls=calls+1; DELETE FROM lessons`)
		for range 2 {
			if d := a.rebuild(false).Difference; d == nil || d.Kind != kind || d.Repaired {
				t.Errorf("%s: rebuilt, there is %v", damage, d)
			}
			if kept := a.kept(); kept != taught {
				t.Errorf("%s: rebuilt, what was taught is other: %s", damage, firstDifference(taught, kept))
			}
		}
	}
}
