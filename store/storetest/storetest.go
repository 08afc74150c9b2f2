// Package storetest is the one suite that every store passes: the contract of
// [session.Store], line by line. It goes through the runner, so that what is
// stored is what real sessions store.
package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Maker makes stores for one test. Open returns a store over the same data
// each time it is called, as another process would see it; for stores that live
// in one process it returns the same store.
type Maker struct {
	Open func(t *testing.T) session.Store
	// Durable says that Open makes a new store over old data.
	Durable bool
	// Snapshot returns up to which event of a session a snapshot is kept of it, once all are made for
	// which it was time; 0 if none is. It is nil for a store that makes none.
	Snapshot func(t testing.TB, s session.Store, id specialist.SessionID) int64
}

// Run runs the suite. make is called for every test.
func Run(t *testing.T, maker func(t *testing.T) Maker) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, m Maker)
	}{
		{"commit and load", testCommitLoad},
		{"compare and swap", testCompareAndSwap},
		{"create twice", testCreateTwice},
		{"not found", testNotFound},
		{"copies", testCopies},
		{"records chain and fold", testRecords},
		{"records from a sequence number", testRecordsFrom},
		{"list", testList},
		{"list with drivers", testListDrivers},
		{"list in pages", testListPages},
		{"lists by start", testListStarts},
		{"cursors", testCursors},
		{"list of subjects", testSubjects},
		{"list by time", testListByTime},
		{"list of those that wait", testListWaiting},
		{"definitions", testDefinitions},
		{"book", testBook},
		{"exemplars newest N", testExemplars},
		{"lessons in commit order", testLessons},
		{"snapshots of the ledger", testLedgerSnapshots},
		{"snapshots of sessions", testSessionSnapshots},
		{"reviews", testReviews},
		{"rulings taken back", testRetracted},
		{"adoptions", testAdoptions},
		{"decisions newest N", testDecisions},
		{"log in commit order", testLog},
		{"log without a gap", testLogHasNoGap},
		{"roster", testRoster},
		{"rosters in commit order", testRosterLog},
		{"epoch", testEpoch},
		{"owners", testOwners},
		{"sessions handed out", testWorkClaims},
		{"sessions given back", testWorkReleases},
		{"sessions handed out to nobody", testWorkUndriven},
		{"sessions handed out by timer", testWorkTimer},
		{"news of sessions to hand out", testWorkNews},
		{"watch", testWatch},
		{"quotas: waves", testQuotaWaves},
		{"quotas: how calls end", testQuotaEnds},
		{"quotas: units", testQuotaUnits},
		{"quotas: sessions", testQuotaSessions},
		{"quotas: the past", testQuotaPast},
		{"quotas: many processes", testQuotaOfMany},
		{"secret", testSecret},
		{"audit", testAudit},
		{"agent log", testAgentLog},
		{"one winner of many", testOneWinner},
		{"many sessions at once", testManySessions},
		{"reopen", testReopen},
		{"what another process has committed", testCoherence},
		{"unicode and large values", testValues},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, maker(t)) })
	}
}

func testCommitLoad(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	if got := b.load(s.ID); session.Summarize(got) != session.Summarize(s) {
		t.Fatalf("Load = %+v, want %+v", session.Summarize(got), session.Summarize(s))
	}
	c := b.change(b.load(s.ID))
	b.ok(b.store.Commit(b.ctx, c))
	got := b.load(s.ID)
	if got.Status != session.Stopped || got.Sequence != s.Sequence+1 || got.Outcome().Reason != "by hand" {
		t.Fatalf("after Commit, Load = %+v", session.Summarize(got))
	}
}

func testCompareAndSwap(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.load(b.start().ID)
	first, second := b.change(s), b.change(s)
	b.ok(b.store.Commit(b.ctx, first))
	if err := b.store.Commit(b.ctx, second); !errors.Is(err, session.ErrStale) {
		t.Fatalf("a commit on an old session = %v, want ErrStale", err)
	}
	if got := b.load(s.ID); got.Sequence != first.After.Sequence {
		t.Fatalf("the lost commit left sequence %d, want %d", got.Sequence, first.After.Sequence)
	}
	if n := len(all(b, b.store.Records(b.ctx, s.ID, 0))); n != 2 {
		t.Fatalf("the lost commit left %d records, want 2", n)
	}
}

func testCreateTwice(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	r, err := runner.New(runner.Config{Store: b.store, NewID: func() specialist.SessionID { return s.ID }})
	b.ok(err)
	if _, err := r.Start(b.ctx, b.m, runner.StartOptions{}); !errors.Is(err, session.ErrExists) {
		t.Fatalf("a second session of the same id = %v, want ErrExists", err)
	}
}

func testNotFound(t *testing.T, m Maker) {
	b := newBench(t, m)
	unknown := specialist.SessionID{1, 2, 3}
	if _, err := b.store.Load(b.ctx, session.NewPrograms(), unknown); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Load of an unknown session = %v, want ErrNotFound", err)
	}
	for _, err := range b.store.Records(b.ctx, unknown, 0) {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("Records of an unknown session = %v, want ErrNotFound", err)
		}
	}
	s := b.load(b.start().ID)
	c := b.change(s)
	c.After.ID = unknown
	if err := b.store.Commit(b.ctx, c); !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrStale) {
		t.Errorf("Commit to an unknown session = %v, want ErrNotFound", err)
	}
	book, err := b.store.Book(b.ctx, "nobody")
	b.ok(err)
	if n := len(book.Records("nobody")); n != 0 {
		t.Errorf("an unknown machine has %d alignment records", n)
	}
}

func testCopies(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.load(b.start().ID)
	c := b.change(s)
	b.ok(b.store.Commit(b.ctx, c))
	c.Events[0] = session.Event{} // the store keeps no reference to the slice
	for _, rec := range all(b, b.store.Records(b.ctx, s.ID, c.First)) {
		if raw, err := session.DecodeRaw(rec.Events); err != nil || raw[0].Kind != session.KindEnded {
			t.Fatalf("the record changed with the caller's slice: %s (%v)", rec.Events, err)
		}
	}
}

func testOwners(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, err := b.store.Claim(b.ctx)
	b.ok(err)
	two, err := b.store.Claim(b.ctx)
	b.ok(err)
	if one.Name() == two.Name() || one.Name() == "" {
		t.Fatalf("owners are called %q and %q", one.Name(), two.Name())
	}
	b.ok(one.Release())
	for name, want := range map[string]bool{one.Name(): false, two.Name(): true, "": false, "nobody": false, "../../etc/passwd": false} {
		if alive, err := b.store.Alive(b.ctx, name); err != nil || alive != want {
			t.Errorf("Alive(%q) = %t (%v), want %t", name, alive, err, want)
		}
	}
	b.ok(two.Release())
}

func testSecret(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, err := b.store.Secret(b.ctx)
	b.ok(err)
	b.open(m)
	two, err := b.store.Secret(b.ctx)
	b.ok(err)
	if len(one) != 32 || string(one) != string(two) || string(one) == string(make([]byte, 32)) {
		t.Fatalf("the secret is %x and then %x", one, two)
	}
}

// testEpoch checks that an epoch is that of one store, however often it is opened.
func testEpoch(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, err := b.store.Epoch(b.ctx)
	b.ok(err)
	b.open(m)
	two, err := b.store.Epoch(b.ctx)
	b.ok(err)
	secret, err := b.store.Secret(b.ctx)
	b.ok(err)
	if one == "" || one != two || strings.Contains(fmt.Sprintf("%x", secret), one) {
		t.Fatalf("the epoch is %q and then %q, of the secret %x", one, two, secret)
	}
}

// testOneWinner lets many goroutines force and step the same rounds: each round
// has one winner, and nobody's decision is lost without being told.
func testOneWinner(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	const workers, each = 32, 5
	var wg sync.WaitGroup
	executed := make([]int, workers)
	for w := range workers {
		wg.Go(func() {
			for range each {
				if w%4 == 0 {
					if _, err := b.r.Step(b.ctx, s.ID); err != nil {
						t.Error(err)
					}
					continue
				}
				now, err := b.r.Session(b.ctx, s.ID)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "human", RoundID: now.Key().ID(), TransitionName: "again"})
				if err != nil && !errors.Is(err, runner.ErrStaleRound) {
					t.Error(err)
				} else if a.Executed {
					executed[w]++
				} else if !a.Stale {
					t.Errorf("refused: %s", a.GuardReason)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range executed {
		total += n
	}
	last := b.load(s.ID)
	if int(last.Executed) != total || int(last.Round) != total+1 {
		t.Fatalf("%d rulings were executed, the session has %d transitions and is in round %d", total, last.Executed, last.Round)
	}
}

func testManySessions(t *testing.T, m Maker) {
	b := newBench(t, m)
	const sessions, rounds = 16, 5
	var wg sync.WaitGroup
	ids := make([]specialist.SessionID, sessions)
	for i := range ids {
		ids[i] = b.start().ID
	}
	for _, id := range ids {
		wg.Go(func() {
			for range rounds {
				if a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"}); err != nil || !a.Executed {
					t.Errorf("%v %s", err, a.GuardReason)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if s := b.load(id); s.Executed != rounds {
			t.Errorf("session %s has %d transitions, want %d", id, s.Executed, rounds)
		}
	}
}

func testReopen(t *testing.T, m Maker) {
	if !m.Durable {
		t.Log("this store lives in one process: reopening gives the same one")
	}
	b := newBench(t, m)
	s := b.start()
	rng := rand.New(rand.NewPCG(1, 2))
	choices := map[string][]string{"open": {"again", "park"}, "parked": {"back"}}
	for range 20 {
		before := b.load(s.ID)
		b.open(m)
		after := b.load(s.ID)
		if session.Summarize(before) != session.Summarize(after) || len(before.Proposals()) != len(after.Proposals()) || before.Spent() != after.Spent() {
			t.Fatalf("reopened, the session is %+v, it was %+v", session.Summarize(after), session.Summarize(before))
		}
		legal := choices[after.State.Name]
		if rng.IntN(2) == 0 {
			_, err := b.r.Step(b.ctx, s.ID)
			b.ok(err)
			continue
		}
		b.force(s.ID, legal[rng.IntN(len(legal))])
	}
}

func testValues(t *testing.T, m Maker) {
	b := newBench(t, m)
	meta := `{"text":"añ\u0000b \ud83d\ude00 ' \" % _ \\ </script>","n":12345678901234567890.5,"deep":[[[[1]]]],"big":"` + string(make([]byte, 0)) + `"}`
	s, err := b.r.Start(b.ctx, b.m, runner.StartOptions{Meta: []byte(meta), Seed: 1<<64 - 1})
	b.ok(err)
	reasoning := "line\nline\ttab \x00 \u2028 'quoted' 世界"
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: reasoning, MetaJSON: []byte(`{"k":[1.10,2e3]}`)})
	b.ok(err)
	if !a.Executed {
		t.Fatal(a.GuardReason)
	}
	b.open(m)
	got := b.load(s.ID)
	if got.Options().Seed != 1<<64-1 || string(got.Options().Meta) != string(s.Options().Meta) {
		t.Errorf("metaJson is %s, want %s", got.Options().Meta, s.Options().Meta)
	}
	if e := got.Last(); e.Reasoning != reasoning || string(e.MetaJSON) != `{"k":[1.10,2e3]}` {
		t.Errorf("the record holds %q and %s", e.Reasoning, e.MetaJSON)
	}
}
