package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Forking says where another session goes on from. The zero value forks from the newest
// event, under an id that the engine makes, by nobody in particular.
type Forking struct {
	At    int64                // the last event that comes along, which has to be the last of its commit; 0 is the newest
	ID    specialist.SessionID // of the fork; the zero ID is one that the engine makes (Config.NewID)
	Actor *session.Actor       // who forks it, for the record; nil if that is not said
	// Driver is as in StartOptions.
	Driver session.Driver
}

// Fork makes a session that goes on from where another one stood after a commit: with its
// definition, its history, its data, and what it had spent, but with a seed and a clock of
// its own, and nobody else's asks, rulings that wait, or reviews. Who has answered in the
// open round is not asked again, unless that is withheld, and the round teaches nothing.
// The fork is not run, and the other session stays as it is.
//
// Errors: ErrNotFound, [ErrIllegal] where no commit ends at the event, [ErrNotRunning] where
// the session has completed by then, [session.ErrExists] if there is a session of the id,
// [ErrQuota] if its tenant may have no more at a time, and a store that fails.
func (r *Runner) Fork(ctx context.Context, id specialist.SessionID, o Forking) (*session.Session, error) {
	if err := checkActor(o.Actor); err != nil {
		return nil, err
	}
	if err := checkDriver(o.Driver); err != nil {
		return nil, err
	}
	if o.ID == (specialist.SessionID{}) {
		o.ID = r.config.NewID()
	} else if err := r.unknown(ctx, o.ID); err != nil {
		return nil, err
	}
	switch s, err := r.load(ctx, id); {
	case err != nil:
		return nil, err
	case s.Erased():
		return nil, gone(id)
	}
	k, err := r.readUpTo(ctx, id, o.At)
	if err != nil {
		return nil, err
	}
	if err := r.withhold(ctx, id, k); err != nil {
		return nil, err
	}
	if k.Current.Status == session.Completed {
		refused := refuse(ErrNotRunning, "completed", "session %s has completed at event %d: nothing goes on from there", id, k.Current.Sequence)
		refused.Hint = "give an earlier event; dialai log shows them"
		return nil, refused
	}
	from, now := k.Session(), r.now()
	p, err := r.planPartial(ctx, from.Program)
	if err != nil {
		return nil, err
	}
	c, err := k.Fork(o.ID, o.Actor, o.Driver, now, p.Cases.Due(ctx, from, now))
	if err != nil {
		return nil, err
	}
	if r.quota != nil && c.After.Status.Live() {
		if err := r.admitted(ctx, c.After); err != nil {
			return nil, err
		}
	}
	if err := r.commitTraced(ctx, c); err != nil {
		if r.quota != nil && !errors.Is(err, session.ErrExists) {
			r.quota.Refuse(r.scope(c.After))
		}
		return nil, fmt.Errorf("forking session %s: %w", id, err)
	}
	r.announce(c)
	return c.After, nil
}

// withhold keeps from a fork what is withheld by now of the round in which it begins: at an
// earlier event it may not have been yet.
func (r *Runner) withhold(ctx context.Context, id specialist.SessionID, k *session.Forker) error {
	s, err := r.load(ctx, id)
	if err != nil {
		return err
	}
	rounds, err := r.WithheldRounds(ctx, s, "")
	k.Withheld = rounds[k.Current.Round] != ""
	return err
}

// readUpTo reads the log of a session up to the commit that ends at an event, or, with 0, to
// its end.
func (r *Runner) readUpTo(ctx context.Context, id specialist.SessionID, at int64) (*session.Forker, error) {
	k := &session.Forker{}
	k.Programs, k.Definition = r.programs, r.definition(ctx, id)
	for rec, err := range r.store.Records(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		before := k.Current.Sequence
		if err := k.Add(rec.Events); err != nil {
			return nil, session.Corrupt("the log of session "+id.String(), err)
		}
		switch end := k.Current.Sequence; {
		case at > 0 && end == at:
			return k, nil
		case at > 0 && end > at && before == 0:
			return nil, refuse(ErrIllegal, "inside_commit", "event %d is inside a commit: fork at event %d, where the first ends", at, end)
		case at > 0 && end > at:
			return nil, refuse(ErrIllegal, "inside_commit", "event %d is inside a commit: fork at event %d, or at event %d", at, before, end)
		}
	}
	if at < 0 || at > k.Current.Sequence {
		return nil, refuse(ErrIllegal, "no_event", "session %s has no event %d: its last is event %d", id, at, k.Current.Sequence)
	}
	return k, nil
}
