package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Taking back. A human who has ruled by mistake says so; nothing that was executed is
// undone, but nobody is to learn from it any more. The log is read up to the round to find
// what the ruling has taught, and the event says it again (session/retracted.go), so that
// stores and ledgers take out exactly what they have put in. It is the author's own word
// until another human has looked at the round: from then on it is a finding.

// A Retracting is a human's word that an executed ruling of their own was a mistake.
type Retracting struct {
	SessionID    specialist.SessionID
	RoundID      string               // the round that the ruling has closed
	SpecialistID machine.SpecialistID // one of those who ruled
	Note         string               // why; required
	Actor        *session.Actor       // who that is, for the record; nil if that is not said
	// If, if it is not nil, is asked about the session as it is; its error is returned, and nothing
	// is changed.
	If func(*session.Session) error
}

// Retract takes back an executed ruling of the human who says so: what it has taught leaves
// weights and contexts from there on, and tests keep what they have counted. The session
// stays where it is; it may have ended. It returns the session as it is then.
//
// Errors: ErrNotFound for a session or a closed round that is not there, ErrForbidden for
// whoever has not ruled on it, ErrIllegal without a note, where no human has decided, and
// where the ruling was taken back before, ErrReviewed once another human has reviewed the
// round, and a store that fails.
func (r *Runner) Retract(ctx context.Context, in Retracting) (*session.Session, error) {
	if err := checkActor(in.Actor); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Note) == "" {
		return nil, refuse(ErrIllegal, "no_note", "a ruling is taken back without a note: say why")
	}
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err != nil {
			return nil, err
		}
		if err := holds(in.If, s); err != nil {
			return s, err
		}
		after, err := r.retractOnce(ctx, s, in)
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", in.SessionID, session.ErrStale)
}

func (r *Runner) retractOnce(ctx context.Context, s *session.Session, in Retracting) (*session.Session, error) {
	c, err := r.ruledRound(ctx, s, in.RoundID)
	if err != nil {
		return nil, err
	}
	if err := c.retractable(s, in); err != nil {
		return nil, err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return nil, err
	}
	d := &session.Retracted{Round: c.executed.Round, Attempt: c.executed.Attempt, SpecialistID: string(in.SpecialistID), Note: specialist.Clip(in.Note, maxReasoning), Actor: in.Actor.Clone()}
	if l := c.learned; l != nil {
		for _, x := range l.Comparisons {
			x.At, x.Retracted = w.at, true
			d.Comparisons = append(d.Comparisons, x)
		}
		if l.Exemplar != nil {
			d.ExemplarID = l.Exemplar.ExemplarID
		}
		if l.Outcome != nil {
			d.Lesson = &trust.Lesson{Retracts: l.Outcome}
		}
	}
	w.emit(d)
	return w.write(ctx)
}

// A ruledRound is a closed round, as the log has it.
type ruledRound struct {
	executed *session.Executed
	learned  *session.Learned // nil if it taught nothing
	reviewed string           // by whom; "" if by nobody
}

// ruledRound reads a closed round from the log.
func (r *Runner) ruledRound(ctx context.Context, s *session.Session, roundID string) (*ruledRound, error) {
	c := &ruledRound{}
	closing := false
	f := &session.Folder{Applied: func(_ int64, ev session.Event, _, _ spend.Book) {
		switch d := ev.Data.(type) {
		case *session.Executed:
			if closing = d.Key(s.ID).ID() == roundID; closing {
				c.executed = d
			}
		case *session.Learned:
			if closing && d.Unruled == nil {
				c.learned = d
			}
		case *session.Reviewed:
			if c.executed != nil && d.Round == c.executed.Round && d.Attempt == c.executed.Attempt {
				c.reviewed = d.SpecialistID
			}
		}
	}}
	for _, err := range r.Fold(ctx, s.ID, f) {
		if err != nil {
			return nil, err
		}
	}
	if c.executed == nil {
		return nil, noClosedRound(s, roundID)
	}
	return c, nil
}

// noClosedRound says that the log of a session has no such closed round, and of one that was
// closed before the session was forked where it is.
func noClosedRound(s *session.Session, roundID string) error {
	for _, e := range s.History() {
		if from := s.Options().ForkedFrom; from != nil && e.Key(s.ID).ID() == roundID {
			refused := refuse(session.ErrNotFound, "before_fork", "round %d was closed in session %s, before this one was forked from it", e.Round, from.SessionID)
			refused.Hint = "its ruling counts there: name that session, and its round " + strconv.Itoa(int(e.Round))
			return refused
		}
	}
	return &session.NotFoundError{What: "Closed round", ID: roundID}
}

// retractable returns an error unless who says so may take the ruling back.
func (c *ruledRound) retractable(s *session.Session, in Retracting) error {
	e := c.executed
	switch {
	case !e.IsHuman:
		refused := refuse(ErrIllegal, "not_ruled", "no human has ruled on round %d: there is nothing to take back", e.Round)
		refused.Hint = "dialai trust audit says what should have been decided"
		return refused
	case string(in.SpecialistID) != e.SpecialistID && !slices.Contains(e.Authors, string(in.SpecialistID)):
		return refuse(ErrForbidden, "not_author", "%s has not ruled on round %d: only who has can take that back", in.SpecialistID, e.Round)
	case s.Retracted(e.Round) != nil:
		return refuse(ErrIllegal, "retracted", "the ruling on round %d was taken back before, by %s", e.Round, s.Retracted(e.Round).SpecialistID)
	case c.reviewed != "":
		return refuse(ErrReviewed, "reviewed", "%s has reviewed round %d: what two humans made of it stands", c.reviewed, e.Round)
	}
	return nil
}
