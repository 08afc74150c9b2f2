package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// WithheldRounds says in which rounds of a session what was proposed, the verdicts on it
// and failed asks are kept from a viewer, who is "" for nobody in particular, and why, by
// the number of the round: in the open one as [session.Session.Withheld] says, and in
// closed ones that wait for a review. Those are open to who has decided them or has
// looked, and to everybody once no other human is left who could review them. What was
// executed is no secret in any.
func (r *Runner) WithheldRounds(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (map[int32]string, error) {
	rounds := map[int32]string{}
	if why := s.Withheld(viewer); why != "" {
		rounds[s.Round] = why
	}
	if len(s.Reviews()) == 0 {
		return rounds, nil
	}
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	for _, v := range s.Reviews() {
		if why := p.States[v.State.Index].Withheld(v, viewer); why != "" {
			rounds[v.Key.Round] = why
		}
	}
	return rounds, nil
}

// Reveal returns the question of a session's open round with all that is withheld
// from viewer, who is "" if it is not known who looks. The look is recorded: later
// rulings of the viewer in the round, and of everybody if it is not known who looked,
// are not blind. Where nothing is withheld from the viewer, nothing is recorded.
//
// Errors: ErrNotFound, ErrForbidden for a viewer who may not rule on the round, and
// a store that fails. by is who looks, nil if that is not said.
func (r *Runner) Reveal(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID, by *session.Actor) (Question, *session.Session, error) {
	if err := checkActor(by); err != nil {
		return Question{}, nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return Question{}, nil, err
		}
		q, after, err := r.reveal(ctx, s, viewer, by)
		if !errors.Is(err, session.ErrStale) {
			return q, after, err
		}
	}
	return Question{}, nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) reveal(ctx context.Context, s *session.Session, viewer machine.SpecialistID, by *session.Actor) (Question, *session.Session, error) {
	if s.Withheld(viewer) == "" || viewer == "" && s.RevealedTo("") {
		q, err := r.questionFor(ctx, s, viewer, "")
		return q, s, err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return Question{}, nil, err
	}
	if viewer != "" && !w.mayRule(string(viewer)) {
		return Question{}, nil, refuse(ErrForbidden, "not_human", "%q may not rule on the round, so a look of theirs would say nothing of who does", viewer)
	}
	w.emit(&session.Revealed{RoundID: s.Key().ID(), SpecialistID: string(viewer), Actor: by.Clone()})
	after, err := w.write(ctx)
	if err != nil {
		return Question{}, nil, err
	}
	q, err := r.questionFor(ctx, after, viewer, "")
	return q, after, err
}

// RevealReview records that somebody deliberately looks at a closed round that waits
// for a human's review: reviews of it by the viewer, and by everybody if viewer is "",
// are not blind from there on. Nothing is recorded of a round that waits for none, or of
// a viewer who has decided it before or has looked already. It returns the session as it
// is then.
//
// Errors: ErrNotFound, ErrForbidden for a viewer who may not review the round, and a
// store that fails. by is who looks, nil if that is not said.
func (r *Runner) RevealReview(ctx context.Context, id specialist.SessionID, roundID string, viewer machine.SpecialistID, by *session.Actor) (*session.Session, error) {
	if err := checkActor(by); err != nil {
		return nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		after, err := r.revealReview(ctx, s, &session.Revealed{RoundID: roundID, SpecialistID: string(viewer), Actor: by.Clone()})
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) revealReview(ctx context.Context, s *session.Session, d *session.Revealed) (*session.Session, error) {
	v, viewer := s.ReviewOf(d.RoundID), machine.SpecialistID(d.SpecialistID)
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
	w.emit(d)
	return w.write(ctx)
}
