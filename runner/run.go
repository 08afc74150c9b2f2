package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Run is Step, again and again, until the session ends, needs a human, or only waits for
// answers that come later. While answers are out it looks into the store at intervals,
// since another process may record them, and goes on when the session has changed or an
// answer is overdue. It decides nothing of its own: a limit of steps or of time stops
// the session with an event, and Resume takes it up again with a new count.
//
// Resume takes up no session that has completed, and what was spent stays
// spent. Tick steps each live session, and on to whoever is to decide; what goes wrong
// with one is its own result.

// Limits of one Run, where its options set none.
const (
	DefaultMaxSteps = 1000
	DefaultTimeout  = time.Hour
)

// RunOptions bound one Run. The zero value has the default limits.
type RunOptions struct {
	MaxSteps int           // transitions; 0 means DefaultMaxSteps
	Timeout  time.Duration // 0 means DefaultTimeout
	Wait     bool          // stay while only late answers are out, or a timer that executes something
	// Timers says, with Wait, to stay also while a human is asked, if a timer ends that.
	Timers bool
}

// A Result is where a Run left its session.
type Result struct {
	Status  string           `json:"status"` // completed, needs_human, waiting, stopped or failed
	Session *session.Session `json:"session"`
	Code    string           `json:"code"`
	Reason  string           `json:"reason"`
}

// WaitingStatus is the Result of a Run that waits for late answers, or for a timer.
const WaitingStatus = "waiting"

// pollEvery is how often a Run that waits looks whether something has arrived.
const pollEvery = 200 * time.Millisecond

// Run steps one session until it ends, needs a human, or waits for answers that
// come later. A limit stops the session; resuming it starts a new count.
func (r *Runner) Run(ctx context.Context, id specialist.SessionID, o RunOptions) (Result, error) {
	result, err := r.runWithin(ctx, id, o)
	if err != nil || result.Session.Status != session.NeedsHuman {
		return result, err
	}
	why, err := r.outcomeNow(ctx, result.Session)
	result.Code, result.Reason = why.Code, why.Reason
	return result, err
}

// runWithin is Run within its limits.
func (r *Runner) runWithin(ctx context.Context, id specialist.SessionID, o RunOptions) (Result, error) {
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	s, err := r.load(ctx, id)
	if err != nil {
		return Result{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, errRunTime)
	defer cancel()
	var result Result
	if !apart(func() { result, err = r.run(limited, s, o) }) {
		var tick Tick
		if tick, err = r.gone(ctx, id); err == nil {
			return resultOf(tick.Session), nil
		}
	}
	if left, ok := errors.AsType[*leftWaiting](err); ok && ctx.Err() == nil {
		return waitingResult(left.session), nil
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errRunTime) {
		return r.stopRun(ctx, id, session.CodeTimeLimit, fmt.Sprintf("the run took longer than its limit of %s", o.Timeout))
	}
	return result, err
}

// stepLimit says that a run took all the transitions it may.
func (o *RunOptions) stepLimit() string {
	if o.MaxSteps == 1 {
		return "the run reached its limit of 1 transition"
	}
	return fmt.Sprintf("the run reached its limit of %d transitions", o.MaxSteps)
}

var errRunTime = errors.New("the time of the run is over")

func (r *Runner) run(ctx context.Context, s *session.Session, o RunOptions) (Result, error) {
	for steps := 0; ; {
		if s.Status == session.Running && steps >= o.MaxSteps {
			return r.stopRun(ctx, s.ID, session.CodeStepLimit, o.stepLimit())
		}
		tick, err := r.step(ctx, s)
		if err != nil {
			return Result{}, err
		}
		s = tick.Session
		switch tick.Status {
		case TickAdvanced:
			steps++
			if s.Status != session.Running {
				return resultOf(s), nil
			}
		case TickSolicited, TickRejected:
		case TickWaiting:
			if !o.Wait && (s.Waits() || s.OnlyLate()) {
				return waitingResult(s), nil
			}
			if s, err = r.await(ctx, s); err != nil {
				return Result{}, err
			}
		default:
			if s, err = r.load(ctx, s.ID); err != nil { // somebody else may have moved it
				return Result{}, err
			}
			switch {
			case s.Status == session.Running:
			case !o.Wait || !o.Timers || s.Timer() == nil:
				return resultOf(s), nil
			default:
				if s, err = r.await(ctx, s); err != nil {
					return Result{}, err
				}
			}
		}
	}
}

// waitingResult says that a session was left while it waits: as it stands where a human is
// asked too.
func waitingResult(s *session.Session) Result {
	switch {
	case s.Status != session.Running:
		return resultOf(s)
	case s.Waits():
		return Result{Status: WaitingStatus, Session: s, Code: session.CodeTimer, Reason: s.WaitsFor()}
	}
	return Result{Status: WaitingStatus, Session: s}
}

// leftWaiting says that the time of a run was over while it waited for a timer.
type leftWaiting struct{ session *session.Session }

func (e *leftWaiting) Error() string { return errRunTime.Error() }

// await returns once the session has changed, an answer is overdue, or it is time for a
// reminder or a timer. The error is a *leftWaiting if the time of the run is over while
// only a timer is waited for.
func (r *Runner) await(ctx context.Context, s *session.Session) (*session.Session, error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errRunTime) && s.Timer() != nil && len(s.OpenAsks()) == 0 {
				return nil, &leftWaiting{s}
			}
			return nil, ctx.Err()
		case <-ticker.C:
		}
		now, err := r.load(ctx, s.ID)
		if err != nil || now.Sequence != s.Sequence {
			return now, err
		}
		if t := r.now(); now.TimerComes(t) || now.Reminder(t) != nil {
			return now, nil
		}
		for _, a := range now.OpenAsks() {
			if a.Remote == nil || r.now() > a.Remote.Deadline || !r.waitsFor(askKey{now.Key(), a.Index}) && !a.Remote.Accepted {
				return now, nil
			}
		}
	}
}

// StopAtLimit stops a running session that has taken all the transitions it may, counted
// since it was started or resumed ([session.Session.SinceResumed]), as a Run with that
// limit does. It is for whoever steps sessions one by one.
func (r *Runner) StopAtLimit(ctx context.Context, id specialist.SessionID, maxSteps int) (Tick, error) {
	o := RunOptions{MaxSteps: maxSteps}
	return r.stopSteps(ctx, id, session.CodeStepLimit, o.stepLimit())
}

// StopAtTime stops a running session whose steps have taken all the time that they may in all,
// since it was started or resumed ([session.Session.Resumes]). It is for whoever steps
// sessions one by one; how long that took they know.
func (r *Runner) StopAtTime(ctx context.Context, id specialist.SessionID, limit time.Duration) (Tick, error) {
	return r.stopSteps(ctx, id, session.CodeTimeLimit, fmt.Sprintf("the steps took longer than their limit of %s", limit))
}

func (r *Runner) stopSteps(ctx context.Context, id specialist.SessionID, code, reason string) (Tick, error) {
	result, err := r.stopRun(ctx, id, code, reason)
	if err != nil {
		return Tick{}, err
	}
	return Tick{Status: statusOf(result.Session), Session: result.Session, Code: result.Code}, nil
}

// stopRun stops a session because a limit of the run was reached.
func (r *Runner) stopRun(ctx context.Context, id specialist.SessionID, code, reason string) (Result, error) {
	s, _, err := r.end(ctx, id, &session.Ended{Status: session.Stopped, Code: code, Reason: reason})
	if err != nil {
		return Result{}, err
	}
	return resultOf(s), nil
}

func resultOf(s *session.Session) Result {
	o := s.Outcome()
	return Result{Status: s.Status.String(), Session: s, Code: o.Code, Reason: o.Reason}
}

// ResumeOptions say how a session is taken up again.
type ResumeOptions struct {
	Actor *session.Actor // who takes it up, for the record; nil if that is not said
	// SpecialistID is the human of the machine as whom that is done; it may be "", but
	// where a limit is raised.
	SpecialistID machine.SpecialistID
	Note         string
	If           func(*session.Session) error // as in a Ruling; asked also of a session that is left as it is
	RetryFailed  bool                         // ask those again whose asks failed in this round, whatever it waits for
	// KeepFailed leaves those alone whose asks failed. Without it they are asked again
	// where the session waits because of them: with the code no_quorum or no_proposals.
	KeepFailed bool
	// Clear says that a human has looked at a loop that a guard found: the guards
	// forget what has repeated and judge afresh. What was spent stays spent.
	Clear bool
	// Raise lifts limits of the guards for this session, from now on; of each, Limit
	// and To count. What was spent stays spent, and a tenant's quota stays as it is.
	// Only a human who may rule in the session's state can do that (SpecialistID), and
	// says why (Note).
	Raise []guard.Raise
}

// Resume takes up a session that was stopped by a guard or a limit, has failed,
// or waits because its arbiter failed, or because those failed who were asked. Any other session that runs, waits for a human or
// has completed is left as it is, unless what its guards remember is to be
// cleared or a limit raised. What was spent stays spent. The error wraps [ErrQuota]
// if its tenant may have no more sessions at a time, [ErrForbidden] if SpecialistID is
// not one who can raise a limit, and [ErrNotRunning] if one is to be raised in a session
// that has completed; it is an *[Error] with the code [BadRaise] if a limit cannot be
// raised like that.
func (r *Runner) Resume(ctx context.Context, id specialist.SessionID, o ResumeOptions) (*session.Session, error) {
	if err := checkActor(o.Actor); err != nil {
		return nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err == nil {
			err = holds(o.If, s)
		}
		if err != nil {
			return nil, err
		}
		retry := o.RetryFailed || !o.KeepFailed && s.RetriesOnResume()
		if len(o.Raise) == 0 && (s.Status == session.Completed || s.Status.Live() && !s.Resumable(retry) && !o.Clear) {
			return s, nil
		}
		w, err := r.begin(ctx, s)
		if err != nil {
			return nil, err
		}
		d := &session.Resumed{Actor: o.Actor.Clone(), SpecialistID: string(o.SpecialistID), Note: o.Note, RetryFailed: retry, Cleared: o.Clear}
		if len(o.Raise) > 0 {
			if err := w.raise(d, o.Raise); err != nil {
				return nil, err
			}
		}
		if !s.Status.Live() {
			if err := r.admitted(ctx, s); err != nil {
				return nil, err
			}
		}
		w.emit(d)
		after, err := w.write(ctx)
		if err != nil {
			r.ended(s)
		}
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, session.ErrStale
}

// How many sessions Tick steps at once, and how many of those that it has begun with it
// keeps at most, so that one that takes long holds up few others.
const (
	tickParallel = 16
	tickAhead    = 256
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
