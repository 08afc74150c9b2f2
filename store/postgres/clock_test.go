package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store/postgres"
)

// TestClock: a process whose clock is an hour ahead, or is set back by ten minutes, writes the times of the
// database, and whoever looks at the workers sees it.
func TestClock(t *testing.T) {
	address := pgtest.Database(t)
	var ahead atomic.Int64
	set := func(d time.Duration) { ahead.Store(int64(d)) }
	set(time.Hour)
	s := open(t, address, postgres.Timed(postgres.Hurried(postgres.Options{}, hurry), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := parse(t)
	teach(t, r, m)
	near := func(what string) {
		t.Helper()
		if off := ask[int64](t, address, `SELECT max(abs(updated_at-extract(epoch FROM clock_timestamp())::bigint*1000)) FROM sessions WHERE created_at>=(SELECT max(created_at) FROM sessions)`); off > 30_000 {
			t.Errorf("%s what happens is written %d ms off", what, off)
		}
	}
	near("an hour ahead")
	var said lines
	d := driver.New(driver.Config{Workers: 1, Log: slog.New(slog.NewTextHandler(&said, nil))})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx, driver.Tenant{Name: "main", Runner: r}) }()
	shown := func(at time.Duration) func() bool {
		return func() bool {
			list := must(s.Workers(t.Context()))
			return len(list) == 1 && (time.Duration(list[0].SkewMsec)*time.Millisecond-at).Abs() < 10*time.Second
		}
	}
	wait(t, "a worker that is an hour ahead", shown(time.Hour))
	set(-10 * time.Minute)
	teach(t, r, m) // before anybody has asked the database again
	near("at once when it is set back")
	wait(t, "a worker that is ten minutes behind", shown(-10*time.Minute))
	if off := (s.Skew() + 10*time.Minute).Abs(); off > 10*time.Second {
		t.Errorf("the clock is %s ahead, want -10m", s.Skew())
	}
	teach(t, r, m)
	near("ten minutes behind")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := said.String(); strings.Count(text, "by which it goes") != 2 || !strings.Contains(text, "ahead=1h") || !strings.Contains(text, "ahead=-") {
		t.Errorf("the log says %s", text)
	}
}

// lines are what a log says.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestDueByClock: a process whose clock is an hour ahead does nothing that is due in half an hour.
func TestDueByClock(t *testing.T) {
	address := pgtest.Database(t)
	m, err := machine.Parse("due.json", []byte(`{"machineName": "due", "initialState": "open", "goalState": "done",
		"states": {"open": {"due": {"in": "30m", "then": "expire"}, "transitions": {"finish": "done", "expire": "done"}}, "done": {}},
		"specialists": [{"role": "proposer", "specialistId": "human", "isHuman": true}, {"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	ahead := postgres.Timed(postgres.Options{}, func() time.Time { return time.Now().Add(time.Hour) })
	var runners []*runner.Runner
	for _, o := range []postgres.Options{{}, ahead} {
		r, err := runner.New(runner.Config{Store: open(t, address, o)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		runners = append(runners, r)
	}
	started, err := runners[0].Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tick, err := runners[1].Step(t.Context(), started.ID)
		if err != nil || tick.Session.State.Name != "open" {
			t.Fatalf("a step has come to %v in state %s (%v)", tick.Status, tick.Session.State.Name, err)
		}
	}
}
