package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// watchedEvery is how often it looks where the store tells that something has.
const watchedEvery = 2 * time.Second

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
	for {
		r.pause(ctx, s)
		if ctx.Err() != nil {
			if errors.Is(context.Cause(ctx), errRunTime) && s.Timer() != nil && len(s.OpenAsks()) == 0 {
				return nil, &leftWaiting{s}
			}
			return nil, ctx.Err()
		}
		now, err := r.load(ctx, s.ID)
		if err != nil || now.Sequence != s.Sequence {
			return now, err
		}
		if t := r.now(); now.TimerComes(t) || now.Reminder(t) != nil {
			return now, nil
		}
		for _, a := range now.OpenAsks() {
			if a.Remote == nil || r.now() > a.Remote.Deadline || !r.waitsFor(askKey{now.Key(), a.Index}) && !a.Late() {
				return now, nil
			}
		}
	}
}

// pause waits until a session may have changed, or it is time to look.
func (r *Runner) pause(ctx context.Context, s *session.Session) {
	w, watches := r.store.(session.Watcher)
	for _, a := range s.OpenAsks() {
		watches = watches && a.Late() // others may be answered, or lost, without a commit
	}
	look := pollEvery
	if watches {
		look = watchedEvery
		if at := s.WakeAt(); at != 0 {
			look = min(look, max(pollEvery, time.Duration(at-r.now())*time.Millisecond))
		}
	}
	within, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	if watches && w.Watch(within, s.ID, s.Sequence) == nil {
		return
	}
	<-within.Done()
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
	s, _, err := r.end(ctx, id, &session.Ended{Status: session.Stopped, Code: code, Reason: reason}, nil)
	if err != nil {
		return Result{}, err
	}
	return resultOf(s), nil
}

func resultOf(s *session.Session) Result {
	o := s.Outcome()
	return Result{Status: s.Status.String(), Session: s, Code: o.Code, Reason: o.Reason}
}
