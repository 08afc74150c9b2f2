package driver_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A handing hands the sessions of a store in memory out, and notes what it is told.
type handing struct {
	session.Store

	mu       sync.Mutex
	ready    []*handed // in the order in which they became it
	sessions map[specialist.SessionID]*handed
	joined   []*hand
	told     []session.Release
	most     int // leased at once of a machine
}

// A handed is a session.
type handed struct {
	lease  session.Lease
	to     *hand // nil if nobody has it
	queued bool
}

// A hand is a worker.
type hand struct {
	*handing
	news, lost chan struct{}
	closed     bool
}

func newHanding() *handing {
	return &handing{Store: store.NewMemory(), sessions: map[specialist.SessionID]*handed{}}
}

func (h *handing) Commit(ctx context.Context, c *session.Change) error {
	if err := h.Store.Commit(ctx, c); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[c.After.ID]
	if s == nil {
		s = &handed{lease: session.Lease{Session: c.After.ID, MachineName: c.After.Machine().Name()}}
		h.sessions[c.After.ID] = s
	}
	s.lease.Sequence = c.After.Sequence
	if c.After.Status == session.Running && s.to == nil {
		h.queue(s)
	}
	return nil
}

// queue has a session be ready. h.mu is held.
func (h *handing) queue(s *handed) {
	if s.queued {
		return
	}
	s.queued = true
	h.ready = append(h.ready, s)
	for _, w := range h.joined {
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

func (h *handing) Join(context.Context) (session.Worker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &hand{h, make(chan struct{}, 1), make(chan struct{}), false}
	h.joined = append(h.joined, w)
	return w, nil
}

func (h *handing) Workers(context.Context) ([]session.WorkerInfo, error) { panic("not asked for") }
func (h *handing) Quarantined(context.Context, specialist.SessionID, int) ([]session.Quarantined, error) {
	panic("not asked for")
}
func (h *handing) Free(context.Context, specialist.SessionID) error { return nil }

func (w *hand) News() <-chan struct{} { return w.news }
func (w *hand) Lost() <-chan struct{} { return w.lost }

func (w *hand) Claim(_ context.Context, want session.Wanted) (list []session.Lease, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := maps.Clone(want.Held)
	w.ready = slices.DeleteFunc(w.ready, func(s *handed) bool {
		name := s.lease.MachineName
		if len(list) == want.Sessions || held[name] >= want.PerMachine {
			return false
		}
		held[name]++
		w.most = max(w.most, held[name])
		s.to, s.queued = w, false
		list = append(list, s.lease)
		return true
	})
	return list, nil
}

func (w *hand) Release(_ context.Context, releases ...session.Release) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range releases {
		s := w.sessions[r.Session]
		if s.to != w {
			continue
		}
		s.to = nil
		w.told = append(w.told, r)
		live := w.Recent(r.Session).Status.Live()
		switch {
		case !live || r.Undriven:
		case s.lease.Sequence > r.Sequence || r.After == 0 && r.Failed == "" && r.Elsewhere == 0:
			w.queue(s)
		case r.After > 0:
			time.AfterFunc(r.After, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.queue(s)
			})
		}
	}
	return nil
}

func (w *hand) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, s := range w.sessions {
		if s.to == w {
			s.to = nil
			w.queue(s)
		}
	}
	return nil
}

// TestPoolCarriesOn: what a store hands out is carried on to where it ends, and given back where it waits: for a
// commit, for a moment, or for whoever steps it by name; what fails says why.
func TestPoolCarriesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanding()
		g := newRig(t, driver.Config{Workers: 3}, h, nil)
		two := parsed(t, twoSteps, "two", "first")
		var ids []specialist.SessionID
		for range 50 {
			ids = append(ids, g.start(two))
		}
		g.drive(false)
		synctest.Wait()
		for range 10 {
			ids = append(ids, g.start(two))
		}
		human, timer := g.start(parsed(t, asks)), g.start(parsed(t, timed))
		undriven, err := g.runner.Start(t.Context(), two, runner.StartOptions{Driver: session.DriverNone})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, id := range ids {
			g.is(id, session.Completed, session.CodeGoal)
		}
		s := g.is(human, session.NeedsHuman, session.CodeNoProposals)
		g.is(timer, session.Running, "")
		told := map[specialist.SessionID]session.Release{}
		for _, r := range h.told {
			told[r.Session] = r
		}
		if r := told[human]; r.After >= 0 || r.Sequence != s.Sequence {
			t.Errorf("what waits for a human was given back as %+v", r)
		}
		if r := told[timer]; r.After < 89*time.Second || r.After > 91*time.Second {
			t.Errorf("what waits for a timer was given back as %+v", r)
		}
		if r := told[undriven.ID]; !r.Undriven {
			t.Errorf("what is to be stepped by name was given back as %+v", r)
		}
		if _, err := g.runner.Decide(t.Context(), runner.Ruling{SessionID: human, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "go"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		g.is(human, session.Completed, session.CodeGoal)
		g.is(timer, session.Completed, session.CodeGoal)
		if s := g.driver.Status(); s.Ready != 0 || s.Busy != 0 || s.Mode != driver.Driving {
			t.Errorf("the driver is %+v", s)
		}
		g.stop()
		if !h.joined[0].closed {
			t.Error("it has not left")
		}
	})
}

// TestPoolTurns: while others wait a session is kept for 32 steps at most; where none does, as long as it runs.
func TestPoolTurns(t *testing.T) {
	for _, sessions := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			h := newHanding()
			g := newRig(t, driver.Config{Workers: 2, MaxSteps: 100}, h, nil)
			var ids []specialist.SessionID
			for range sessions {
				ids = append(ids, g.start(parsed(t, forever)))
			}
			g.drive(false)
			synctest.Wait()
			for _, id := range ids {
				g.is(id, session.Stopped, session.CodeStepLimit)
			}
			given := 0
			for _, r := range h.told {
				if r.After == 0 {
					given++
				}
			}
			if sessions == 1 && given != 0 || sessions == 3 && given < 3 {
				t.Errorf("of %d sessions for 2 workers %d were given back while they ran", sessions, given)
			}
		})
	}
}

// TestPoolPerMachine: no more sessions of a machine are claimed than may be stepped at a time, and so
// one whose steps hang keeps no other waiting, here or in another process.
func TestPoolPerMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanding()
		g := newRig(t, driver.Config{Workers: 8, PerMachine: 3, Grace: time.Second}, h, map[string]specialist.ProposerFunc{"hang": func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
			<-ctx.Done()
			return specialist.Answer{}, ctx.Err()
		}})
		for range 20 {
			g.start(parsed(t, twoSteps, "hangs", "hang"))
		}
		g.drive(false)
		synctest.Wait()
		if h.most != 3 || len(h.ready) != 17 {
			t.Errorf("%d sessions of the machine were claimed, and %d are left", h.most, len(h.ready))
		}
		id := g.start(parsed(t, twoSteps, "two", "first"))
		synctest.Wait()
		g.is(id, session.Completed, session.CodeGoal)
		g.stop()
		for _, s := range h.sessions {
			if s.to != nil {
				t.Error("a session is not given back")
			}
		}
	})
}

// TestPoolLost: where the store has lost the process its steps end with ErrOwnerLost, it gives nothing back,
// and claims under another name.
func TestPoolLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanding()
		var causes []error
		first, lost := true, make(chan struct{})
		g := newRig(t, driver.Config{Workers: 1}, h, map[string]specialist.ProposerFunc{"once": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			if first {
				first = false
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
				<-lost // it takes its time to end
				return specialist.Answer{}, ctx.Err()
			}
			return q.Choose(q.Transitions()[0], "again"), nil
		}})
		id := g.start(parsed(t, twoSteps, "two", "once"))
		g.drive(false)
		synctest.Wait()
		close(h.joined[0].lost)
		synctest.Wait()
		if len(causes) != 1 || !errors.Is(causes[0], session.ErrOwnerLost) {
			t.Fatalf("the step has ended with %v, want ErrOwnerLost", causes)
		}
		if len(h.joined) != 2 || len(h.told) != 0 {
			t.Fatalf("it has joined %d times, and given %v back", len(h.joined), h.told)
		}
		close(lost)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		g.is(id, session.Completed, session.CodeGoal)
	})
}

// TestPoolFails: what a step fails of counts, but for a store that is busy and what this process lacks.
func TestPoolFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want func(session.Release) bool
	}{
		{errors.New("the disk is on fire"), func(r session.Release) bool { return strings.Contains(r.Failed, "on fire") }},
		{fmt.Errorf("it has not answered: %w", session.ErrUnknown), func(r session.Release) bool { return r.Failed == "" && r.After > 0 }},
		{session.ErrBusy, func(r session.Release) bool { return r.Failed == "" && r.After > 0 }},
		{&session.NewerError{What: "the log", Has: "an event"}, func(r session.Release) bool { return r.Failed == "" && r.Elsewhere == time.Minute }},
		{&runner.StartError{Problems: []error{errors.New("no such function")}}, func(r session.Release) bool { return r.Failed == "" && r.Elsewhere == time.Minute }},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHanding()
			broken := &breaking{handing: h, err: c.err}
			g := newRig(t, driver.Config{Workers: 1}, broken, nil)
			g.start(parsed(t, twoSteps, "two", "first"))
			broken.on = true
			g.drive(false)
			synctest.Wait()
			if len(h.told) == 0 || !c.want(h.told[0]) {
				t.Errorf("after %v it was given back as %+v", c.err, h.told)
			}
		})
	}
}

// A breaking loads nothing once it is on.
type breaking struct {
	*handing
	on  bool
	err error
}

func (b *breaking) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if b.on {
		return nil, b.err
	}
	return b.handing.Load(ctx, p, id)
}

// TestPoolOutgrown: a store that is for newer versions only ends the Driver, once the steps under way have ended and what was
// leased is given back.
func TestPoolOutgrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &outgrowing{handing: newHanding()}
		g := newRig(t, driver.Config{Workers: 1}, h, map[string]specialist.ProposerFunc{"slow": func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			h.on.Store(true)
			time.Sleep(10 * time.Second)
			return first(ctx, q)
		}})
		id := g.start(parsed(t, twoSteps, "two", "slow"))
		err := g.driver.Run(t.Context(), driver.Tenant{Name: "main", Runner: g.runner})
		if !errors.As(err, new(*session.NewerError)) {
			t.Errorf("the Driver has ended with %v", err)
		}
		if s, err := g.runner.Session(t.Context(), id); err != nil || s.Executed != 1 {
			t.Errorf("the step under way came to %+v, %v", s, err)
		}
		if len(h.told) != 1 || !h.joined[0].closed {
			t.Errorf("given back was %+v", h.told)
		}
	})
}

// An outgrowing store is for newer versions only once it is on.
type outgrowing struct {
	*handing
	on atomic.Bool
}

func (h *outgrowing) Join(ctx context.Context) (session.Worker, error) {
	w, err := h.handing.Join(ctx)
	return &outgrown{w, h}, err
}

type outgrown struct {
	session.Worker
	h *outgrowing
}

func (w *outgrown) Claim(ctx context.Context, want session.Wanted) ([]session.Lease, error) {
	if w.h.on.Load() {
		return nil, &session.NewerError{What: "the store", Has: "it is of form 9"}
	}
	return w.Worker.Claim(ctx, want)
}
