//go:build linux

package store_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

// TestEraseEveryOperationFails fails operations of SQLite on its files while sessions are erased, as
// TestEveryOperationFails does: afterwards each session is erased or as it was, the store is whole, and run again, it finishes.
func TestEraseEveryOperationFails(t *testing.T) {
	const seed = 20261129
	t.Logf("seed %d", seed)
	from, id, fork := spoken(t, true)
	from.exec(`UPDATE log SET events=CAST(unpacked(events) AS BLOB)`) // so that words can be found
	whole, err := os.ReadFile(from.path)
	from.ok(err)
	logs, _ := from.logs(from.path)
	o := eraseOf(specialist.SessionID{})
	o.Subject = "wordsubject of it"
	d := newDisk(t, "dialai-erase-faults")
	for _, c := range []struct {
		name               string
		every              int // all of them at night, when DIALAI_FLIPS is all
		crash, torn, power bool
	}{{name: "once", every: 17}, {name: "crash", every: 13, crash: true}, {name: "torn", every: 29, crash: true, torn: true}, {name: "power", every: 19, crash: true, power: true}} {
		if c.every *= min(fewer, 14); os.Getenv("DIALAI_FLIPS") == "all" {
			c.every = 1
		}
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			erased, left := 0, 0
			for k := 1; ; k += c.every {
				a := &aStore{T: t, ctx: t.Context(), path: filepath.Join(t.TempDir(), "dialai.db"), ids: from.ids}
				a.ok(os.WriteFile(a.path, whole, 0o600))
				d.reset(k, c.crash, c.torn)
				s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{Plain: true}.Through(d.name))
				if err == nil {
					_, _ = s.Erase(a.ctx, o) // it may have failed
					_ = s.Close()
				}
				if d.failed == "" {
					t.Logf("fewer than %d operations; erased were %d sessions, %d were not", k, erased, left)
					if k < 100 || erased == 0 || left == 0 {
						t.Errorf("there were only %d operations", k)
					}
					break
				}
				if c.power {
					a.ok(d.lose(func() bool { return rng.IntN(2) == 0 }))
				}
				failed := d.failed
				d.reset(0, false, false)
				a.whole(a.path)
				now, _ := a.logs(a.path)
				a.opened(func(r *runner.Runner, s *store.SQLite) {
					for _, one := range []specialist.SessionID{id, fork} {
						got, err := r.Session(a.ctx, one)
						a.ok(err)
						if got.Erased() {
							erased++
						} else if left++; now[one] != logs[one] {
							t.Errorf("operation %d (%s) fails: session %s is not erased, and is not as it was: %s", k, failed, one, firstDifference(logs[one], now[one]))
						}
					}
					if _, err := s.Erase(a.ctx, o); err != nil && !errors.Is(err, session.ErrNotFound) { // it was done
						t.Errorf("operation %d (%s) fails: run again: %v", k, failed, err)
					}
				})
				a.whole(a.path)
				if found := foundIn(t, storetest.Said, a.path, a.path+"-wal"); len(found) > 0 {
					t.Errorf("operation %d (%s) fails: still there: %v", k, failed, found)
				}
				a.ok(os.RemoveAll(filepath.Dir(a.path)))
			}
		})
	}
}
