package session

import (
	"fmt"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// By when a session is to leave its state. The moment is worked out when a round opens, by
// whoever drives the session, and recorded with it (Due); from then on it depends on no
// clock and no expression. An attempt at the round keeps it, the next round has its own.
//
// Two things can happen because of it, both in a Step: a reminder is recorded (Reminded),
// once each, of several missed the last; and the transition of the state's timer is
// executed when the moment has come and nothing else was before. If that transition
// cannot be executed (its condition does not hold, it cannot set what it is to set, a
// guard refuses it), it is not tried again in the round until somebody takes the session up
// again, such as to raise a limit, or moves it: the question is overdue, and a wait, in which
// nothing else can happen, needs a human.
//
// A clock that goes backwards makes nothing happen twice: what has happened is in the log.

// A Due says by when a state is to be left, or why nobody knows. It is not changed.
type Due struct {
	At    specialist.Time // 0 if it could not be worked out
	Error string          // why; "" if it could
}

// timing is what a session knows of its present state's due. It never changes: every
// event makes another.
type timing struct {
	Due
	reminded specialist.Time // the moment of the newest reminder that was recorded; 0 if none was
	failed   bool            // the timer's transition could not be executed
}

// opened returns the timing of a round that opens. A further attempt keeps what there is.
func (t *timing) opened(d *RoundOpened) *timing {
	switch {
	case d.Attempt > 0 && d.Due == nil:
		return t
	case d.Due == nil:
		return nil
	}
	return &timing{Due: *d.Due}
}

// Due returns by when the present state is to be left; nil if it may take as long as it
// likes. The caller must not change it.
func (s *Session) Due() *Due {
	if s.timing == nil {
		return nil
	}
	return &s.timing.Due
}

// Overdue reports whether the session should have left its state by a moment. One that has
// ended, or stands still, is not overdue.
func (s *Session) Overdue(at specialist.Time) bool {
	return s.timing != nil && s.timing.At != 0 && at >= s.timing.At && s.Status.Live()
}

// Timer returns the transition that is executed when the state is due, unless something
// else is before; nil if none is, or it could not be.
func (s *Session) Timer() *machine.Transition {
	if s.timing == nil || s.timing.At == 0 || s.timing.failed || !s.Status.Live() || s.State.Timer == nil || s.WhyClosed(s.State.Timer) != "" {
		return nil
	}
	return s.State.Timer
}

// Waits reports whether nothing happens in the session before its timer: nobody is asked
// there, and nobody has proposed anything.
func (s *Session) Waits() bool { return s.waitsIn(s.round()) }

func (s *Session) waitsIn(o *OpenRound) bool {
	return s.Timer() != nil && s.State.Wait && s.Status == Running && len(o.Proposals) == 0
}

// OnlyLate reports whether no answers are out but those that were accepted for later, or
// are to external asks: for them no process waits.
func (s *Session) OnlyLate() bool {
	for _, a := range s.OpenAsks() {
		if !a.Late() {
			return false
		}
	}
	return true
}

// Standing is Outcome, also for a session that waits for nothing but its timer: its status
// is running, and its code timer.
func (s *Session) Standing() Outcome {
	if s.Waits() {
		return Outcome{Code: CodeTimer, Reason: s.WaitsFor(), Since: s.OpenedAt}
	}
	return s.Outcome()
}

// DueAt returns by when the present state is to be left; 0 if it may take as long as it
// likes, nobody knows, or the session has ended or stands still.
func (s *Session) DueAt() specialist.Time {
	if s.timing == nil || !s.Status.Live() {
		return 0
	}
	return s.timing.At
}

// WaitsFor says what a session that waits waits for.
func (s *Session) WaitsFor() string {
	return fmt.Sprintf("%s at %s", s.State.Timer.Name, s.timing.At)
}

// atDue returns when something happens because the state is due; 0 if nothing does.
func (s *Session) atDue() specialist.Time {
	if s.Timer() != nil {
		return s.timing.At
	}
	return 0
}

// WakeAt returns when the session is to be stepped again though nothing happens to it
// meanwhile: the earliest to come of the moment at which its timer executes something, its
// reminders, and the deadlines of asks that are out. It is 0 if there is none, and for a
// session that has ended or stands still; it may lie in the past.
func (s *Session) WakeAt() specialist.Time {
	wake := s.TimerAt()
	if s.Status != Running {
		return wake
	}
	for i := range s.round().Asks {
		if a := &s.Open.Asks[i]; a.Status.Pending() && a.Remote != nil {
			wake = earlier(wake, a.Remote.Deadline)
		}
	}
	return wake
}

// TimerAt is WakeAt without the deadlines of asks. By it a store finds whom to wake: a
// session that asks somebody is stepped by whoever drives it, and by every Tick.
func (s *Session) TimerAt() specialist.Time {
	if s.timing == nil || !s.Status.Live() {
		return 0
	}
	at, _ := s.reminder(0)
	return earlier(s.atDue(), at)
}

// earlier returns the earlier of two moments, of which 0 is none.
func earlier(a, b specialist.Time) specialist.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// reminder returns the next reminder of the session, as moment and how long before the
// state is due that is: of several that have come by a moment, the last. The moment is 0 if
// there is none. What would have come before the state was entered never comes.
func (s *Session) reminder(by specialist.Time) (at specialist.Time, before machine.Duration) {
	if s.timing == nil || s.timing.At == 0 || !s.Status.Live() {
		return 0, 0
	}
	after := max(s.timing.reminded, s.EnteredAt())
	for _, r := range s.State.Due.Remind {
		m := s.timing.At - specialist.Time(time.Duration(r).Milliseconds())
		if m > after && (at == 0 || m < at && at > by || m > at && m <= by) {
			at, before = m, r
		}
	}
	return at, before
}

// Reminder returns the reminder to record at a moment; nil if there is none.
func (s *Session) Reminder(now specialist.Time) *Reminded {
	if at, before := s.reminder(now); at != 0 && at <= now {
		return &Reminded{Due: s.timing.At, Before: before}
	}
	return nil
}

// TimerComes reports whether something happens at a moment because the state is due.
func (s *Session) TimerComes(now specialist.Time) bool {
	at := s.atDue()
	return at != 0 && now >= at
}

func applyReminded(s *Session, d *Reminded) {
	if s.timing == nil {
		return
	}
	next := *s.timing
	next.reminded = d.Due - specialist.Time(time.Duration(d.Before).Milliseconds())
	s.timing = &next
}

// timerFailed enters whether the timer's transition could not be executed.
func (s *Session) timerFailed(failed bool) {
	if s.timing == nil || s.timing.failed == failed {
		return
	}
	next := *s.timing
	next.failed = failed
	s.timing = &next
}

// dueForm declares the due of a round.
func dueForm(f *form, v **Due) {
	var d Due
	switch {
	case f.reading:
		f.time("due", &d.At)
		f.opt("dueError", &d.Error)
		if d != (Due{}) {
			*v = &d
		}
	case *v != nil && (*v).Error != "":
		f.w.str("dueError", (*v).Error)
	case *v != nil:
		f.w.time("due", (*v).At)
	}
}

func (d *Reminded) form(f *form) {
	f.time("due", &d.Due)
	before := d.Before.String()
	f.str("before", &before)
	if !f.reading {
		return
	}
	parsed, err := time.ParseDuration(before)
	d.Before = machine.Duration(parsed)
	f.fail("before", err)
}
