package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Withdrawal says which ask nobody will answer any more, and why.
type Withdrawal struct {
	SessionID    specialist.SessionID
	RoundID      string // the round the ask is of; "" means the open one
	SpecialistID machine.SpecialistID
	Code         string           // of the failure: small letters, digits and _, at most 64
	Note         string           // what a human reads
	Usage        specialist.Usage // what it has cost nonetheless
}

// failureCode is the form of a code that others may give a failure.
var failureCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Withdraw ends an ask that is out as failed, with what it has cost: whoever drives a coding
// agent says so that its turn was held, its process is gone for good, or that it ended
// without a move. An answer that comes nonetheless counts for nothing. It decides nothing: the next
// Step sees what is left of the round.
//
// Errors: [session.ErrNotFound] if that specialist has no ask out in that round, which is so
// after an answer too; [ErrIllegal] for a code of another form; a store that fails.
func (r *Runner) Withdraw(ctx context.Context, of Withdrawal) (*session.Session, error) {
	if !failureCode.MatchString(of.Code) {
		return nil, refuse(ErrIllegal, "bad_code", "code is %q, it may be small letters, digits and _, at most 64", specialist.Clip(of.Code, 128))
	}
	for range maxRaces {
		s, err := r.load(ctx, of.SessionID)
		if err != nil {
			return nil, err
		}
		if s, err = r.withdrawn(ctx, s, of); !errors.Is(err, session.ErrStale) {
			return s, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", of.SessionID, session.ErrStale)
}

// withdrawn is Withdraw on a session as it is now.
func (r *Runner) withdrawn(ctx context.Context, s *session.Session, of Withdrawal) (*session.Session, error) {
	missing := &session.NotFoundError{What: "Ask", ID: string(of.SpecialistID)}
	if !s.Status.Live() || of.RoundID != "" && of.RoundID != s.Key().ID() {
		return s, missing
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return s, err
	}
	a := w.open.Ask(string(of.SpecialistID), machine.Proposer)
	if a == nil || !a.Status.Pending() || a.Remote == nil {
		return s, missing
	}
	w.recordAnswer(&response{
		key: s.Key(), id: a.SpecialistID, source: a.Source, ask: a.Index, repeat: a.Remote.Repeat, estimate: a.Remote,
		answer: specialist.Answer{Usage: of.Usage}, code: of.Code, message: of.Note,
	})
	cost := w.paidTo(a.SpecialistID)
	after, err := w.write(ctx)
	if err != nil {
		return s, err
	}
	return after, r.corrected(ctx, s, a.SpecialistID, cost)
}
