package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"go.temporal.io/sdk/activity"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What updates come to. The engine decides, inside its compare-and-swap; what it refuses is a result, with its code, and
// no error of the activity. An activity may be run again though the engine has done what it says, by a try of which
// nobody heard: that is looked for where a second try is refused.

// does runs what an update asks for, of a session that is there. did reports of a second try, which was refused, whether the
// first has done it.
func (a *activities) does(ctx context.Context, in Input, do func(specialist.SessionID) (*session.Session, error), did func(*session.Session) bool) (Done, error) {
	id, err := session.ParseID(in.SessionID)
	if err != nil {
		return Done{}, told(ctx, &session.NotFoundError{What: "Session", ID: in.SessionID})
	}
	defer beat(ctx)()
	s, err := do(id)
	if err == nil {
		return Done{Done: true, Status: s.Status.String()}, nil
	}
	code, refused := refusedAs(err)
	if !refused {
		return Done{}, told(ctx, err)
	}
	if activity.GetInfo(ctx).Attempt > 1 {
		if s, err := a.r.Session(ctx, id); err == nil && did(s) {
			return Done{Done: true, Status: s.Status.String()}, nil
		}
	}
	return Done{Code: code}, nil
}

// refusedAs returns the code of what the engine refuses.
func refusedAs(err error) (code string, refused bool) {
	if e, ok := errors.AsType[*runner.Error](err); ok {
		return cmp.Or(e.Code, "refused"), true
	}
	if errors.Is(err, runner.ErrReviewed) {
		return "reviewed", true
	}
	if errors.Is(err, session.ErrNotFound) {
		return "not_found", true
	}
	return "", false
}

func (a Actor) known() *session.Actor { return &session.Actor{Subject: a.Subject, Method: a.Method} }

func (a *activities) decide(ctx context.Context, in Input, r Ruling) (Ruled, error) {
	var ruled runner.Arbitration
	done, err := a.does(ctx, in, func(id specialist.SessionID) (s *session.Session, err error) {
		ruled, err = a.r.Decide(ctx, runner.Ruling{SessionID: id, RoundID: r.RoundID, QuestionDigest: r.QuestionDigest, SpecialistID: machine.SpecialistID(r.SpecialistID), TransitionName: r.TransitionName, Actor: r.Actor.known()})
		return ruled.Session, err
	}, func(s *session.Session) bool { return hasRuled(s, r) })
	switch {
	case err != nil || !done.Done:
		return Ruled{Code: done.Code}, err
	case ruled.Session != nil && !ruled.Executed && !hasRuled(ruled.Session, r):
		return Ruled{Status: done.Status, Code: cmp.Or(ruled.Session.Standing().Code, "refused")}, nil
	}
	return Ruled{Executed: true, Status: done.Status}, nil
}

// hasRuled reports whether a ruling was executed.
func hasRuled(s *session.Session, r Ruling) bool {
	return slices.ContainsFunc(s.History(), func(e *session.Executed) bool {
		by := e.SpecialistID == r.SpecialistID || slices.Contains(e.Authors, r.SpecialistID)
		return by && e.IsHuman && e.Transition.Name == r.TransitionName && e.Key(s.ID).ID() == r.RoundID
	})
}

func (a *activities) propose(ctx context.Context, in Input, p Proposal) (Done, error) {
	return a.does(ctx, in, func(id specialist.SessionID) (*session.Session, error) {
		if s, err := a.r.Session(ctx, id); err == nil && activity.GetInfo(ctx).Attempt > 1 && hasProposed(s, p) {
			return s, nil // or it would be proposed twice
		}
		_, s, err := a.r.Propose(ctx, runner.Submission{SessionID: id, RoundID: p.RoundID, QuestionDigest: p.QuestionDigest, SpecialistID: machine.SpecialistID(p.SpecialistID), TransitionName: p.TransitionName, Actor: p.Actor.known()})
		return s, err
	}, func(s *session.Session) bool { return hasProposed(s, p) })
}

// hasProposed reports whether a proposal is in its round, and that is open.
func hasProposed(s *session.Session, p Proposal) bool {
	return s.Key().ID() == p.RoundID && slices.ContainsFunc(s.Proposals(), func(had *specialist.Proposal) bool {
		return had.SpecialistID == p.SpecialistID && had.Transition.Name == p.TransitionName
	})
}

func (a *activities) resume(ctx context.Context, in Input, r Resuming) (Done, error) {
	return a.does(ctx, in, func(id specialist.SessionID) (*session.Session, error) {
		return a.r.Resume(ctx, id, runner.ResumeOptions{Actor: r.Actor.known(), SpecialistID: machine.SpecialistID(r.SpecialistID), RetryFailed: r.RetryFailed, Clear: r.Clear, If: func(s *session.Session) error {
			if s.Key().ID() != r.RoundID {
				return &runner.Error{Code: runner.CodeStaleRound, Message: "it is in another round"}
			}
			return nil
		}})
	}, func(s *session.Session) bool { return s.Status.Live() })
}

func (a *activities) review(ctx context.Context, in Input, r Reviewing) (Done, error) {
	return a.does(ctx, in, func(id specialist.SessionID) (*session.Session, error) {
		_, err := a.r.Review(ctx, runner.Reviewing{SessionID: id, RoundID: r.RoundID, SpecialistID: machine.SpecialistID(r.SpecialistID), TransitionName: r.TransitionName, Actor: r.Actor.known()})
		if err != nil {
			return nil, err
		}
		return a.r.Session(ctx, id)
	}, func(s *session.Session) bool { return a.hasReviewed(ctx, s, r) })
}

// hasReviewed reports whether a review is in the log.
func (a *activities) hasReviewed(ctx context.Context, s *session.Session, r Reviewing) (did bool) {
	for rec, err := range a.r.Store().Records(ctx, s.ID, 0) {
		if err != nil {
			return false
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			return false
		}
		for _, e := range events {
			var was Reviewing
			if e.Kind == session.KindReviewed && json.Unmarshal(e.Data, &was) == nil {
				did = did || was.SpecialistID == r.SpecialistID && was.TransitionName == r.TransitionName && was.RoundID == r.RoundID
			}
		}
	}
	return did
}
