package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// at opens another file for a while.
func (a *aStore) at(path string, f func(r *runner.Runner, s *store.SQLite)) {
	a.Helper()
	other := *a
	other.path = path
	other.with(f)
}

// TestBackupWhileOthersWrite: a backup that is made while sessions go on is a store that is whole, with all
// that was acknowledged before it began.
func TestBackupWhileOthersWrite(t *testing.T) {
	a := newStore(t)
	into := filepath.Join(t.TempDir(), "backup.db")
	before := map[specialist.SessionID]int64{}
	a.with(func(r *runner.Runner, s *store.SQLite) {
		for _, id := range a.ids {
			now, err := s.Load(a.ctx, session.NewPrograms(), id)
			a.ok(err)
			before[id] = now.Sequence
		}
		stop := make(chan struct{})
		var all sync.WaitGroup
		for _, id := range a.ids {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if _, err := r.Decide(a.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on", Reasoning: "go on"}); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		told := int64(0)
		err := s.Backup(a.ctx, into, func(done, of int64) { told = done; _ = of })
		close(stop)
		all.Wait()
		a.ok(err)
		if told == 0 {
			t.Error("nobody was told how far it is")
		}
		if err := s.Backup(a.ctx, into, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second backup to the same file = %v, want fs.ErrExist", err)
		}
	})
	a.at(into, func(_ *runner.Runner, s *store.SQLite) {
		report, err := s.Verify(a.ctx, session.NewPrograms())
		if err != nil || report.Difference != nil {
			t.Errorf("the backup is damaged: %v %v", err, report.Difference)
		}
		for id, sequence := range before {
			if now, err := s.Load(a.ctx, session.NewPrograms(), id); err != nil || now.Sequence < sequence {
				t.Errorf("session %s is at %v, and was at %d before (%v)", id, now, sequence, err)
			}
		}
	})
	if info, err := os.Stat(into); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has the mode %v (%v), and is only for its owner", info.Mode(), err)
	}
}

// TestBackupInterrupted: a backup that does not come to its end leaves no file, and one that died leaves
// none that is in the way of the next.
func TestBackupInterrupted(t *testing.T) {
	a := newStore(t)
	into := filepath.Join(t.TempDir(), "backup.db")
	a.ok(os.WriteFile(into+".part", []byte("half of one"), 0o600))
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		ended, end := context.WithCancel(a.ctx)
		if err := s.Backup(ended, into, func(int64, int64) { end() }); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended backup = %v", err)
		}
		if list, _ := filepath.Glob(into + "*"); len(list) > 0 {
			t.Errorf("it has left %v", list)
		}
		a.ok(s.Backup(a.ctx, into, nil))
	})
	if list, _ := filepath.Glob(into + "*"); len(list) != 1 {
		t.Errorf("a backup is %v", list)
	}
}

// TestRestore: what was restored is the backup, of another epoch; what was there is whole under its new name;
// and who had it open cannot go on from what is gone.
func TestRestore(t *testing.T) {
	a := newStore(t)
	into := filepath.Join(t.TempDir(), "backup.db")
	var epoch string
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		a.ok(s.Backup(a.ctx, into, nil))
		var err error
		epoch, err = s.Epoch(a.ctx)
		a.ok(err)
	})
	sequence := func(s *store.SQLite) int64 {
		t.Helper()
		now, err := s.Load(a.ctx, session.NewPrograms(), a.ids[0])
		a.ok(err)
		return now.Sequence
	}
	restore := func() (store.Restoration, error) {
		t.Helper()
		b, err := store.OpenSQLite(a.ctx, into, store.SQLiteOptions{ReadOnly: true})
		a.ok(err)
		defer b.Close()
		return b.Restore(a.ctx, store.RestoreOptions{Path: a.path, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	}
	var was, later int64
	var done store.Restoration
	worker, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
	a.ok(err)
	r, err := runner.New(runner.Config{Store: worker})
	a.ok(err)
	was = sequence(worker)
	a.force(r, a.ids[0])
	later = sequence(worker)

	lock, err := worker.DriverLock()
	a.ok(err)
	if held, err := lock.TryLock(); err != nil || !held {
		t.Fatal(held, err)
	}
	if _, err := restore(); !errors.Is(err, store.ErrDriven) {
		t.Errorf("restoring under a driver = %v, want ErrDriven", err)
	}
	if sequence(worker) != later {
		t.Error("it has changed something")
	}
	a.ok(lock.Unlock())
	if _, err := worker.Restore(a.ctx, store.RestoreOptions{Path: a.path}); !errors.Is(err, store.ErrSame) {
		t.Errorf("restoring a store from itself = %v, want ErrSame", err)
	}

	done, err = restore()
	a.ok(err)
	if _, err := r.Decide(a.ctx, runner.Ruling{SessionID: a.ids[0], RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "on", Reasoning: "go on"}); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("a ruling on what is gone = %v, want ErrReplaced", err)
	}
	_ = worker.Close() // it says so again
	a.with(func(r *runner.Runner, s *store.SQLite) {
		if got := sequence(s); got != was {
			t.Errorf("restored, the session is at %d, want %d", got, was)
		}
		now, err := s.Epoch(a.ctx)
		a.ok(err)
		if now == epoch {
			t.Error("the restored store has the epoch of the one that is gone")
		}
		report, err := s.Verify(a.ctx, session.NewPrograms())
		if err != nil || report.Difference != nil {
			t.Errorf("the restored store is damaged: %v %v", err, report.Difference)
		}
		a.force(r, a.ids[0])
		_, err = s.Rebuild(a.ctx, session.NewPrograms(), store.RebuildOptions{})
		a.ok(err)
		if kept, err := s.Epoch(a.ctx); err != nil || kept != now {
			t.Errorf("rebuilt, its epoch is %s, want %s (%v)", kept, now, err)
		}
	})
	if want := a.path + ".replaced-20260102T030405Z"; done.Kept != want {
		t.Errorf("what was there is %q, want %q", done.Kept, want)
	}
	a.at(done.Kept, func(_ *runner.Runner, s *store.SQLite) {
		if got := sequence(s); got != later {
			t.Errorf("what was there is at %d, want %d: something acknowledged is lost", got, later)
		}
	})
}

// TestRestoreWithControl: a control file that is restored too takes its place, and what was there is kept; a
// restore that fails has changed neither.
func TestRestoreWithControl(t *testing.T) {
	a := newStore(t)
	dir := t.TempDir()
	into := filepath.Join(dir, "backup.db")
	key := func(path, id string) {
		t.Helper()
		c, err := store.OpenControl(a.ctx, path, store.SQLiteOptions{})
		a.ok(err)
		a.ok(c.Commit(a.ctx, control.Changes{Keys: []control.Key{{ID: id, Name: id, Tenant: "default"}}}))
		a.ok(c.Close())
	}
	has := func(path, id string) bool {
		t.Helper()
		c, err := store.OpenControl(a.ctx, path, store.SQLiteOptions{ReadOnly: true})
		a.ok(err)
		defer c.Close()
		_, err = c.Key(a.ctx, id)
		if err != nil && !errors.Is(err, control.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	key(store.ControlPath(a.path), "before")
	c, err := store.OpenControl(a.ctx, store.ControlPath(a.path), store.SQLiteOptions{})
	a.ok(err)
	a.ok(c.Backup(a.ctx, store.ControlPath(into), nil))
	a.ok(c.Close())
	a.with(func(_ *runner.Runner, s *store.SQLite) { a.ok(s.Backup(a.ctx, into, nil)) })
	key(store.ControlPath(a.path), "after")

	backup, err := store.OpenSQLite(a.ctx, into, store.SQLiteOptions{ReadOnly: true})
	a.ok(err)
	defer backup.Close()
	beside, err := store.OpenControl(a.ctx, store.ControlPath(into), store.SQLiteOptions{ReadOnly: true})
	a.ok(err)
	defer beside.Close()
	a.ok(os.MkdirAll(a.path+".control.restoring/in the way", 0o700))
	if _, err := backup.Restore(a.ctx, store.RestoreOptions{Path: a.path, At: time.Now(), Control: beside}); err == nil || !has(store.ControlPath(a.path), "after") {
		t.Errorf("a restore that cannot copy the control file = %v, and has changed what is there", err)
	}
	if list, _ := filepath.Glob(a.path + "*.replaced-*"); len(list) > 0 {
		t.Errorf("a restore that failed has left %v", list)
	}
	a.ok(os.RemoveAll(a.path + ".control.restoring"))
	done, err := backup.Restore(a.ctx, store.RestoreOptions{Path: a.path, At: time.Now(), Control: beside})
	a.ok(err)
	if has(done.Control.Path, "after") || !has(done.Control.Path, "before") || !has(done.Control.Kept, "after") {
		t.Errorf("restored is %+v", done.Control)
	}
}

// TestBookAfterClose: who asks a store that is closed gets an error.
func TestBookAfterClose(t *testing.T) {
	s, err := store.OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "dialai.db"), store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := s.Book(context.Background(), "m"); err == nil {
		t.Error("a closed store has a book")
	}
	if _, err := s.Roster(context.Background(), "m"); err == nil {
		t.Error("a closed store has a roster")
	}
}

// TestNamesOfOthers: what is called like a file that belongs to a store is made neither a store nor a backup, for it would harm that.
func TestNamesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, suffix := range []string{"-wal", "-shm", "-journal", ".owners", ".rebuild", ".control", ".control.key"} {
		other, err := store.OpenSQLite(t.Context(), path+suffix, store.SQLiteOptions{})
		if err == nil {
			other.Close()
		}
		_, migrated := store.Migrate(t.Context(), path+suffix, store.SQLiteOptions{})
		for _, err := range []error{err, migrated} {
			if err == nil || !strings.Contains(err.Error(), "belongs to "+path) {
				t.Errorf("a store %s: %v", suffix, err)
			}
		}
		if _, err := os.Lstat(path + suffix); err == nil && suffix != "-wal" && suffix != "-shm" && suffix != ".owners" {
			t.Errorf("%s was made", suffix)
		}
		if err := s.Backup(t.Context(), path+suffix, nil); err == nil {
			t.Errorf("a backup %s was written", suffix)
		}
	}
	c, err := store.OpenControl(t.Context(), path+".control", store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Backup(t.Context(), path+".copy.control", nil); err != nil {
		t.Error(err)
	}
	for _, apart := range []string{path + "-walnut", filepath.Join(filepath.Dir(path), "nothing-wal")} {
		other, err := store.OpenSQLite(t.Context(), apart, store.SQLiteOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		other.Close()
	}
}
