package undertaking

import (
	"context"
	"errors"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// An undertaking stops where it cannot go on by itself, and is taken up again by whoever raises what
// it lacks. One that a human has cancelled has ended.

// stopper is in whose name the loop stops undertakings, which a human can resume; one that a human
// has cancelled is cancelled in theirs.
var stopper = session.LocalActor("dialai")

// Cancelled reports whether a human has cancelled an undertaking, and so ended it: the newest entry
// of its log says so.
func Cancelled(ctx context.Context, store session.Store, s *session.Session) (bool, error) {
	if s.Status != session.Stopped || s.Outcome().Code != session.CodeCancelled {
		return false, nil
	}
	by := stopper.Subject
	for rec, err := range store.Records(ctx, s.ID, s.Sequence) {
		if err != nil {
			return false, err
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			return false, err
		}
		for _, e := range events {
			if e.Kind == session.KindEnded {
				by = read[struct{ Actor struct{ Subject string } }](e.Data).Actor.Subject
			}
		}
	}
	return by != stopper.Subject, nil
}

// stop ends the undertaking; whoever resumes the session goes on.
func (l *Loop) stop(ctx context.Context, note string) (bool, error) {
	if err := l.flush(ctx); err != nil {
		return false, err
	}
	s, err := l.c.Runner.Stop(ctx, l.c.Session, runner.Stopping{Note: note, Actor: stopper})
	if errors.Is(err, runner.ErrNotRunning) {
		err = nil
	}
	if s != nil {
		l.s = s
	}
	return true, err
}

// halt stops an undertaking in which those who leave in a row get nowhere.
func (l *Loop) halt(ctx context.Context, note string) (bool, error) {
	if err := l.commit(ctx, who{}, kindHalted, nil); err != nil {
		return false, err
	}
	return l.stop(ctx, note)
}
