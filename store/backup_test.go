package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

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
	restore := func() (store.Restored, error) {
		t.Helper()
		b, err := store.OpenSQLite(a.ctx, into, store.SQLiteOptions{ReadOnly: true})
		a.ok(err)
		defer b.Close()
		return b.Restore(a.ctx, a.path, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	}
	var was, later int64
	var done store.Restored
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
