package runner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// follow collects what a watcher is told, until it has told of so many records.
func follow(ctx context.Context, r *runner.Runner, after int64, n int, each func()) (got []string, last int64) {
	for e, err := range r.Watch(ctx, after) {
		if err != nil {
			return append(got, err.Error()), last
		}
		got, last = append(got, fmt.Sprintln(e.Place, e.Session, e.MachineName, e.First, string(e.Events))), e.Place
		if each(); len(got) == n {
			break
		}
	}
	return got, last
}

// TestWatch: two processes write sessions, and watchers of either, quick and slow, from
// the beginning and from the middle, see every record of both once, in commit order.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"b"}},"b":{"transitions":{"go":"c"}},"c":{"transitions":{"go":"z"}},"z":{}}}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	var rs [2]*runner.Runner
	for i := range rs {
		s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if rs[i], err = runner.New(runner.Config{Store: s}); err != nil {
			t.Fatal(err)
		}
	}
	const writers, each, records = 3, 5, 4 // the opening and three transitions
	const all = 2 * writers * each * records
	written := make(chan struct{})
	var wg, writing sync.WaitGroup
	var seen [4][]string
	wg.Go(func() { seen[0], _ = follow(t.Context(), rs[0], 0, all, func() {}) })
	wg.Go(func() { seen[1], _ = follow(t.Context(), rs[1], 0, all, func() {}) })
	wg.Go(func() { seen[2], _ = follow(t.Context(), rs[0], 0, all, func() { <-written }) })
	wg.Go(func() {
		first, last := follow(t.Context(), rs[1], 0, all/3, func() {})
		rest, _ := follow(t.Context(), rs[0], last, all-len(first), func() {})
		seen[3] = append(first, rest...)
	})
	for _, r := range rs {
		for range writers {
			writing.Go(func() {
				for range each {
					s, err := r.Start(t.Context(), m, runner.StartOptions{Defaults: true})
					if err == nil {
						_, err = r.Run(t.Context(), s.ID, runner.RunOptions{})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	writing.Wait()
	close(written)
	wg.Wait()
	var want []string
	for e, err := range rs[0].Store().Log(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintln(e.Place, e.Session, e.MachineName, e.First, string(e.Events)))
	}
	for i, got := range seen {
		if len(want) != all || !slices.Equal(got, want) {
			t.Errorf("watcher %d has seen %d records, the store has %d:\n%s\nwant\n%s", i, len(got), len(want), got, want)
		}
	}
}

// A torn store cannot be read any more.
type torn struct{ session.Store }

func (torn) Log(context.Context, string, int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) { yield(session.LogEntry{}, errors.New("torn")) }
}

// TestWatchEnds: a watcher ends with its context and after an error of the store, and
// the runner keeps nothing of it.
func TestWatchEnds(t *testing.T) {
	b := newBench(t)
	b.start(b.desk(fn("a"), half))
	ctx, cancel := context.WithCancel(t.Context())
	if got, _ := follow(ctx, b.r, 0, 9, cancel); len(got) != 1 {
		t.Errorf("after its context has ended, a watcher sees %q", got)
	}
	if got, _ := follow(t.Context(), b.runner(func(c *runner.Config) { c.Store = torn{c.Store} }), 0, 9, func() {}); !slices.Equal(got, []string{"torn"}) {
		t.Errorf("a watcher of a torn store sees %q", got)
	}
	if n := runner.Watchers(b.r); n != 0 {
		t.Errorf("%d watchers are kept", n)
	}
}
