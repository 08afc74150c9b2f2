package postgres_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// TestPartition has two processes carry sessions on, and parts one of them from the database for a minute, all at ten times
// the pace: first it is heard and hears nothing, then it is not heard either. It asks nobody any more from the moment on at
// which the other may have its sessions; that one takes them and asks under the same keys. Once it hears again it carries
// sessions on as before. Nothing that was acknowledged is lost, each round has one decision, and each question one answer.
func TestPartition(t *testing.T) {
	const apart, other = "/apart", "/other"
	address := pgtest.Database(t)
	p, through := between(t, address, rand.Uint64())
	s := open(t, address, postgres.Hurried(postgres.Options{}, hurry))
	m, err := machine.Parse("asking.json", []byte(asking), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	type moment struct {
		at time.Time
		by string
	}
	var mu sync.Mutex
	var asks []moment
	keys := map[asked]map[string]bool{} // by the question without its key
	by := map[string]map[string]bool{}  // who asked for a session
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a asked
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		defer func() { <-time.After(200 * time.Millisecond) }() // so that answers are out when the processes are parted
		mu.Lock()
		defer mu.Unlock()
		asks = append(asks, moment{time.Now(), r.URL.Path})
		if by[a.Session] == nil {
			by[a.Session] = map[string]bool{}
		}
		by[a.Session][r.URL.Path] = true
		key := a.Key
		if a.Key = ""; keys[a] == nil {
			keys[a] = map[string]bool{}
		}
		keys[a][key] = true
	}))
	defer service.Close()
	asksOf := func(who string, from, to time.Time) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range asks {
			if a.by == who && a.at.After(from) && a.at.Before(to) {
				n++
			}
		}
		return n
	}

	r, err := runner.New(runner.Config{Store: s, Resolver: services{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := &workers{T: t, all: map[string]map[int64]bool{}}
	var running []*process
	for who, store := range map[string]string{apart: through, other: address} {
		w.env = []string{workerStore + "=" + store, workerService + "=" + service.URL + who}
		running = append(running, w.start())
	}
	defer func() {
		for _, p := range running {
			p.Process.Kill()
			p.Wait()
			t.Logf("a worker has said: %s", p.said)
		}
	}()
	var ids []specialist.SessionID
	starts := func(until func() bool) { // sessions, until something is so
		t.Helper()
		for began := time.Now(); !until(); <-time.After(20 * time.Millisecond) {
			if time.Since(began) > within {
				t.Fatal("it is never so")
			}
			started, err := r.Start(t.Context(), m, runner.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, started.ID)
		}
	}
	begun := time.Now()
	starts(func() bool { return asksOf(apart, begun, time.Now()) > 20 && asksOf(other, begun, time.Now()) > 20 })

	p.silent.Store(true)
	parted := time.Now()
	othersMay := parted.Add(30 * time.Second / hurry)
	starts(func() bool { return time.Since(parted) > 30*time.Second/hurry })
	p.deaf.Store(true)
	starts(func() bool { return time.Since(parted) > 60*time.Second/hurry })
	if n := asksOf(apart, othersMay, time.Now()); n > 0 {
		t.Errorf("who is apart has asked %d times since others may have its sessions", n)
	}
	if n := asksOf(other, othersMay, time.Now()); n == 0 {
		t.Error("the other one has not gone on")
	}
	wait(t, "the sessions of who is apart to be taken", func() bool {
		return ask[int](t, address, `SELECT count(*) FROM work w WHERE w.owner IS NOT NULL AND NOT EXISTS (SELECT FROM owners o WHERE o.id=w.owner AND o.until>now())`) == 0
	})
	p.silent.Store(false)
	p.deaf.Store(false)
	healed := time.Now()
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // what was kept back never comes
	starts(func() bool { return asksOf(apart, healed, time.Now()) > 20 })

	wait(t, "all sessions to end", func() bool { return ask[int](t, address, `SELECT count(*) FROM sessions WHERE status<2`) == 0 })
	for i, p := range running {
		p.Process.Signal(syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Errorf("worker %d has ended with %v: %s", i, err, p.said)
		}
	}
	running = nil
	w.reading.Wait()
	for _, id := range ids {
		w.check(s, id)
	}
	for q, of := range keys {
		if len(of) != 1 {
			t.Errorf("%s was asked under %d keys in the round %s of session %s", q.Who, len(of), q.Round, q.Session)
		}
	}
	taken := 0
	for _, who := range by {
		if len(who) > 1 {
			taken++
		}
	}
	if taken == 0 || len(asks) <= len(keys) {
		t.Error("nobody has gone on with a session of the other, or nothing was asked again: the test shows nothing")
	}
	t.Logf("%d sessions, of which %d passed from one to the other; %d questions were asked %d times", len(ids), taken, len(keys), len(asks))
	if report, err := s.Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("verified is %+v (%v)", report, err)
	}
}
