package temporal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/temporal"
)

// What the database has when its server is killed again and again: TestPostgresKilled has two workers, each with
// connections of its own, carry sessions while all processes of a cluster that syncs its commits are killed at
// random moments and started again on what is on the disk.

const (
	carried = 6 // sessions
	crashes = 5
)

// stages is a machine of three rounds, in each of which a service is asked in an activity of its own and another one
// inside advance.
func stages(t *testing.T) *machine.Machine {
	t.Helper()
	var states []string
	for i := range 3 {
		states = append(states, fmt.Sprintf(`"s%d":{"prompt":"%s?","transitions":{"go":"s%d"},"quorum":2}`, i, secretWord, i+1))
	}
	m, err := machine.Parse("stages.json", []byte(`{"machineName":"stages","initialState":"s0","goalState":"s3","consensusThreshold":0,
		"states":{`+strings.Join(states, ",")+`,"s3":{}},"specialists":[`+web("long", "10m")+","+web("short", "25s")+","+first+`]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// services are both, and say under which keys they were asked for what.
type services struct {
	mu    sync.Mutex
	keys  map[string]map[string]bool // of session, round and specialist
	calls int
	asked chan struct{}
	rng   *rand.Rand
}

func (s *services) say(ctx context.Context, q specialist.Question) (string, error) {
	of := fmt.Sprint(q.Key.Session, " ", q.Key.Round, " ", q.Self)
	s.mu.Lock()
	if s.keys[of] == nil {
		s.keys[of] = map[string]bool{}
	}
	s.keys[of][q.Ask.ID] = true
	s.calls++
	works := time.NewTimer(time.Duration(s.rng.IntN(300)) * time.Millisecond)
	s.mu.Unlock()
	defer works.Stop()
	s.asked <- struct{}{}
	select {
	case <-works.C:
		return "go", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// kindsOf returns the kinds of the events of a session, but for asks that were repeated.
func kindsOf(t *testing.T, s session.Store, id specialist.SessionID) string {
	t.Helper()
	var kinds []string
	for r, err := range s.Records(t.Context(), id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := session.DecodeRaw(r.Events)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range raw {
			if e.Kind != session.KindAsked || !strings.Contains(string(e.Data), `"repeat":`) {
				kinds = append(kinds, e.Kind)
			}
		}
	}
	return strings.Join(kinds, " ")
}

// TestPostgresKilled: each session ends with the log of one that nobody has disturbed, the store is whole, and every
// service was asked for each answer once, under one key.
func TestPostgresKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	database := pgtest.Start(t, true)
	address := database.Database(t)
	asks := &services{keys: map[string]map[string]bool{}, asked: make(chan struct{}, 10000), rng: rand.New(rand.NewPCG(seed, 1))}
	calm := newServer(t).site(asks.say)
	m := stages(t)
	w := calm.worker()
	undisturbed := calm.begin(m)
	calm.ended(undisturbed, "completed")
	w.Stop()
	want := kindsOf(t, calm.store, undisturbed.ID)

	open := func() *postgres.Store {
		s, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // the database may be gone
		return s
	}
	at := &site{server: calm.server, cast: calm.cast, queue: "killed"}
	for range 2 {
		at.store = open()
		defer at.worker().Stop()
	}
	at.store = open()
	at.c = &temporal.Client{Temporal: at.client, Runner: at.runner(), Queue: at.queue}
	clear(asks.keys)
	asks.calls = 0
	for len(asks.asked) > 0 {
		<-asks.asked
	}
	var all []*session.Session
	for range carried {
		all = append(all, at.begin(m))
	}
	longest := time.Duration(0) // that the database was away
	for range crashes {
		for range 1 + rng.IntN(carried) {
			select {
			case <-asks.asked:
			case <-t.Context().Done():
			}
		}
		moment := time.NewTimer(time.Duration(rng.IntN(200)) * time.Millisecond)
		<-moment.C
		gone := time.Now()
		database.Kill()
		database.Restart(t)
		longest = max(longest, time.Since(gone))
	}
	for _, one := range all {
		at.ended(one, "completed")
		if got := kindsOf(t, at.store, one.ID); got != want {
			t.Errorf("the log of %s is\n%s, want\n%s", one.ID, got, want)
		}
	}
	asks.mu.Lock()
	defer asks.mu.Unlock()
	if len(asks.keys) != carried*3*2 {
		t.Errorf("asked were %d, want %d", len(asks.keys), carried*3*2)
	}
	if asks.calls != len(asks.keys) && longest < 5*time.Second { // a process that is cut off for longer loses its leases, and asks again under the same key
		t.Errorf("%d calls for %d answers", asks.calls, len(asks.keys))
	}
	for of, keys := range asks.keys {
		if len(keys) != 1 {
			t.Errorf("%s was asked under %v", of, keys)
		}
	}
	if report, err := at.store.(*postgres.Store).Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("Verify = %v, %v", report.Difference, err)
	}
}
