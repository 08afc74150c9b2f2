package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// SetDriver has somebody else carry a session on by itself from now on; by is who says so, nil if that is not said.
// Its round, whom it has asked and what it waits for stay. A step that is under way ends as it would have. It
// returns the session as it is then; one that is carried on so already, or has completed, it leaves as it is.
//
// Errors: [session.ErrNotFound], [ErrIllegal] for a driver that is none, [ErrNotRunning] for a session out of which
// payloads were erased, and a store that fails.
func (r *Runner) SetDriver(ctx context.Context, id specialist.SessionID, to session.Driver, by *session.Actor) (*session.Session, error) {
	if err := checkDriver(to); err != nil {
		return nil, err
	}
	if err := checkActor(by); err != nil {
		return nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case s.Erased():
			return s, gone(id)
		case s.Options().Driver == to, s.Status == session.Completed:
			return s, nil
		}
		t := &commit{}
		t.reset(r, s)
		t.emit(&session.DriverChanged{Driver: to, Actor: by.Clone()})
		after, err := t.write(ctx)
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

// checkDriver refuses a driver that is none.
func checkDriver(d session.Driver) error {
	if d.Valid() {
		return nil
	}
	return refuse(ErrIllegal, "unknown_driver", "the driver is %q, it may be %s, %s or %s", string(d), session.DriverPool, session.DriverTemporal, session.DriverNone)
}
