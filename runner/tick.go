package runner

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A TickResult is one session's Tick.
type TickResult struct {
	Summary session.Summary // before the step
	Tick    Tick
	Err     error // of this result only
}

// Due lists the sessions with a timer or a reminder that comes by a moment: they are to be
// stepped though nothing happens to them (see [session.Session.TimerAt]). They come in the
// order of creation, as many as limit; 0 means all. It loads none of them and looks at no
// others. A session that cannot be stepped stays among them.
func (r *Runner) Due(ctx context.Context, now specialist.Time, limit int) ([]session.Summary, error) {
	return r.store.List(ctx, session.ListQuery{Statuses: session.LiveStatuses(), Wake: now, Limit: limit})
}

// tickSteps is how many steps at most Tick takes of a session.
const tickSteps = 100

// Tick steps every live session once, but for those that wait for a timer which has not
// come. Where that executes a timer's transition, or leads to a state in which nobody but
// humans can be asked, it steps on, so that those are asked in the same Tick; the result is
// then that of the last transition. It yields the results in the order in which the sessions
// were created, as they come, and ends after an error of the store or of ctx. Whoever does
// not want them all waits for those that have begun.
func (r *Runner) Tick(ctx context.Context) iter.Seq2[TickResult, error] {
	return func(yield func(TickResult, error) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		var begun []chan TickResult
		slots := make(chan struct{}, tickParallel)
		yielded := func(most int) bool { // what has come; it waits while more than so many have not
			for len(begun) > most || len(begun) > 0 && len(begun[0]) > 0 {
				result := <-begun[0]
				if begun = begun[1:]; !yield(result, nil) {
					return false
				}
			}
			return true
		}
		live := session.ListQuery{Statuses: session.LiveStatuses(), Awake: max(1, r.now())}
		var failed error
		for s, err := range session.Each(ctx, r.store.List, live) {
			if failed = err; failed != nil {
				break
			}
			done := make(chan TickResult, 1)
			begun = append(begun, done)
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				done <- r.ticked(ctx, s)
			})
			if !yielded(tickAhead) {
				return
			}
		}
		if !yielded(0) {
			return
		}
		if err := cmp.Or(failed, ctx.Err()); err != nil {
			yield(TickResult{}, err)
		}
	}
}

// ticked steps one of the sessions of a Tick.
func (r *Runner) ticked(ctx context.Context, s session.Summary) (result TickResult) {
	result.Summary = s
	result.Tick, result.Err = r.StepOn(ctx, s.SessionID)
	return result
}

// StepOn is what a Tick does with a session: StepApart, and again while that leads where nobody
// has to be asked first.
func (r *Runner) StepOn(ctx context.Context, id specialist.SessionID) (tick Tick, err error) {
	if !apart(func() { tick, err = r.stepOn(ctx, id) }) {
		return r.gone(ctx, id)
	}
	return tick, err
}

// stepOn is Step, and again while that leads where nobody has to be asked first.
func (r *Runner) stepOn(ctx context.Context, id specialist.SessionID) (Tick, error) {
	tick, err := r.Step(ctx, id)
	for range tickSteps - 1 {
		if err != nil || tick.Status != TickAdvanced || tick.Session.Status != session.Running {
			break
		}
		if on, err := r.goesOn(ctx, tick.Session); !on || err != nil {
			return tick, err
		}
		var next Tick
		if next, err = r.step(ctx, tick.Session); err != nil {
			break
		}
		switch next.Status {
		case TickHuman, TickWaiting, TickSolicited:
			next.Status, next.Code = TickAdvanced, tick.Code
			next.Previous, next.Transition, next.verdict = tick.Previous, tick.Transition, tick.verdict
			return next, nil
		}
		tick = next
	}
	return tick, err
}

// goesOn reports whether a step that led to the session goes on: a timer was executed, for
// which nobody was asked, or in the state nobody but humans can be.
func (r *Runner) goesOn(ctx context.Context, s *session.Session) (bool, error) {
	if s.Last().How == session.ByTimer {
		return true, nil
	}
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return false, err
	}
	t := r.look(p, s)
	return !slices.ContainsFunc(t.members(), func(m planning.Member) bool { return t.asks(&m) }), nil
}

// How many sessions Tick steps at once, and how many of those that it has begun with it
// keeps at most, so that one that takes long holds up few others.
const (
	tickParallel = 16
	tickAhead    = 256
)
