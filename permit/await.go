package permit

import (
	"context"
	"errors"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// lookEvery is how often one who waits for a human looks whether there was a ruling, which
// may come from any process.
const lookEvery = 300 * time.Millisecond

// Sessions carries sessions on. A [runner.Runner] is one.
type Sessions interface {
	Session(ctx context.Context, id specialist.SessionID) (*session.Session, error)
	Run(ctx context.Context, id specialist.SessionID, o runner.RunOptions) (runner.Result, error)
}

// Await carries a session on, or watches whoever does, until it has ended: completed, failed
// or stopped. waits is called once when a human is waited for first; its error ends Await, and
// so does the end of patient while a human is waited for, with its cause, and that of ctx at
// any time. The session is as it was last seen, also beside an error.
func Await(ctx, patient context.Context, r Sessions, s *session.Session, waits func(*session.Session) error) (*session.Session, error) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for told := false; ; {
		impatient := (<-chan struct{})(nil)
		switch s.Status {
		case session.Completed, session.Failed, session.Stopped:
			return s, nil
		case session.Running:
			result, err := r.Run(ctx, s.ID, runner.RunOptions{Wait: true, Timers: true})
			if err != nil && !errors.Is(err, runner.ErrStaleRound) {
				return s, err
			}
			if err == nil {
				if s = result.Session; s.Status != session.Running {
					continue
				}
			}
		case session.NeedsHuman:
			if !told {
				told = true
				if err := waits(s); err != nil {
					return s, err
				}
			}
			impatient = patient.Done()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-impatient:
			return s, context.Cause(patient)
		}
		fresh, err := r.Session(ctx, s.ID)
		if err != nil {
			return s, err
		}
		s = fresh
	}
}
