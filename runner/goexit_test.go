package runner_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

// TestStrategyEndsItsGoroutine: that is a failed ask, as a panic is, wherever the function
// is called: Step, Run and Propose return, and nothing stays locked. They hung.
func TestStrategyEndsItsGoroutine(t *testing.T) {
	for name, who := range map[string][]string{"beside a service": {fn("a"), web("w")}, "alone": {fn("a")}, "a service": {web("a")}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cast.play("a", leaving)
			b.cast.say("w", "finish")
			b.cast.judge("judge", electNone)
			s := b.start(b.desk(append(who, human("human"), arbFn("judge"))...))
			b.stepTo(s, runner.TickHuman)
			if log := b.log(s, 1); !strings.Contains(log, "ask_failed a panic") {
				t.Errorf("the log is\n%s", log)
			}
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"})
			if e, ok := errors.AsType[*runner.Error](err); !ok || e.Code != session.CodePanic || !strings.Contains(e.Error(), "ended its goroutine") {
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
	tick := b.stepTo(s, runner.TickHuman)
	if tick.Code != session.CodeArbiterFailed || !strings.Contains(tick.Session.Outcome().Reason, "ended its goroutine") {
		t.Errorf("it came to %s: %s", tick.Code, tick.Session.Outcome().Reason)
	}
}

// TestGuardLeaves: a guard of the program's own that panics, or ends its goroutine, fails
// closed, and the program is told, where it had heard of no panic of a guard.
func TestGuardLeaves(t *testing.T) {
	for name, leave := range map[string]func(){"a panic": func() { panic("a bug") }, "an end": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var told []*runner.PanicError
			b := newBench(t, func(c *runner.Config) {
				c.Panicked = func(p *runner.PanicError) { told = append(told, p) }
				c.Guards = []guard.Checker{guard.Func(func(context.Context, verdict.Step) verdict.Verdict { leave(); return verdict.Verdict{} })}
			})
			b.cast.say("a", "finish")
			s := b.start(b.desk(fn("a"), human("human"), half))
			if tick := b.stepTo(s, runner.TickStopped); tick.Code != "internal_error" || len(told) != 1 || told[0].Session != s.ID {
				t.Errorf("it came to %s, the program was told %v", tick.Code, told)
			}
		})
	}
}

// quitter is a store that ends the goroutine of whoever loads.
type quitter struct {
	session.Store
	id specialist.SessionID
}

func (q *quitter) Load(ctx context.Context, ps *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if q.id == id {
		q.id = specialist.SessionID{}
		runtime.Goexit()
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
	results, err := b.r.Tick(b.ctx)
	b.ok(err)
	b.ticked(results, sick, runner.TickFailed, session.CodePanic)
	b.ticked(results, well, runner.TickAdvanced, "")
}
