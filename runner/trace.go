package runner

import (
	"context"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Part is a part of the work on a session, for whoever wants to see how long it takes.
type Part struct {
	Name        string // one of the names below
	Session     specialist.SessionID
	MachineName string
	State       string
	Round       int32
}

// The names of parts. A step asks, decides, passes the gate (where guards may ask, too) and
// commits, some of it several times or not at all; what is no step only commits.
const (
	PartStep   = "dialai.step"
	PartAsk    = "ask"
	PartDecide = "decide"
	PartGate   = "gate"
	PartCommit = "commit"
)

// parts are those of the states of a round; opening and ending belong to the step itself.
var parts = [roundStates]string{asking: PartAsk, receiving: PartAsk, deciding: PartDecide, inquiring: PartGate, executing: PartGate}

func endNothing(error) {}

// trace tells whoever wants to know that a part begins.
func (r *Runner) trace(ctx context.Context, name string, s *session.Session) (context.Context, func(error)) {
	if r.config.Trace == nil {
		return ctx, endNothing
	}
	return r.config.Trace(ctx, Part{Name: name, Session: s.ID, MachineName: s.Machine().Name(), State: s.State.Name, Round: s.Round})
}

// doTraced is do, told to whoever wants to know.
func (w *engine) doTraced(ctx context.Context, at roundState) (seen roundInput, err error) {
	if parts[at] == "" || w.r.config.Trace == nil {
		return w.do(ctx, at)
	}
	ctx, end := w.r.trace(ctx, parts[at], w.s)
	defer func() { end(err) }()
	return w.do(ctx, at)
}

// commitTraced commits to the store, told to whoever wants to know.
func (r *Runner) commitTraced(ctx context.Context, c *session.Change) error {
	if r.config.Trace == nil {
		return r.store.Commit(ctx, c)
	}
	ctx, end := r.trace(ctx, PartCommit, c.After)
	err := r.store.Commit(ctx, c)
	end(err)
	return err
}
