package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Reveal returns the question of a session's open round with all that is withheld
// from viewer, who is "" if it is not known who looks. The look is recorded: later
// rulings of the viewer in the round, and of everybody if it is not known who looked,
// are not blind. Where nothing is withheld from the viewer, nothing is recorded.
//
// Errors: ErrNotFound, ErrForbidden for a viewer who may not rule on the round, and
// a store that fails.
func (r *Runner) Reveal(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID) (Question, *session.Session, error) {
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return Question{}, nil, err
		}
		q, after, err := r.reveal(ctx, s, viewer)
		if !errors.Is(err, session.ErrStale) {
			return q, after, err
		}
	}
	return Question{}, nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) reveal(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (Question, *session.Session, error) {
	if s.Withheld(viewer) == "" || viewer == "" && s.RevealedTo("") {
		q, err := r.questionFor(ctx, s, viewer, true)
		return q, s, err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return Question{}, nil, err
	}
	if viewer != "" && !w.mayRule(string(viewer)) {
		return Question{}, nil, refuse(ErrForbidden, "not_human", "%q may not rule on the round, so a look of theirs would say nothing of who does", viewer)
	}
	w.emit(&session.Revealed{RoundID: s.Key().ID(), SpecialistID: string(viewer)})
	after, err := w.write(ctx)
	if err != nil {
		return Question{}, nil, err
	}
	q, err := r.questionFor(ctx, after, viewer, true)
	return q, after, err
}

// RevealReview records that somebody deliberately looks at a closed round that waits
// for a human's review: reviews of it by the viewer, and by everybody if viewer is "",
// are not blind from there on. Nothing is recorded of a round that waits for none, or of
// a viewer who has decided it before or has looked already. It returns the session as it
// is then.
//
// Errors: ErrNotFound, ErrForbidden for a viewer who may not review the round, and a
// store that fails.
func (r *Runner) RevealReview(ctx context.Context, id specialist.SessionID, roundID string, viewer machine.SpecialistID) (*session.Session, error) {
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		after, err := r.revealReview(ctx, s, roundID, viewer)
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) revealReview(ctx context.Context, s *session.Session, roundID string, viewer machine.SpecialistID) (*session.Session, error) {
	v := s.ReviewOf(roundID)
	if v == nil || v.LookedAt(viewer) || viewer != "" && v.Seen(viewer) {
		return s, nil
	}
	if viewer != "" {
		if err := r.mayReview(ctx, s, v, viewer); err != nil {
			return nil, err
		}
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return nil, err
	}
	w.emit(&session.Revealed{RoundID: roundID, SpecialistID: string(viewer)})
	return w.write(ctx)
}
