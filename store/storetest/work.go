package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What a store promises that hands its sessions out.

// A pool is a bench whose process carries sessions on.
type pool struct {
	*bench
	worker session.Worker
}

func newPool(t *testing.T, m Maker) *pool {
	p := &pool{bench: newBench(t, m)}
	if _, ok := p.store.(session.WorkStore); !ok {
		t.Skip("the store hands no sessions out: one process drives it at a time")
	}
	p.join()
	return p
}

// another returns another process at the same store.
func (p *pool) another(m Maker) *pool {
	b := *p.bench
	other := &pool{bench: &b}
	other.open(m)
	other.join()
	return other
}

func (p *pool) join() {
	p.Helper()
	w, err := p.store.(session.WorkStore).Join(p.ctx)
	p.ok(err)
	p.worker = w
	p.Cleanup(func() { p.ok(w.Close(context.Background())) })
}

// claim claims, and returns which sessions these are.
func (p *pool) claim(want session.Wanted) (ids []specialist.SessionID) {
	p.Helper()
	leases, err := p.worker.Claim(p.ctx, want)
	p.ok(err)
	for _, l := range leases {
		if at := p.load(l.Session); l.MachineName != at.Machine().Name() || l.Sequence != at.Sequence {
			p.Errorf("the lease is %+v, the session of %s is at event %d", l, at.Machine().Name(), at.Sequence)
		}
		ids = append(ids, l.Session)
	}
	return ids
}

// claims fails unless these sessions can be claimed, and no others, in any order.
func (p *pool) claims(why string, want ...specialist.SessionID) {
	p.Helper()
	got := p.claim(session.Wanted{Sessions: 10})
	order := func(a, b specialist.SessionID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		p.Fatalf("%s: claimed are %v, want %v", why, got, want)
	}
}

// give releases a session at the event at which it is.
func (p *pool) give(id specialist.SessionID, after time.Duration) {
	p.Helper()
	p.ok(p.worker.Release(p.ctx, session.Release{Session: id, Sequence: p.load(id).Sequence, After: after}))
}

const never = -1 * time.Second

func testWorkClaims(t *testing.T, m Maker) {
	one := newPool(t, m)
	two := one.another(m)
	other := one.parse(`{"machineName": "other", "initialState": "a", "goalState": "b", "states": {"a": {"transitions": {"go": "b"}}, "b": {}}, "specialists": [{"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"}]}`)
	var first []specialist.SessionID
	for i := range 9 {
		id := one.start().ID
		if first = append(first, id); i == 8 {
			s, err := one.r.Start(one.ctx, other, runner.StartOptions{})
			one.ok(err)
			first = append(first, s.ID)
		}
	}
	if got := one.claim(session.Wanted{Sessions: 2}); len(got) != 2 || !slices.Contains(got, first[0]) || !slices.Contains(got, first[9]) {
		t.Fatalf("of two machines two sessions are %v, want the first of each: %v", got, []specialist.SessionID{first[0], first[9]})
	}
	if got := two.claim(session.Wanted{Sessions: 10, PerMachine: 4, Held: map[string]int{"storetest": 1, "unknown": 9}}); !slices.Equal(got, first[1:4]) {
		t.Fatalf("with room for three of the machine %v are claimed, want %v", got, first[1:4])
	}
	if got := two.claim(session.Wanted{Sessions: 10, PerMachine: 4, Held: map[string]int{"storetest": 4}}); got != nil {
		t.Fatalf("with room for none of the machine %v are claimed", got)
	}
	one.claims("the rest", first[4:9]...)
	two.claims("when all are leased")
	for name, want := range map[string][]specialist.SessionID{"one": first[:1], "two": first[1:2]} {
		p := map[string]*pool{"one": one, "two": two}[name]
		p.give(want[0], 0)
		if one.claims(name, want...); name == "two" {
			two.give(want[0], 0) // which is not its own any more
			two.claims("what another has leased")
		}
	}
	workers, err := one.store.(session.WorkStore).Workers(one.ctx)
	one.ok(err)
	if len(workers) != 2 || workers[0].Leases != 8 || workers[1].Leases != 2 || workers[0].About == "" || workers[0].Until == 0 {
		t.Fatalf("the workers are %+v, want one with 8 leases and one with 2", workers)
	}
	one.ok(one.worker.Close(one.ctx))
	one.join()
	two.claims("after the other has left", append(slices.Clone(first[4:]), first[0], first[1])...)
}

func testWorkReleases(t *testing.T, m Maker) {
	one := newPool(t, m)
	two := one.another(m)
	id := one.start().ID
	one.claims("at first", id)
	one.give(id, never)
	two.claims("what waits for a commit")

	two.r.Step(two.ctx, id) // which comes to nothing but that a human is needed
	if s := two.load(id); s.Status != session.NeedsHuman {
		t.Fatalf("the session is %s", s.Status)
	}
	two.claims("what waits for a human")
	two.decide(id, "again")
	one.claims("after a ruling in another process", id)
	two.decide(id, "again")
	one.ok(one.worker.Release(one.ctx, session.Release{Session: id, Sequence: one.load(id).Sequence, After: never}))
	two.claims("after a ruling in another process while it was leased", id)
	for _, after := range []time.Duration{never, time.Hour} {
		looked := two.load(id).Sequence
		two.decide(id, "again")
		two.ok(two.worker.Release(two.ctx, session.Release{Session: id, Sequence: looked, After: after}))
		two.claims("after a ruling here that was not looked at", id)
	}
	two.decide(id, "again")
	two.give(id, never)
	two.claims("after a commit here that was looked at")

	two.decide(id, "again")
	one.claims("after another ruling", id)
	one.give(id, time.Hour)
	two.claims("what is ready in an hour")
	if s := two.load(id); s.Status != session.Running {
		t.Fatalf("the session is %s", s.Status)
	}
	two.decide(id, "again")
	one.claims("what was to be ready in an hour, after a ruling", id)
	two.decide(id, "finish")
	one.give(id, 0)
	two.claims("what has ended")
}

func testWorkUndriven(t *testing.T, m Maker) {
	p := newPool(t, m)
	s, err := p.r.Start(p.ctx, p.m, runner.StartOptions{Driver: session.DriverNone})
	p.ok(err)
	p.claims("what nobody is to carry on")
	p.decide(s.ID, "again")
	p.claims("what nobody is to carry on, after a ruling")
	id := p.start().ID
	p.claims("what is to be carried on", id)
	p.ok(p.worker.Release(p.ctx, session.Release{Session: id, Undriven: true}))
	p.decide(id, "again")
	p.claims("what nobody is to carry on as it turned out")

	to := func(id specialist.SessionID, driver session.Driver) {
		_, err := p.r.SetDriver(p.ctx, id, driver, nil)
		p.ok(err)
	}
	to(s.ID, session.DriverPool)
	p.claims("what is to be carried on from now on", s.ID)
	to(s.ID, session.DriverTemporal)
	p.give(s.ID, 0)
	p.claims("what somebody else carries on, as was said while it was leased")
	to(s.ID, session.DriverPool)
	p.claims("what is to be carried on again", s.ID)
	to(s.ID, session.DriverTemporal)
	to(s.ID, session.DriverPool)
	p.ok(p.worker.Release(p.ctx, session.Release{Session: s.ID, Undriven: true})) // as it was in between
	p.claims("what is to be carried on again, as who leased it did not see", s.ID)
	to(s.ID, session.DriverNone)
	p.ok(p.worker.Release(p.ctx, session.Release{Session: s.ID, Undriven: true}))
	p.claims("what is not to be carried on any more")
}

func testWorkTimer(t *testing.T, m Maker) {
	p := newPool(t, m)
	start := func(in string) specialist.SessionID {
		timed := p.parse(fmt.Sprintf(`{"machineName": "timed", "initialState": "a", "goalState": "z", "states": {"a": {"due": {"in": %q, "then": "late"}, "specialists": [], "transitions": {"late": "z"}}, "z": {}},
			"specialists": [{"role": "arbiter", "specialistId": "x", "strategyFnName": "firstProposal"}]}`, in))
		s, err := p.r.Start(p.ctx, timed, runner.StartOptions{})
		p.ok(err)
		return s.ID
	}
	start("1h")
	soon := start("10ms")
	p.within(10*time.Second, func() string {
		if got := p.claim(session.Wanted{Sessions: 2}); len(got) != 1 || got[0] != soon {
			return fmt.Sprintf("claimed are %v, want what was to be left by now", got)
		}
		return ""
	})
}

func testWorkNews(t *testing.T, m Maker) {
	one := newPool(t, m)
	two := one.another(m)
	news := func(p *pool, why string) {
		t.Helper()
		select {
		case <-p.worker.News():
		case <-time.After(time.Minute):
			t.Fatalf("nothing was heard of %s", why)
		}
	}
	id := one.start().ID
	for _, p := range []*pool{one, two} {
		news(p, "a session that was started")
	}
	one.claims("it", id)
	one.give(id, 0)
	news(two, "a session that was released")
}

// testWatch: whoever watches a session hears of commits of others, and of one that was before.
func testWatch(t *testing.T, m Maker) {
	one := newBench(t, m)
	w, ok := one.store.(session.Watcher)
	if !ok {
		t.Skip("the store has nobody wait for a session")
	}
	s := one.start()
	two := *one
	two.open(m)
	if err := w.Watch(one.ctx, specialist.SessionID{1}, 0); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown session: %v, want ErrNotFound", err)
	}
	one.ok(w.Watch(one.ctx, s.ID, s.Sequence-1))
	for _, b := range []*bench{one, &two} {
		at := one.load(s.ID).Sequence
		heard := make(chan error, 1)
		go func() { heard <- w.Watch(one.ctx, s.ID, at) }()
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: map[*bench]machine.SpecialistID{one: "first"}[b] + map[*bench]machine.SpecialistID{&two: "second"}[b]})
		b.ok(err)
		one.ok(<-heard)
	}
	ctx, cancel := context.WithCancel(one.ctx)
	cancel()
	if err := w.Watch(ctx, s.ID, one.load(s.ID).Sequence); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing has happened: %v, want what ended it", err)
	}
}
