package runner

import (
	"context"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Stopping says who cancels a session, and why. Both are required.
type Stopping struct {
	Actor session.Actor
	Note  string
	// If, if it is not nil, is asked about the session that is to be stopped; its error is
	// returned, and nothing is changed.
	If func(*session.Session) error
}

// Stop cancels a session that is not over, one that has failed too: it is stopped with the
// code cancelled, and the asks that are still out are ended and charged as estimated.
// Resume takes it up again. Stop needs
// nothing of what going on would need: specialists, functions and variables may be
// missing, and rules of machine files may have changed. The error wraps [session.ErrNotFound]
// for an id that is not known, and [ErrNotRunning], with the session as it is, if there
// is nothing to cancel: the session has completed or is stopped.
func (r *Runner) Stop(ctx context.Context, id specialist.SessionID, why Stopping) (*session.Session, error) {
	switch {
	case !why.Actor.Known():
		return nil, refuse(nil, "no_actor", "a session is cancelled by nobody: say who does it")
	case strings.TrimSpace(why.Note) == "":
		return nil, refuse(nil, "no_note", "a session is cancelled without a note: say why")
	}
	s, did, err := r.end(ctx, id, &session.Ended{Status: session.Stopped, Code: session.CodeCancelled, Reason: specialist.Clip(why.Note, maxReasoning), Actor: &why.Actor}, why.If)
	if err == nil && !did {
		return s, refuse(ErrNotRunning, "not_running", "Session is not running: %s (%s)", s.ID, s.Status)
	}
	return s, err
}
