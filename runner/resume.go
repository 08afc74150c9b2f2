package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

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
// cleared or a limit raised. What was spent stays spent. One that is quarantined ([session.WorkStore]) is handed out again. The error wraps [ErrQuota]
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
			return s, r.free(ctx, s)
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

// free has a live session carried on again that the store hands out to nobody any more.
func (r *Runner) free(ctx context.Context, s *session.Session) error {
	if work, ok := r.store.(session.WorkStore); ok && s.Status.Live() {
		return work.Free(ctx, s.ID)
	}
	return nil
}
