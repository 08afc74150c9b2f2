package postgres_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// A parting has two processes carry sessions on, and parts one of them from the database for a minute: nothing is reset, the bytes
// of one direction are lost, then those of both, and nothing comes any more over a connection that has lost some. All is so
// many times as fast as pace says. In each round five services are asked one after the other, so that there is always one
// that is still to be asked.
type parting struct {
	*testing.T
	pace  time.Duration
	store *postgres.Store

	mu   sync.Mutex
	rng  *rand.Rand
	asks []moment
	keys map[asked]map[string]bool // by the question without its key
	paid map[string]exact.Money    // by session: once for each key
	by   map[string]map[string]bool
	lags atomic.Bool  // answers to who is apart take a while
	out  atomic.Int64 // of them
}

// A moment is when somebody asked.
type moment struct {
	at time.Time
	by string
}

const (
	apart = "/apart"
	other = "/other"
)

// inTurn is a machine in each of whose rounds five services are asked one after the other.
func inTurn() string {
	who := ""
	for _, id := range []string{"one", "two", "three", "four", "five"} {
		who += fmt.Sprintf(`{"role": "proposer", "specialistId": %q, "strategyWebhookUrl": "https://service.invalid", "webhookTokenName": "NONE"}, `, id)
	}
	return `{"machineName": "asking", "initialState": "a", "goalState": "d", "quorum": "all", "solicit": {"mode": "all", "maxParallel": 1, "timeout": "50s"},
		"states": {"a": {"transitions": {"go": "b"}}, "b": {"transitions": {"go": "c"}}, "c": {"transitions": {"go": "d"}}, "d": {}},
		"specialists": [` + who + `{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`
}

// ServeHTTP is a service. While answers lag, each to who is apart takes 5 s to 15 s.
func (p *parting) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var a asked
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		p.Error(err)
	}
	p.mu.Lock()
	key := a.Key
	if a.Key = ""; p.keys[a] == nil {
		p.keys[a] = map[string]bool{}
	}
	if p.by[a.Session] == nil {
		p.by[a.Session] = map[string]bool{}
	}
	if !p.keys[a][key] {
		p.paid[a.Session] += askedCost
	}
	p.keys[a][key] = true
	p.by[a.Session][r.URL.Path] = true
	p.asks = append(p.asks, moment{time.Now(), r.URL.Path})
	takes := 10 * time.Millisecond
	if r.URL.Path == apart && p.lags.Load() {
		takes = p.in(5*time.Second) + time.Duration(p.rng.Int64N(int64(p.in(10*time.Second))))
	}
	p.mu.Unlock()
	p.out.Add(1)
	defer p.out.Add(-1)
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
	}
}

// in returns how long something takes at the pace.
func (p *parting) in(d time.Duration) time.Duration { return d / p.pace }

func (p *parting) asksOf(who string, from, to time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asks {
		if a.by == who && a.at.After(from) && a.at.Before(to) {
			n++
		}
	}
	return n
}

// workerOf returns the name under which a process carries sessions on, "" if it does not.
func (p *parting) workerOf(w *process) string {
	list := must(p.store.Workers(p.Context()))
	slices.Reverse(list)
	for _, info := range list {
		if strings.HasSuffix(info.About, fmt.Sprintf(", process %d", w.Process.Pid)) {
			return info.Name
		}
	}
	return ""
}

// TestPartition: who is parted from the database begins no ask from the moment on at which it has not been heard for 20 s; the other
// process has its sessions before the minute is over, and asks under the same keys. Once bytes arrive again it goes on by itself, under
// another name, and what it was told too late is recorded as that, with what it cost. Nothing that was acknowledged is
// lost, each round has one decision, each question one answer, and what was spent is what the services were paid.
func TestPartition(t *testing.T) {
	t.Parallel() // it waits most of the time
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	ways := []string{"answers", "questions"}
	if faults(1) == 1 {
		ways = ways[seed%2 : seed%2+1]
	}
	for _, lost := range ways {
		t.Run(lost+" are lost first", func(t *testing.T) { part(t, seed, hurry, lost) })
	}
	if faults(1) >= 10 {
		t.Run("at the real pace", func(t *testing.T) { part(t, seed, 1, "questions") })
	}
}

func part(t *testing.T, seed uint64, pace time.Duration, lost string) {
	address := pgtest.Database(t)
	proxy, through := between(t, address, seed)
	through += fmt.Sprintf("&connect_timeout=%d", 10/pace)
	p := &parting{T: t, pace: pace, store: open(t, address, postgres.Hurried(postgres.Options{}, int(pace))), rng: rand.New(rand.NewPCG(seed, 1)),
		keys: map[asked]map[string]bool{}, paid: map[string]exact.Money{}, by: map[string]map[string]bool{}}
	service := httptest.NewServer(p)
	defer service.Close()
	m, err := machine.Parse("asking.json", []byte(inTurn()), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: p.store, Resolver: services{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := &workers{T: t, all: map[string]map[int64]bool{}}
	running := map[string]*process{}
	runs := func(who, store string) {
		w.env = []string{workerStore + "=" + store, workerService + "=" + service.URL + who, fmt.Sprintf("%s=%d", workerPace, pace)}
		running[who] = w.start()
	}
	defer func() {
		for who, p := range running {
			p.Process.Kill()
			p.Wait()
			t.Logf("the worker %s has said: %s", who, p.said)
		}
	}()
	var ids []specialist.SessionID
	starts := func(what string, until func() bool) { // sessions, until something is so
		t.Helper()
		for began := time.Now(); !until(); time.Sleep(p.in(1500 * time.Millisecond)) {
			if time.Since(began) > 2*within {
				t.Fatalf("waited for %s", what)
			}
			started, err := r.Start(t.Context(), m, runner.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, started.ID)
		}
	}
	passes := func(since time.Time, d time.Duration) {
		t.Helper()
		starts("time to pass", func() bool { return time.Since(since) >= p.in(d) })
	}
	p.lags.Store(true)
	runs(apart, through)
	starts("asks to be out", func() bool { return len(ids) >= 16 && p.out.Load() >= 12 })
	runs(other, address)
	was := p.workerOf(running[apart])

	first, then := &proxy.silent, &proxy.deaf
	if lost == "questions" {
		first, then = then, first
	}
	parted := time.Now()
	first.Store(true)
	passes(parted, 15*time.Second)
	then.Store(true)
	passes(parted, 20*time.Second)
	silent := time.Now() // nothing that it has sent since it was parted was answered
	passes(parted, 60*time.Second)
	if n := p.asksOf(apart, silent.Add(p.in(5*time.Second)), time.Now()); n > 0 {
		t.Errorf("who is apart has asked %d times since it knows that others may have its sessions", n)
	}
	if n := p.asksOf(other, silent, time.Now()); n == 0 {
		t.Error("the other one has not gone on")
	}
	if n := ask[int](t, address, `SELECT count(*) FROM work w WHERE w.owner IS NOT NULL AND NOT EXISTS (SELECT FROM owners o WHERE o.id=w.owner AND o.until>now())`); n > 0 {
		t.Errorf("%d sessions of who is apart were not taken", n)
	}
	p.lags.Store(false)
	first.Store(false)
	then.Store(false)
	healed := time.Now()
	starts("who was apart to ask", func() bool { return p.asksOf(apart, healed, time.Now()) > 5 })
	if is := p.workerOf(running[apart]); is == was || is == "" || was == "" {
		t.Errorf("who was apart is the worker %q, and was %q", is, was)
	}
	t.Logf("it went on after %s", time.Since(healed))
	exec(t, address, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()`) // as the server does some day; the library waits 15 s for it

	wait(t, "all sessions to end", func() bool { return ask[int](t, address, `SELECT count(*) FROM sessions WHERE status<2`) == 0 })
	for who, p := range running {
		p.Process.Signal(syscall.SIGTERM)
		never := time.AfterFunc(within, func() { p.Process.Kill() })
		err := p.Wait()
		never.Stop()
		if err != nil {
			t.Errorf("the worker %s has ended with %v: %s", who, err, p.said)
		} else if ended := strings.Contains(p.said.String(), session.ErrOwnerLost.Error()); ended != (who == apart) {
			t.Errorf("the worker %s has ended its steps: %t", who, ended)
		}
		delete(running, who)
	}
	w.reading.Wait()
	p.check(w, r, ids)
}

// check holds what is recorded to what was acknowledged, and to what services were asked.
func (p *parting) check(w *workers, r *runner.Runner, ids []specialist.SessionID) {
	p.Helper()
	late, taken := 0, 0
	for _, id := range ids {
		w.check(p.store, id)
		s, err := r.Session(p.Context(), id)
		if err != nil {
			p.Fatal(err)
		}
		if spent, paid := s.Spent().Money, p.paid[id.String()]; spent != paid {
			p.Errorf("session %s has spent $%s, and the services were paid $%s", id, spent, paid)
		}
		for rec, err := range p.store.Records(p.Context(), id, 0) {
			if err != nil {
				p.Fatal(err)
			}
			events, err := session.DecodeRaw(rec.Events)
			if err != nil {
				p.Fatal(err)
			}
			for _, e := range events {
				var v struct{ CostUSD json.Number }
				if e.Kind != session.KindDiscarded {
					continue
				}
				if err := json.Unmarshal(e.Data, &v); err != nil {
					p.Fatal(err)
				}
				if late++; v.CostUSD.String() != askedCost.String() {
					p.Errorf("session %s: a late answer is recorded as %s", id, e.Data)
				}
			}
		}
		if len(p.by[id.String()]) > 1 {
			taken++
		}
	}
	for q, of := range p.keys {
		if len(of) != 1 {
			p.Errorf("%s was asked under %d keys in the round %s of session %s", q.Who, len(of), q.Round, q.Session)
		}
	}
	if taken == 0 || len(p.asks) <= len(p.keys) || late == 0 {
		p.Errorf("%d sessions passed from one to the other, %d questions were asked %d times, and %d answers were late: the test shows nothing", taken, len(p.keys), len(p.asks), late)
	}
	p.Logf("%d sessions, of which %d passed from one to the other; %d questions were asked %d times; %d answers were late", len(ids), taken, len(p.keys), len(p.asks), late)
	proven(p, p.store)
}
