//go:build linux

package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// acknowledged is what somebody was told is stored: the sequence numbers of sessions.
type acknowledged struct {
	mu    sync.Mutex
	at    map[specialist.SessionID]int64
	tried int
}

func (k *acknowledged) keep(id specialist.SessionID, sequence int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tried++; err == nil {
		k.at[id] = max(k.at[id], sequence)
	}
}

// life opens a store, starts sessions, one by one and together, rules on them, reads
// and closes it, as far as it gets.
func life(ctx context.Context, path, vfs string) *acknowledged {
	k := &acknowledged{at: map[specialist.SessionID]int64{}}
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{BusyTimeout: time.Millisecond}.Through(vfs))
	if err != nil {
		return k
	}
	defer s.Close()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		return k
	}
	m, err := machine.Parse("small.json", []byte(small), runner.Checks())
	if err != nil {
		panic(err)
	}
	one := func() {
		session, err := r.Start(ctx, m, runner.StartOptions{})
		if err != nil {
			k.keep(specialist.SessionID{}, 0, err)
			return
		}
		k.keep(session.ID, session.Sequence, nil)
		for range 2 {
			session, err = r.Session(ctx, session.ID)
			if err != nil {
				return
			}
			res, err := r.Decide(ctx, runner.Ruling{SessionID: session.ID, RoundID: session.Key().ID(), SpecialistID: "h", TransitionName: "on", Reasoning: "go on"})
			if err == nil && res.Session != nil {
				session = res.Session
			}
			k.keep(session.ID, session.Sequence, err)
		}
	}
	one()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(one)
	}
	wg.Wait()
	s.List(ctx, session.ListQuery{})
	return k
}

// survived returns an error unless everything that was acknowledged is in a file, and
// nothing is there by half.
func survived(ctx context.Context, path, vfs string, k *acknowledged) error {
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{}.Through(vfs))
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		return err
	}
	delete(k.at, specialist.SessionID{})
	for id, sequence := range k.at {
		session, err := r.Session(ctx, id)
		if err != nil || session.Sequence < sequence {
			return fmt.Errorf("of session %s event %d was acknowledged: %v, %w", id, sequence, session, err)
		}
	}
	report, err := s.Verify(ctx, session.NewPrograms())
	if err == nil && report.Difference != nil {
		err = report.Difference
	}
	if err == nil && report.Sessions > 3 {
		err = errors.New("there are more sessions than were started")
	}
	return err
}

// TestEveryOperationFails fails every operation of SQLite on its files in turn, once,
// with the process going on, with it crashing there, in the middle of a write, and with
// the loss of what was not synced: nothing that was acknowledged is lost, and nothing is
// there by half.
func TestEveryOperationFails(t *testing.T) {
	const seed = 20261122
	t.Logf("seed %d", seed)
	d := newDisk(t, "dialai-faults")
	for _, c := range []struct {
		name               string
		every              int // all of them at night, when DIALAI_FLIPS is all
		crash, torn, power bool
	}{{name: "once", every: 1}, {name: "crash", every: 3, crash: true}, {name: "torn", every: 5, crash: true, torn: true}, {name: "power", every: 5, crash: true, power: true}} {
		if c.every *= fewer; os.Getenv("DIALAI_FLIPS") == "all" {
			c.every = 1
		}
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			seen, acks := map[string]int{}, 0
			for k := 1; ; k += c.every {
				path := filepath.Join(t.TempDir(), "dialai.db")
				d.reset(k, c.crash, c.torn)
				kept := life(t.Context(), path, d.name)
				if d.failed == "" {
					t.Logf("fewer than %d operations, %d sessions acknowledged: %v", k, acks, seen)
					if k < 200 || len(kept.at) != 3 {
						t.Errorf("of a life without faults %d sessions are left, after %d operations", len(kept.at), k-1)
					}
					break
				}
				seen[d.failed]++
				acks += len(kept.at)
				if c.power {
					if err := d.lose(func() bool { return rng.IntN(2) == 0 }); err != nil {
						t.Fatal(err)
					}
				}
				failed := d.failed
				d.reset(0, false, false)
				if err := survived(t.Context(), path, d.name, kept); err != nil {
					t.Errorf("operation %d (%s) fails: %v", k, failed, err)
				}
				os.RemoveAll(filepath.Dir(path))
			}
		})
	}
}

// TestReplacedAtTheLastMoment removes the file when SQLite syncs the commit, after the
// committer has looked: the commit is not acknowledged.
func TestReplacedAtTheLastMoment(t *testing.T) {
	a := newStore(t)
	d := newDisk(t, "dialai-last-moment")
	s, err := store.OpenSQLite(t.Context(), a.path, store.SQLiteOptions{}.Through(d.name))
	a.ok(err)
	r, err := runner.New(runner.Config{Store: s})
	a.ok(err)
	a.ok(r.Disable(t.Context(), "small", "p"))
	removed := false
	d.mu.Lock()
	d.before = func(op, path string) {
		if op == "sync" && !removed {
			removed = os.Remove(a.path) == nil
		}
	}
	d.mu.Unlock()
	if err := r.Enable(t.Context(), "small", "p"); !errors.Is(err, store.ErrReplaced) || !removed {
		t.Errorf("a commit during which the file goes = %v, want ErrReplaced", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("Close = %v, want ErrReplaced", err)
	}
}

// TestLeadIsPassedOn: whoever commits for others and panics, or ends its goroutine, in what is told of it leaves
// nobody waiting: its batch is told that it may be stored or not, and the next one commits.
func TestLeadIsPassedOn(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("a bug in a counter") }, "exit": runtime.Goexit} {
		var ends atomic.Bool
		s, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "dialai.db"), store.SQLiteOptions{Observe: func(int, time.Duration, error) {
			if ends.CompareAndSwap(true, false) {
				end()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ends.Store(true)
		var failed atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := s.CommitWhile(func() error { return nil }); err != nil {
					if !strings.Contains(err.Error(), "it may be stored or not") {
						t.Errorf("%s: %v", name, err)
					}
					failed.Add(1)
				}
			}()
		}
		wg.Wait()
		if name == "panic" && failed.Load() == 0 {
			t.Error("nobody was told that it may not be stored")
		}
		if err := errors.Join(s.CommitWhile(func() error { return nil }), s.Close()); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

// TestPanicWhileWriting: what panics while it writes is an error of its own: nothing of it
// is stored, whoever writes at the same time is not affected, and the store goes on.
func TestPanicWhileWriting(t *testing.T) {
	a := newStore(t)
	a.with(func(r *runner.Runner, s *store.SQLite) {
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			wg.Go(func() {
				errs[i] = s.CommitWhile(func() error {
					if i%2 == 0 {
						panic("a bug in an encoder")
					}
					return nil
				})
			})
		}
		wg.Wait()
		for i, err := range errs {
			if i%2 == 0 && (err == nil || !strings.Contains(err.Error(), "panic while writing: a bug in an encoder")) || i%2 == 1 && err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		}
		a.ok(r.Disable(a.ctx, "small", "p"))
	})
	if report := a.verify(); report.Difference != nil {
		t.Error(report.Difference)
	}
}
