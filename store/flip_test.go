package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

const learning = `{ "machineName": "learning", "initialState": "a", "goalState": "z", "audit": { "rate": 1 },
	"states": { "a": { "prompt": "On?", "transitions": { "on": "a", "stop": "z" } }, "z": {} },
	"specialists": [ { "role": "proposer", "specialistId": "p", "strategyFnName": "lastAvailable" }, { "role": "proposer", "specialistId": "h", "isHuman": true },
		{ "role": "arbiter", "specialistId": "x", "strategyFnName": "bayes", "threshold": 0.8 } ] }`

// newFullStore is a store with rows in every table, checkpointed.
func newFullStore(t *testing.T) *aStore {
	a := newStore(t)
	a.with(func(r *runner.Runner, s *store.SQLite) {
		m, err := machine.Parse("learning.json", []byte(learning), runner.Checks())
		a.ok(err)
		started, err := r.Start(a.ctx, m, runner.StartOptions{})
		a.ok(err)
		for range 2 {
			_, err = r.Step(a.ctx, started.ID)
			a.ok(err)
			now, err := r.Session(a.ctx, started.ID)
			a.ok(err)
			_, err = r.Decide(a.ctx, runner.Ruling{SessionID: started.ID, RoundID: now.Key().ID(), SpecialistID: "h", TransitionName: "on", Reasoning: "go on"})
			a.ok(err)
		}
		_, err = r.Step(a.ctx, started.ID)
		a.ok(err)
		a.ok(s.AppendAgentLog(a.ctx, started.ID, 0, session.AgentEvent{At: 1, Kind: "opened", Data: []byte(`{"agent":"claude"}`)}, session.AgentEvent{At: 2, Kind: "note", Data: []byte(`{"text":"on it"}`)}))
		for i := range 3 {
			a.ok(s.AppendAudit(a.ctx, specialist.AuditEntry{AuditEntryID: fmt.Sprint("entry ", i), SessionID: started.ID.String(), SpecialistID: "ai", Attempt: 1, Purpose: "ask"}))
		}
	})
	return a
}

// bitsToFlip returns which bits to flip: so many at random, or with DIALAI_FLIPS=all one of
// every byte.
func bitsToFlip(t *testing.T, file []byte) (list []int) {
	seed, size := uint64(20261122), len(file)
	switch text := os.Getenv("DIALAI_FLIPS"); text {
	case "":
	case "all":
		for i := range size {
			list = append(list, i*8+i%8)
		}
		return list
	default: // a seed
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DIALAI_FLIPS is %q: neither all nor a seed", text)
		}
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(list) < 200 {
		if at := rng.IntN(size); len(list)%4 == 0 || file[at] != 0 { // most of a small store is free
			list = append(list, at*8+rng.IntN(8))
		}
	}
	for i := range 60 { // where a file says what it is
		list = append(list, i*8+rng.IntN(8))
	}
	return list
}

// TestFlippedBits flips bits of a store, one at a time. Either verify says so, or
// nothing that reading can tell is another; and what rebuild is said to mend, it mends.
func TestFlippedBits(t *testing.T) {
	a := newFullStore(t)
	whole, err := os.ReadFile(a.path)
	a.ok(err)
	f := &flips{aStore: a, whole: whole, look: look(t, a.path), rows: a.dump(), seen: map[string]int{}}
	list := append(bitsToFlip(t, whole), a.bitsOfIndexes(whole)...)
	t.Run("bits", func(t *testing.T) { // returns when all of its parts have
		for part := range 4 {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < len(list); i += 4 * fewer {
					f.flip(t, list[i])
				}
			})
		}
	})
	t.Logf("%d bytes: %v", len(whole), f.seen)
}

// bitsOfIndexes returns bits of what every index holds.
func (a *aStore) bitsOfIndexes(file []byte) (list []int) {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	rows, err := db.Query(`SELECT rootpage FROM sqlite_schema WHERE type='index'`)
	a.ok(err)
	defer rows.Close()
	for rows.Next() {
		var page int
		a.ok(rows.Scan(&page))
		for at, n := page*4096-1, 0; at > (page-1)*4096 && n < 12; at-- { // entries fill a page from its end
			if file[at] != 0 {
				list = append(list, at*8+n%8)
				n++
			}
		}
	}
	a.ok(rows.Err())
	return list
}

// flips are what a store was before bits of it were flipped, and what became of it.
type flips struct {
	*aStore
	whole      []byte
	look, rows string
	mu         sync.Mutex
	seen       map[string]int
}

func (f *flips) flip(t *testing.T, bit int) {
	damaged := append([]byte(nil), f.whole...)
	damaged[bit/8] ^= 1 << (bit % 8)
	one := &flipped{aStore: f.aStore, path: filepath.Join(t.TempDir(), "dialai.db")}
	if err := os.WriteFile(one.path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	where := fmt.Sprintf("bit %d of byte %d (page %d)", bit%8, bit/8, bit/8/4096+1)
	became := "unseen, as nothing is read there"
	switch d := one.verify(); {
	case d == nil:
		if got := look(t, one.path); got != f.look {
			t.Errorf("%s: verify finds nothing, and reading gives other things: %s", where, firstDifference(f.look, got))
		}
	case d.Repaired:
		became = "mended: " + string(d.Kind)
		if err := one.mend(f.rows); err != nil {
			t.Errorf("%s, %v: rebuilding: %v", where, d, err)
		}
	default:
		became = "not mended: " + string(d.Kind)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[became]++
}

type flipped struct {
	*aStore
	path string
}

// verify returns what verify says; a store that cannot be opened is a difference too.
func (f *flipped) verify() *store.Difference {
	s, err := store.OpenSQLite(f.ctx, f.path, store.SQLiteOptions{})
	if err != nil {
		return &store.Difference{Kind: "open"}
	}
	defer s.Close()
	report, err := s.Verify(f.ctx, session.NewPrograms())
	if err != nil {
		return &store.Difference{Kind: "error", What: err.Error()}
	}
	return report.Difference
}

// mend rebuilds and returns an error unless the rows are those of before.
func (f *flipped) mend(rows string) error {
	s, err := store.OpenSQLite(f.ctx, f.path, store.SQLiteOptions{})
	if err != nil {
		return err
	}
	report, err := s.Rebuild(f.ctx, session.NewPrograms(), store.RebuildOptions{})
	s.Close()
	if err != nil || report.Difference != nil {
		return fmt.Errorf("%v, %w", report.Difference, err)
	}
	if d := f.verify(); d != nil {
		return fmt.Errorf("and then verify says %v", d)
	}
	mended := &aStore{T: f.T, ctx: context.Background(), path: f.path}
	if got := mended.dump(); got != rows {
		return fmt.Errorf("the rows are others: %s", firstDifference(rows, got))
	}
	if left, _ := filepath.Glob(f.path + "?*"); strings.Join(left, "") != "" && !strings.HasSuffix(strings.Join(left, ""), ".owners") {
		return fmt.Errorf("left over is %v", left)
	}
	return nil
}

// TestRecordsThatBeginAtOnePlace: damage has a record begin where another one does, which no index of a whole store lets be.
func TestRecordsThatBeginAtOnePlace(t *testing.T) {
	a := newFullStore(t)
	rows := a.dump()
	raw := openRaw(t, a.path)
	for _, damage := range []string{
		`PRAGMA writable_schema=ON`,
		`UPDATE sqlite_schema SET sql=replace(sql, 'UNIQUE', '') WHERE name='log_session'`,
		`PRAGMA writable_schema=RESET`,
		`UPDATE log SET first=(SELECT max(first) FROM log) WHERE id=(SELECT min(id)+1 FROM log)`,
		`PRAGMA writable_schema=ON`,
		`UPDATE sqlite_schema SET sql=replace(sql, 'CREATE  INDEX', 'CREATE UNIQUE INDEX') WHERE name='log_session'`,
	} {
		_, err := raw.Exec(damage)
		a.ok(err)
	}
	a.ok(raw.Close())
	f := &flipped{aStore: a, path: a.path}
	if d := f.verify(); d == nil || !d.Repaired {
		t.Fatalf("verify finds %v", d)
	}
	a.ok(f.mend(rows))
}
