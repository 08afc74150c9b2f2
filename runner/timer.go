package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/session"
)

// What a Step does because a state is due, before anybody is asked. session/due.go says
// what there is to do at a moment; here it is done:
//
//   - A reminder is recorded with whatever else the step does.
//   - The timer's transition is taken through the gate as a ruling is, and executed. It
//     needs nobody who is asked, so it does not matter whether what asking takes is there.
//     It teaches nothing and ends the asks that are still out. Pending rulings of humans
//     do not hold it up: until it is committed each of them could have been the first.
//   - A wait, where nobody is asked, ends the step until then, and needs a human where its
//     timer cannot do what it is to do.
//
// A store commits only one change to a session as it was, so of a ruling and a timer in
// the same millisecond one is executed and the other finds another round.

// timed does what is to be done of the session's due; it sees nothing if the step goes on.
func (w *engine) timed(ctx context.Context) (roundInput, error) {
	now := w.r.now()
	if s := w.s; !s.Status.Live() || !s.TimerComes(now) && s.Reminder(now) == nil && !idles(s) {
		return seenNothing, nil
	}
	if err := w.beginTimed(ctx); err != nil {
		return seenNothing, err
	}
	switch {
	case w.now.Key() != w.key || !w.now.Status.Live():
		return seenElsewhere, nil
	case w.now.TimerComes(w.at) && w.now.Timer() != nil:
		return w.executeTimer(ctx)
	}
	if d := w.now.Reminder(w.at); d != nil {
		w.emit(d)
	}
	return w.timerWaits(ctx)
}

// idles reports whether nobody is asked in the session: it is in a wait, and somebody may
// choose a transition there.
func idles(s *session.Session) bool {
	return s.State.Wait && s.Status == session.Running && len(s.Proposals()) == 0 && len(s.Offered().Transitions) > 0
}

// beginTimed begins a commit for which nobody is asked, with what is not durable yet.
func (w *engine) beginTimed(ctx context.Context) error {
	p, err := w.r.planPartial(ctx, w.s.Program)
	if err != nil {
		return err
	}
	w.beginWith(p)
	w.recordAgain()
	return nil
}

// timerWaits says what follows where the timer executes nothing now: a wait goes on, or
// needs a human, and any other step goes on as far as it can.
func (w *engine) timerWaits(ctx context.Context) (roundInput, error) {
	s := &w.now
	d := s.Due()
	switch {
	case s.Status != session.Running:
		return seenHuman, nil
	case !idles(s):
		return seenNothing, w.save(ctx)
	case s.Waits() && !s.TimerComes(w.at):
		w.moved.Code = session.CodeTimer
		return seenTimer, nil
	case d == nil || d.At == 0:
		why := "it was not worked out"
		if d != nil {
			why = d.Error
		}
		w.emit(&session.AwaitsHuman{Code: session.CodeDueFailed, Reason: fmt.Sprintf("State %q waits for %s, and nobody knows until when: %s", s.State.Name, s.State.Timer.Name, why)})
	default:
		w.emit(&session.AwaitsHuman{Code: session.CodeClosed, Reason: s.WhyClosed(s.State.Timer)})
	}
	return seenHuman, nil
}

// executeTimer executes the transition of the timer that has come, or records why it
// cannot be, so that it is not tried again in this round.
func (w *engine) executeTimer(ctx context.Context) (roundInput, error) {
	from, t := w.now.State, w.now.Timer()
	w.cancelOpen()
	verdict, err := w.execute(ctx, &decision{transition: t, how: session.ByTimer, by: session.TimerID, reasoning: fmt.Sprintf("due at %s", w.now.Due().At)})
	if failed, ok := errors.AsType[*cases.SetError](err); ok {
		w.emit(&session.AwaitsHuman{Code: session.CodeSetFailed, Reason: failed.Error(), Timer: true})
		return seenHuman, nil
	}
	if err != nil {
		return seenNothing, err
	}
	if !verdict.Passed() {
		w.emit(&session.AwaitsHuman{Code: verdict.Reasons[0].Code, Reason: verdict.Reasons[0].Text(), Timer: true})
		return seenHuman, nil
	}
	w.moved.Previous, w.moved.Transition = from, t
	return seenPassed, nil
}
