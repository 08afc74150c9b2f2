package postgres_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	cmd "os/exec"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/strategies"
)

// Workers are processes of their own: this program, run again with these settings. Each commit that is
// acknowledged to one it prints, as a session, the number of its last event, when that was (ns), and
// the status of the session, before it does anything else.
const (
	workerStore   = "DIALAI_TEST_WORKER_STORE"
	workerService = "DIALAI_TEST_WORKER_SERVICE"
	workerPace    = "DIALAI_TEST_WORKER_PACE" // in place of hurry
)

// hurry is how many times as fast leases run out.
const hurry = 10

// asking asks two services in each of three rounds, and goes by the first answer.
const asking = `{"machineName": "asking", "initialState": "a", "goalState": "d",
	"states": {"a": {"transitions": {"go": "b"}}, "b": {"transitions": {"go": "c"}}, "c": {"transitions": {"go": "d"}}, "d": {}},
	"specialists": [{"role": "proposer", "specialistId": "one", "strategyWebhookUrl": "https://service.invalid", "webhookTokenName": "NONE"},
		{"role": "proposer", "specialistId": "two", "strategyWebhookUrl": "https://service.invalid", "webhookTokenName": "NONE"},
		{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`

// askedCost is what a service takes for each key.
const askedCost = exact.Dollar / 100

// An asked is what the service is told.
type asked struct{ Key, Session, Round, Who string }

// services ask the test for every webhook.
type services struct {
	strategies.Registry
	url string
}

func (r services) Proposer(m *machine.Machine, s *machine.Specialist, c specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return r.Registry.Proposer(m, s, c)
	}
	return specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		body, err := json.Marshal(asked{q.Ask.ID, q.Key.Session.String(), q.Key.ID(), string(s.SpecialistID)})
		if err != nil {
			return specialist.Answer{}, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
		if err != nil {
			return specialist.Answer{}, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return specialist.Answer{}, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		a := q.Choose(q.Transitions()[0], "asked")
		a.Usage = a.Usage.WithCost(askedCost)
		return a, err
	}), nil
}

// work is the program of a worker. It ends when it is told to.
func work() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pace, err := strconv.Atoi(cmp.Or(os.Getenv(workerPace), fmt.Sprint(hurry)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := postgres.Open(ctx, os.Getenv(workerStore), postgres.Hurried(postgres.Options{}, pace))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	d := driver.New(driver.Config{Workers: 16, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	tell := d.Observer("main")
	r, err := runner.New(runner.Config{Store: s, Resolver: services{url: os.Getenv(workerService)}, Observer: func(c session.Change) {
		fmt.Println(c.After.ID, c.After.Sequence, time.Now().UnixNano(), c.After.Status)
		tell(c)
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.Close()
	if err := d.Run(ctx, driver.Tenant{Name: "main", Runner: r}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// workers are processes, and what they were acknowledged.
type workers struct {
	*testing.T
	env []string

	commits atomic.Int64
	mu      sync.Mutex
	all     map[string]map[int64]bool // of a session the numbers
	reading sync.WaitGroup
}

// A process is one of them.
type process struct {
	*cmd.Cmd
	said *bytes.Buffer
}

// start starts a worker.
func (w *workers) start() *process {
	w.Helper()
	p := &process{cmd.Command(os.Args[0]), &bytes.Buffer{}}
	p.Env, p.Stderr = append(os.Environ(), w.env...), p.said
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var id string
			var sequence int64
			if n, _ := fmt.Sscan(lines.Text(), &id, &sequence); n < 2 {
				continue // it was killed meanwhile
			}
			w.commits.Add(1)
			w.mu.Lock()
			if w.all[id] == nil {
				w.all[id] = map[int64]bool{}
			}
			w.all[id][sequence] = true
			w.mu.Unlock()
		}
	})
	return p
}

// TestWorkers has four processes carry 200 sessions on, and kills one again and again, anywhere: nothing that
// was acknowledged is lost, each round has one decision, and each service one answer to each question under
// one key, however often it was asked. In the end all sessions have ended, and nobody holds any.
func TestWorkers(t *testing.T) {
	kills, sessions := faults(6), 200
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	address := pgtest.Database(t)
	s := open(t, address, postgres.Hurried(postgres.Options{}, hurry))
	m, err := machine.Parse("asking.json", []byte(asking), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	keys, times := map[asked]map[string]bool{}, 0 // by the question without its key
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a asked
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		times++
		key := a.Key
		if a.Key = ""; keys[a] == nil {
			keys[a] = map[string]bool{}
		}
		keys[a][key] = true
	}))
	defer service.Close()

	r, err := runner.New(runner.Config{Store: s, Resolver: services{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := &workers{T: t, env: []string{workerStore + "=" + address, workerService + "=" + service.URL}, all: map[string]map[int64]bool{}}
	var running []*process
	for range 4 {
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
	started := make(chan struct{})
	go func() {
		defer close(started)
		for range sessions {
			s, err := r.Start(t.Context(), m, runner.StartOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			ids = append(ids, s.ID)
			mu.Unlock()
		}
	}()
	for n := range kills {
		before, more := w.commits.Load(), rng.Int64N(int64(sessions*6/kills/2))
		wait(t, "commits", func() bool { return w.commits.Load() > before+more })
		p := running[n%4]
		p.Process.Kill()
		p.Wait()
		running[n%4] = w.start()
	}
	<-started
	left := func() int { return ask[int](t, address, `SELECT count(*) FROM sessions WHERE status<2`) }
	wait(t, "all sessions to end", func() bool {
		for _, q := range must(s.Quarantined(t.Context(), specialist.SessionID{}, 0)) {
			t.Logf("session %s was quarantined (%s)", q.Session, q.Reason)
			if err := s.Free(t.Context(), q.Session); err != nil {
				t.Fatal(err)
			}
		}
		return left() == 0
	})
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
	t.Logf("%d questions were asked %d times", len(keys), times)
	if report, err := s.Verify(t.Context(), session.NewPrograms(), nil); err != nil || report.Difference != nil {
		t.Errorf("verified is %+v (%v)", report, err)
	}
	if n := ask[int](t, address, `SELECT count(*) FROM work`); n != 0 {
		t.Errorf("%d rows are left of sessions that have ended", n)
	}
	if list := must(s.Workers(t.Context())); len(list) > 0 && list[0].Leases > 0 {
		t.Errorf("the workers are still %+v", list)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check fails unless the log of a session has all that was acknowledged, one decision in each round, and one
// answer to each question.
func (w *workers) check(s *postgres.Store, id specialist.SessionID) {
	w.Helper()
	last := map[int64]bool{} // numbers with which records end
	round, answers, decisions := 0, map[string]int{}, map[string]int{}
	for rec, err := range s.Records(w.Context(), id, 0) {
		if err != nil {
			w.Fatal(err)
		}
		var events []struct {
			Seq  int64
			Kind string
			Data struct{ SpecialistID string }
		}
		if err := json.Unmarshal(rec.Events, &events); err != nil {
			w.Fatal(err)
		}
		last[events[len(events)-1].Seq] = true
		for _, e := range events {
			switch e.Kind {
			case session.KindRoundOpened:
				round++
			case session.KindProposed:
				answers[fmt.Sprintf("%s in round %d", e.Data.SpecialistID, round)]++
			case session.KindExecuted:
				decisions[fmt.Sprintf("round %d", round)]++
			}
		}
	}
	for sequence := range w.all[id.String()] {
		if !last[sequence] {
			w.Errorf("session %s has no record that ends with event %d, which was acknowledged", id, sequence)
		}
	}
	for of, list := range map[string]map[string]int{"answers": answers, "decisions": decisions} {
		for what, n := range list {
			if n != 1 {
				w.Errorf("session %s has %d %s of %s", id, n, of, what)
			}
		}
	}
	if len(decisions) != 3 {
		w.Errorf("session %s has %d decisions, want one in each of 3 rounds", id, len(decisions))
	}
}
