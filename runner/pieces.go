package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The pieces of a step, for programs that ask with workers of their own: Asks hands out
// whom to ask, Answer takes what came of one ask, and Step, once all is in, has the arbiter
// decide and passes the gate (or Decide does, for a ruling). Each is a commit of its own,
// so any process may do any of them, and any may be lost in between. What Asks has handed
// out is for Step an answer that will come later, until its deadline.

// An AskRef names one request of one ask. An answer counts only as the first to the
// newest request.
type AskRef struct {
	Round        specialist.RoundKey
	Index        int32 // of the ask within the round
	Repeat       int32 // how often it was asked before by a process that is lost
	SpecialistID string
}

// An Asking is an ask that was handed out, with all that a worker needs to make it.
type Asking struct {
	AskRef
	// Question is what is asked. Its Ask has the id by which a service knows a repeated
	// request. It may be read concurrently.
	Question  specialist.Question
	Deadline  specialist.Time      // after which nobody waits
	CallLimit specialist.CallLimit // how many calls the budget has set aside; zero for no limit
}

// Asks says whom to ask now in the open round of a session, and hands these asks out: they
// are recorded as asks that will be answered later, and hold what they are expected to
// cost. It returns those specialists outside this process who are due, as Step would ask
// them: all, the next wave, or, in mode eager, one. It is empty if none is due: all are
// out or in, the round is settled, a budget has no room (which is recorded), or the
// session does not run; then Step says what follows. Functions of the program are left to
// Step. What was handed out before is not handed out again: it is among
// [session.Session.OpenAsks] until it is answered, or fails at its deadline.
//
// Errors: [session.ErrNotFound], a [*StartError], a store that fails, a ctx that is done.
func (r *Runner) Asks(ctx context.Context, id specialist.SessionID) (list []Asking, err error) {
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if err = r.contain(id, func() (err error) { list, err = r.handOut(ctx, s); return err }); !errors.Is(err, session.ErrStale) {
			return list, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) handOut(ctx context.Context, s *session.Session) ([]Asking, error) {
	w := r.newEngine(s)
	defer w.end()
	if seen, err := w.opening(ctx); seen != seenReady || err != nil {
		return nil, err
	}
	ask, err := w.dueOutside(ctx)
	if err != nil {
		return nil, err
	}
	var requests []request
	if ask, err = w.admit(ctx, ask); err != nil {
		return nil, err
	}
	if len(ask) > 0 {
		if requests, err = w.recordAsks(ctx, ask); err != nil {
			return nil, err
		}
	}
	until := w.at + specialist.Time(time.Duration(w.now.State.Solicit.AsyncTimeout).Milliseconds())
	for _, req := range requests {
		w.accept(w.open.At(req.index), until)
	}
	if err := w.save(ctx); err != nil {
		return nil, err
	}
	q := questionOf(w.s, w.s.Notices(), &lessons.Past{Store: r.store, Session: w.s})
	list := make([]Asking, len(requests))
	for i, req := range requests {
		req.ticket.Start() // until it is answered it is charged as expected
		list[i] = Asking{AskRef{q.Key, req.index, req.estimate.Repeat, req.member.SpecialistID}, q, until, req.limit}
		list[i].Question.Self, list[i].Question.Ask = req.member.SpecialistID, &req.ask
	}
	return list, nil
}

// dueOutside returns those outside this process who are to be asked next.
func (w *engine) dueOutside(ctx context.Context) ([]*planning.Member, error) {
	due, err := w.due(ctx)
	if err != nil {
		return nil, err
	}
	due = slices.DeleteFunc(due, (*planning.Member).Local)
	if settled, err := w.settled(ctx); settled || len(due) == 0 || err != nil {
		return nil, err
	}
	if w.mode() != machine.Eager {
		return w.wave(ctx, due)
	}
	next, err := w.favourite(ctx, due)
	return []*planning.Member{next}, err
}

// Answer takes what came of one ask: an answer, or why there is none. An answer that is
// not legal has failed, which is recorded and returned as an error that wraps ErrIllegal.
// One that does not count is recorded with its cost, and the error wraps ErrStaleRound,
// with the code that the log has: late if the round is over, superseded if the ask has
// been answered before or given up, taken_over if the request was repeated since. So an
// answer may be sent as often as one likes: it counts once, and an ask is charged once,
// by the costlier of two answers. failed means what a proposer's error means:
// [specialist.ErrAccepted] says that the answer will come later.
//
// Other errors: [session.ErrNotFound] for what was never asked, and a store that fails.
func (r *Runner) Answer(ctx context.Context, ask AskRef, a specialist.Answer, failed error) (*specialist.Proposal, *session.Session, error) {
	for range maxRaces {
		s, err := r.load(ctx, ask.Round.Session)
		if err != nil {
			return nil, nil, err
		}
		p, after, err := r.answered(ctx, s, ask, a, failed)
		if !errors.Is(err, session.ErrStale) {
			return p, after, err
		}
	}
	return nil, nil, fmt.Errorf("session %s: %w", ask.Round.Session, session.ErrStale)
}

// answered is Answer on a session as it is now.
func (r *Runner) answered(ctx context.Context, s *session.Session, ask AskRef, a specialist.Answer, failed error) (*specialist.Proposal, *session.Session, error) {
	h := response{key: ask.Round, id: ask.SpecialistID, ask: ask.Index, repeat: ask.Repeat, answer: a}
	if failed != nil {
		h.fail(ctx, failed)
	}
	return r.recordResponse(ctx, s, ask, h)
}

// recordResponse records what came of one ask on a session as it is now.
func (r *Runner) recordResponse(ctx context.Context, s *session.Session, ask AskRef, h response) (*specialist.Proposal, *session.Session, error) {
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return nil, s, err
	}
	if !w.placed(&h) {
		return nil, s, &session.NotFoundError{What: "Ask", ID: ask.Round.AskID(ask.Index)}
	}
	h.until = w.commit.at + specialist.Time(time.Duration(s.State.Solicit.AsyncTimeout).Milliseconds())
	code := w.now.Refuses(&w.open, ask.Round, ask.Index, ask.Repeat)
	w.recordAnswer(&h)
	failure, cost := w.failureOf(ask.SpecialistID), w.paidTo(ask.SpecialistID)
	after, err := w.write(ctx)
	switch {
	case err != nil:
		return nil, s, err
	case code != "":
		return nil, after, refuse(ErrStaleRound, code, "the answer of %s counts for nothing (%s): its cost is recorded", ask.SpecialistID, code)
	}
	if err := r.corrected(ctx, s, ask.SpecialistID, cost); err != nil {
		return nil, after, err
	}
	switch {
	case failure != nil:
		return nil, after, refuse(ErrIllegal, failure.Code, "%s", failure.Message)
	case h.accepted:
		return nil, after, specialist.ErrAccepted
	}
	return after.Open.Proposal(ask.SpecialistID), after, nil
}

// placed fills in what the round knows of the ask that an answer is to, and reports
// whether it may have been made: of a former round only accounts are kept.
func (w *engine) placed(h *response) bool {
	now := w.now.Key()
	if h.key != now {
		return h.key.Round < now.Round || h.key.Round == now.Round && h.key.Attempt < now.Attempt
	}
	a := w.open.At(h.ask)
	if a == nil || a.Remote == nil || a.SpecialistID != h.id || a.Role != machine.Proposer {
		return a == nil && !w.now.Status.Live() // its round ended with the session
	}
	h.source, h.estimate = a.Source, a.Remote
	return true
}
