package runner_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// leaving is the part of who ends the goroutine that it runs on, as a test's FailNow does.
func leaving(context.Context, specialist.Question) (specialist.Answer, error) {
	runtime.Goexit()
	return specialist.Answer{}, nil
}

// gone is what is said of a Go function that ended its goroutine.
const gone = "ended its goroutine (runtime.Goexit)"

// wantGone has a session run, and expects that it has failed since a function ended its
// goroutine; nothing stays locked, and another session goes on.
func (b *bench) wantGone(s *session.Session) {
	b.Helper()
	result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
	b.ok(err)
	if o := result.Session.Outcome(); result.Session.Status != session.Failed || o.Code != session.CodePanic || !strings.Contains(o.Reason, gone) || result.Session.Executed != 0 {
		b.Errorf("it came to %s: %s (%s)", result.Session.Status, o.Code, o.Reason)
	}
	done := make(chan struct{})
	go func() { // of a Step it is the goroutine of whoever calls it that ends
		defer close(done)
		_, _ = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: someone})
		_, _ = b.r.Step(b.ctx, s.ID)
		b.Error("a step returned whose function has ended the goroutine")
	}()
	<-done
	if now := b.now(s); now.Status != session.Running || now.Executed != 0 {
		b.Errorf("a step that has ended its goroutine left the session %s", now.Status)
	}
}

// TestServiceEndsItsGoroutine: that is a failed ask, as a panic is.
func TestServiceEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", leaving)
	b.cast.judge("judge", electNone)
	s := b.start(b.desk(web("a"), human("human"), arbFn("judge")))
	b.stepTo(s, runner.TickHuman)
	if log := b.log(s, 1); !strings.Contains(log, "ask_failed a panic") {
		t.Errorf("the log is\n%s", log)
	}
	b.force(s, "finish")
}

// TestStrategyEndsItsGoroutine: a run, and a proposal that is asked for, say so and return;
// they hung.
func TestStrategyEndsItsGoroutine(t *testing.T) {
	for name, who := range map[string][]string{"beside a service": {fn("a"), web("w")}, "alone": {fn("a")}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cast.play("a", leaving)
			b.cast.say("w", "finish")
			b.cast.judge("judge", electNone)
			s := b.start(b.desk(append(who, human("human"), arbFn("judge"))...))
			b.wantGone(s)
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
			if p, ok := errors.AsType[*runner.PanicError](err); !ok || p.Session != s.ID || !strings.Contains(p.Error(), gone) {
				t.Errorf("asked by hand: %v", err)
			}
			b.force(s, "finish")
		})
	}
}

// TestArbiterEndsItsGoroutine: likewise.
func TestArbiterEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		runtime.Goexit()
		return arbiter.Decision{}, nil
	}))
	s := b.start(b.desk(fn("a"), human("human"), arbFn("judge")))
	b.wantGone(s)
}

// TestGuardEndsItsGoroutine: nothing passes a guard that does not return.
func TestGuardEndsItsGoroutine(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(context.Context, verdict.Step) verdict.Verdict { runtime.Goexit(); return verdict.Verdict{} })}
	})
	b.cast.say("a", "finish")
	b.wantGone(b.start(b.desk(fn("a"), human("human"), half)))
}

// TestGuardPanics: a guard of the program's own that panics fails closed, and the program is
// told, where it had heard of no panic of a guard.
func TestGuardPanics(t *testing.T) {
	var told []*runner.PanicError
	b := newBench(t, func(c *runner.Config) {
		c.Panicked = func(p *runner.PanicError) { told = append(told, p) }
		c.Guards = []guard.Checker{guard.Func(func(context.Context, verdict.Step) verdict.Verdict { panic("a bug") })}
	})
	b.cast.say("a", "finish")
	s := b.start(b.desk(fn("a"), human("human"), half))
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "internal_error" || len(told) != 1 || told[0].Session != s.ID {
		t.Errorf("it came to %s, the program was told %v", tick.Code, told)
	}
}

// quitter is a store that ends the goroutine of who loads one of its sessions first.
type quitter struct {
	session.Store
	id   specialist.SessionID
	once sync.Once
}

func (q *quitter) Load(ctx context.Context, ps *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if q.id == id {
		q.once.Do(runtime.Goexit) // which counts as done
	}
	return q.Store.Load(ctx, ps, id)
}

// TestTickRecordsAnEndOfItsGoroutine: whatever ends the goroutine of one session's step is
// recorded on that session as a panic is, and tick goes on with the others.
func TestTickRecordsAnEndOfItsGoroutine(t *testing.T) {
	q := &quitter{}
	b := newBench(t, func(c *runner.Config) { q.Store = forgetful{c.Store}; c.Store = q })
	b.cast.say("a", "again")
	m := b.desk(fn("a"), half)
	sick, well := b.start(m), b.start(m)
	q.id = sick.ID
	results, err := b.tickAll()
	b.ok(err)
	b.ticked(results, sick, runner.TickFailed, session.CodePanic)
	b.ticked(results, well, runner.TickAdvanced, "")
}
