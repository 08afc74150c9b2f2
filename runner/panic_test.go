package runner_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A faulty store panics in one of its methods, for one session, as often as it is told.
type faulty struct {
	session.Store
	mu    sync.Mutex
	in    string // the method
	id    specialist.SessionID
	times int
}

func (f *faulty) fail(in string, id specialist.SessionID, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in, f.id, f.times = in, id, times
}

func (f *faulty) reach(in string, id specialist.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in == in && f.id == id && f.times > 0 {
		f.times--
		panic("a bug in " + in)
	}
}

func (f *faulty) Load(ctx context.Context, ps *session.Programs, id specialist.SessionID) (*session.Session, error) {
	f.reach("Load", id)
	return f.Store.Load(ctx, ps, id)
}

func (f *faulty) Commit(ctx context.Context, c *session.Change) error {
	f.reach("Commit", c.After.ID)
	return f.Store.Commit(ctx, c)
}

// newFaulty returns a bench over a store that can be told to panic, with two sessions
// that each need several steps.
func newFaulty(t *testing.T, configure ...func(*runner.Config)) (b *bench, f *faulty, sick, well *session.Session, told *[]*runner.PanicError) {
	f, told = &faulty{}, new([]*runner.PanicError)
	b = newBench(t, append([]func(*runner.Config){func(c *runner.Config) {
		f.Store = c.Store
		c.Store = f
		c.Panicked = func(p *runner.PanicError) {
			f.mu.Lock()
			defer f.mu.Unlock()
			*told = append(*told, p)
		}
	}}, configure...)...)
	b.cast.say("a", "again")
	b.cast.judge("judge", electFirst)
	m := b.desk(fn("a"), arbFn("judge"))
	return b, f, b.start(m), b.start(m), told
}

// TestPanicIsItsSessionsMatter: whatever panics in one session's step is recorded on that
// session, tick goes on with the others, and a resume tries again.
func TestPanicIsItsSessionsMatter(t *testing.T) {
	b, f, sick, well, told := newFaulty(t)
	f.fail("Commit", sick.ID, 1)
	results, err := b.tickAll()
	b.ok(err)
	b.ticked(results, sick, runner.TickFailed, session.CodePanic)
	b.ticked(results, well, runner.TickAdvanced, "")
	s, err := b.r.Session(b.ctx, sick.ID)
	b.ok(err)
	if o := s.Outcome(); s.Status != session.Failed || o.Code != session.CodePanic || !strings.Contains(o.Reason, "a bug in Commit") || !strings.Contains(o.Reason, "resume") {
		t.Errorf("the session is %s: %+v", s.Status, o)
	}
	if len(*told) != 1 || !strings.Contains(string((*told)[0].Stack), "faulty") || (*told)[0].Session != sick.ID {
		t.Errorf("told of %v", *told)
	}
	results, err = b.tickAll()
	b.ok(err)
	if len(results) != 1 {
		t.Errorf("the next tick has %d sessions", len(results))
	}
	_, err = b.r.Resume(b.ctx, sick.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(sick, runner.TickAdvanced)
	b.stepTo(well, runner.TickAdvanced)
}

// TestPanicThatCannotBeRecorded: if recording fails too, tick says so and goes on.
func TestPanicThatCannotBeRecorded(t *testing.T) {
	for _, in := range []string{"Commit", "Load"} {
		b, f, sick, well, _ := newFaulty(t)
		f.fail(in, sick.ID, 1000)
		f.Store = forgetful{f.Store} // so that each step loads
		results, err := b.tickAll()
		b.ok(err)
		for _, r := range results {
			var p *runner.PanicError
			if r.Summary.SessionID == sick.ID && (!errors.As(r.Err, &p) || p.Session != sick.ID) {
				t.Errorf("%s: the error is %v", in, r.Err)
			}
		}
		b.ticked(results, well, runner.TickAdvanced, "")
		f.fail("", sick.ID, 0)
		b.stepTo(sick, runner.TickAdvanced)
	}
}

// forgetful keeps no session at hand.
type forgetful struct{ session.Store }

func (forgetful) Recent(specialist.SessionID) *session.Session { return nil }

// TestPanicWhileReading: what lists many sessions lists the others.
func TestPanicWhileReading(t *testing.T) {
	b, f, sick, well, _ := newFaulty(t)
	b.cast.play("a", failing(errors.New("no idea")))
	for _, s := range []*session.Session{sick, well} {
		b.stepTo(s, runner.TickHuman)
	}
	f.fail("Load", sick.ID, 1000)
	f.Store = forgetful{f.Store} // so that each is loaded
	items, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, "")
	var p *runner.PanicError
	if !errors.As(err, &p) || len(items) != 1 || items[0].SessionID != well.ID.String() {
		t.Errorf("the inbox has %d questions and the error %v", len(items), err)
	}
	f.fail("", sick.ID, 0)
	list, err := b.r.Sessions(b.ctx, session.ListQuery{})
	b.ok(err)
	if len(list) != 2 {
		t.Errorf("%d sessions are listed", len(list))
	}
	if _, _, err := b.r.Reviews(b.ctx, session.ListQuery{}, ""); err != nil {
		t.Errorf("nothing waits for a review, but: %v", err)
	}
}

// TestPanicOfTheObserver: what is durable stays; the session that the observer cannot
// bear has failed if it was still going on, and no other.
func TestPanicOfTheObserver(t *testing.T) {
	var sick *session.Session
	b, _, first, well, _ := newFaulty(t, func(c *runner.Config) {
		c.Observer = func(r session.Change) {
			if sick != nil && r.After.ID == sick.ID {
				panic("a bug in the observer")
			}
		}
	})
	sick = first
	results, err := b.tickAll()
	b.ok(err)
	b.ticked(results, sick, runner.TickFailed, session.CodePanic)
	b.ticked(results, well, runner.TickAdvanced, "")
	sick = nil
	_, err = b.r.Resume(b.ctx, first.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(first, runner.TickAdvanced)
}

// TestPanicShowsNoSecret: a host's panic may say anything; what looks like a secret is
// not kept.
func TestPanicShowsNoSecret(t *testing.T) {
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrstu-AAAAAAAA"
	b, _, sick, _, told := newFaulty(t, func(c *runner.Config) {
		c.Observer = func(r session.Change) {
			if r.Before != nil {
				panic("cannot send with " + key)
			}
		}
	})
	b.stepTo(sick, runner.TickFailed)
	s, err := b.r.Session(b.ctx, sick.ID)
	b.ok(err)
	if strings.Contains(s.Outcome().Reason, "sk-ant") || strings.Contains((*told)[0].Value, "sk-ant") {
		t.Errorf("it says %q", s.Outcome().Reason)
	}
}

// ticked fails the test unless a session's tick came to that.
func (b *bench) ticked(results []runner.TickResult, s *session.Session, status runner.TickStatus, code string) {
	b.Helper()
	for _, r := range results {
		if r.Summary.SessionID == s.ID {
			if r.Err != nil || r.Tick.Status != status || r.Tick.Code != code {
				b.Errorf("session %s: %s %s (%v), want %s %s", s.ID, r.Tick.Status, r.Tick.Code, r.Err, status, code)
			}
			return
		}
	}
	b.Errorf("session %s was not stepped", s.ID)
}

// A mad order panics for one session when its answers come together.
type mad struct{ id string }

func (m *mad) Together(asked []specialist.Caller) func(ctx context.Context, place int, deliver func()) {
	sick := len(asked) > 0 && asked[0].SessionID == m.id
	return func(_ context.Context, _ int, deliver func()) {
		if sick {
			panic("a bug in what orders answers")
		}
		deliver()
	}
}

// TestPanicInFlight: what panics in the goroutines of a flight, beside the one that steps,
// is a failed ask of its session, or is told of while the answer counts; the process and
// the other session go on.
func TestPanicInFlight(t *testing.T) {
	start := func(configure ...func(*runner.Config)) (b *bench, sick, well *session.Session, told *atomic.Int32) {
		told = &atomic.Int32{}
		b = newBench(t, append(configure, func(c *runner.Config) { c.Panicked = func(*runner.PanicError) { told.Add(1) } })...)
		b.cast.say("far", "again")
		b.cast.judge("judge", electFirst)
		m := b.desk(web("far"), arbFn("judge"))
		return b, b.start(m), b.start(m), told
	}
	t.Run("deliver", func(t *testing.T) {
		order := &mad{}
		b, sick, well, told := start(func(c *runner.Config) { c.Arrivals = order })
		order.id = sick.ID.String()
		b.stepTo(sick, runner.TickAdvanced)
		if told.Load() == 0 {
			t.Error("nobody was told of the panic")
		}
		b.stepTo(well, runner.TickAdvanced)
	})
	t.Run("answer", func(t *testing.T) {
		var armed atomic.Bool // the next look at the clock panics
		b, sick, well, told := start(func(c *runner.Config) {
			now := c.Now
			c.Now = func() time.Time {
				if armed.CompareAndSwap(true, false) {
					panic("a bug in the clock")
				}
				return now()
			}
		})
		b.cast.play("far", func(context.Context, specialist.Question) (specialist.Answer, error) {
			armed.Store(true) // what looks next is the goroutine that asked
			return specialist.Answer{TransitionName: "again", Reasoning: "so"}, nil
		})
		b.stepTo(sick, runner.TickHuman)
		if armed.Load() || told.Load() != 1 {
			t.Errorf("the clock did not panic in the flight (%d were told)", told.Load())
		}
		var log strings.Builder
		for rec, err := range b.store.Records(b.ctx, sick.ID, 0) {
			b.ok(err)
			log.Write(rec.Events)
		}
		if !strings.Contains(log.String(), `"code":"panic"`) || !strings.Contains(log.String(), "a bug in the clock") {
			t.Errorf("the log says\n%s", &log)
		}
		b.cast.say("far", "again")
		b.stepTo(well, runner.TickAdvanced)
	})
}
