package storetest

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

const definition = `{
  "machineName": "storetest", "initialState": "open", "goalState": "done",
  "states": {
    "open": { "prompt": "Which way?", "transitions": { "finish": "done", "again": "open", "park": "parked" } },
    "parked": { "transitions": { "back": "open" }, "specialists": [ { "role": "proposer", "specialistId": "local", "strategyFnName": "firstAvailable" } ] },
    "done": {}
  },
  "specialists": [
    { "role": "proposer", "specialistId": "human", "isHuman": true },
    { "role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable" },
    { "role": "proposer", "specialistId": "second", "strategyFnName": "lastAvailable" },
    { "role": "arbiter", "specialistId": "arbiter", "strategyFnName": "alignmentMargin", "threshold": 0.5 }
  ]
}`

// A bench is a runner over a store under test.
type bench struct {
	*testing.T
	ctx   context.Context
	store session.Store
	r     *runner.Runner
	m     *machine.Machine
	clock *clock
}

// clock is a clock that moves a second with each reading, so that every commit
// has a time of its own.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func newBench(t *testing.T, m Maker) *bench {
	b := &bench{T: t, ctx: context.Background(), clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	b.open(m)
	b.m = b.parse(definition)
	return b
}

func (b *bench) parse(definition string) *machine.Machine {
	b.Helper()
	m, err := machine.Parse("storetest.json", []byte(definition), runner.Checks())
	b.ok(err)
	return m
}

// open opens the store as another process would.
func (b *bench) open(m Maker) {
	b.Helper()
	b.store = m.Open(b.T)
	r, err := runner.New(runner.Config{Store: b.store, Now: b.clock.read})
	b.ok(err)
	b.r = r
	b.Cleanup(func() { b.ok(r.Close()) })
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// within waits until problem finds none, no longer than the store says that it may take.
func (b *bench) within(old time.Duration, problem func() string) {
	b.Helper()
	for until := time.Now().Add(old); ; time.Sleep(time.Millisecond) {
		p := problem()
		if p == "" {
			return
		}
		if !time.Now().Before(until) {
			b.Fatal(p)
		}
	}
}

func (b *bench) start() *session.Session {
	b.Helper()
	s, err := b.r.Start(b.ctx, b.m, runner.StartOptions{})
	b.ok(err)
	return s
}

func (b *bench) load(id specialist.SessionID) *session.Session {
	b.Helper()
	s, err := b.store.Load(b.ctx, session.NewPrograms(), id)
	b.ok(err)
	return s
}

// decide has a human decide the current round of a session, after everybody has
// proposed.
func (b *bench) decide(id specialist.SessionID, transition string) runner.Arbitration {
	b.Helper()
	asked := []string{"first", "second"}
	if b.load(id).State.Name == "parked" {
		asked = []string{"local"}
	}
	for _, who := range asked {
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who)})
		b.ok(err)
	}
	return b.force(id, transition)
}

func (b *bench) force(id specialist.SessionID, transition string) runner.Arbitration {
	b.Helper()
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: transition, Reasoning: "because"})
	b.ok(err)
	if !a.Executed {
		b.Fatalf("the ruling %q was refused: %s", transition, a.GuardReason)
	}
	return a
}

// change returns a change that ends the session, for commits by hand.
func (b *bench) change(s *session.Session) *session.Change {
	b.Helper()
	f := &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return b.m.JSON(), nil }}
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		_, err := f.Add(rec.Events)
		b.ok(err)
	}
	events := []session.Event{{At: specialist.TimeOf(b.clock.read()), Data: &session.Ended{Status: session.Stopped, Code: "test", Reason: "by hand"}}}
	raw := session.AppendEvents(nil, s.Key(), s.Sequence+1, events)
	_, err := f.Add(raw)
	b.ok(err)
	return &session.Change{Before: s, After: f.Session(), First: s.Sequence + 1, Events: events}
}

// all returns what a store yields, none of which may fail.
func all[T any](b *bench, yielded iter.Seq2[T, error]) (list []T) {
	b.Helper()
	for v, err := range yielded {
		b.ok(err)
		list = append(list, v)
	}
	return list
}

func (b *bench) id(s string) specialist.SessionID {
	b.Helper()
	id, err := session.ParseID(s)
	b.ok(err)
	return id
}
