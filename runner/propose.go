package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Proposals that are handed in. proposeTo sees that the session is live, that whoever
// proposes takes part and is switched on, and that the proposal is about the present
// round and question; then it takes the same way as an answer that was asked for
// (answers.go). Without a transition the specialist is asked now: with a budget, a
// recorded ask and a flight like any other, and what was given with the submission wins
// over what it says.
//
// One that is for another round is refused, but the cost that it names is recorded.
// A proposal that loses a race is made again to the session as it is then, and nobody
// is asked twice for it.

// A Submission is a proposal handed in from outside: DIAL's submitProposal.
type Submission struct {
	SessionID      specialist.SessionID
	SpecialistID   machine.SpecialistID
	RoundID        string // the round it is for, or CurrentRound; required
	QuestionDigest string // of the question it is for, or its first DigestPrefix hex digits or more; "" for any of the round
	TransitionName string // "" has the specialist asked
	ToState        string
	Reasoning      string
	MetaJSON       json.RawMessage
	Usage          specialist.Usage
	Model          string
	ToolCalls      []specialist.ToolCall
	Actor          *session.Actor // who hands it in, for the record; nil if that is not said
	// If is as in a Ruling. Where the specialist is asked it is called before the ask: what
	// was asked and paid for is recorded.
	If func(*session.Session) error
}

const staleRound = "Round ID mismatch - decision cycle already completed"

// Propose adds a proposal to the current round. A specialist has one proposal in
// a round: a later one replaces it, and the log keeps both. Without a
// TransitionName the specialist is asked now, and what it answers is proposed;
// members that are given win over its answer's.
//
// Refusals are errors that wrap ErrNotFound, ErrNotRunning, ErrForbidden,
// ErrStaleRound or ErrIllegal; they leave the session as it was, but for what an AI's
// proposal for another round has cost: that is recorded. The error is
// [specialist.ErrAccepted] if the specialist was asked and will answer later.
func (r *Runner) Propose(ctx context.Context, in Submission) (*specialist.Proposal, *session.Session, error) {
	if err := cmp.Or(in.pin().check(), checkActor(in.Actor)); err != nil {
		return nil, nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err == nil {
			err = holds(in.If, s)
		}
		if err != nil {
			return nil, s, err
		}
		var p *specialist.Proposal
		var after *session.Session
		err = r.containApart(s.ID, func() (err error) {
			p, after, err = r.proposeTo(ctx, s, in)
			return err
		})
		if !errors.Is(err, session.ErrStale) {
			return p, after, err
		}
	}
	return nil, nil, fmt.Errorf("session %s: %w", in.SessionID, session.ErrStale)
}

func (r *Runner) proposeTo(ctx context.Context, s *session.Session, in Submission) (*specialist.Proposal, *session.Session, error) {
	if !s.Status.Live() {
		return nil, s, refuse(ErrNotRunning, "not_running", "Session is not running: %s (%s)", s.ID, s.Status)
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return nil, s, err
	}
	m, err := w.participant(in.SpecialistID)
	if err != nil {
		return nil, s, err
	}
	seen, err := r.fits(ctx, s, in.pin())
	if err != nil {
		return nil, s, w.refuseStale(ctx, m, in, err)
	}
	if in.TransitionName == "" {
		if w.plan.Missing != nil {
			return nil, s, w.plan.Missing
		}
		return r.proposeAsked(ctx, s, m, in)
	}
	h := response{key: s.Key(), id: m.SpecialistID, human: m.IsHuman, actor: in.Actor.Clone(), seen: seen, answer: in.answer()}
	chosen, err := allowed(s, &h.answer)
	if err == nil && m.IsHuman { // whose proposal may execute it
		err = in.pin().allows(chosen)
	}
	if err != nil {
		return nil, s, err
	}
	w.recordAnswer(&h)
	after, err := w.write(ctx)
	if err != nil {
		return nil, s, err
	}
	return after.Open.Proposal(m.SpecialistID), after, nil
}

// pin returns what the proposal is about.
func (in *Submission) pin() pin { return pin{in.RoundID, in.QuestionDigest, in.SpecialistID} }

func (in *Submission) answer() specialist.Answer {
	return specialist.Answer{
		TransitionName: in.TransitionName, ToState: in.ToState, Reasoning: in.Reasoning, MetaJSON: in.MetaJSON,
		Usage: in.Usage, Model: in.Model, ToolCalls: in.ToolCalls,
	}
}

// participant returns the proposer of that id if it may propose in the present
// state.
func (t *round) participant(id machine.SpecialistID) (*planning.Member, error) {
	members := t.members()
	for i := range members {
		if members[i].SpecialistID == string(id) {
			return enabled(&members[i])
		}
	}
	if m := t.here.Find(string(id)); m != nil {
		return enabled(m)
	}
	switch t.plan.Role(string(id)) {
	case "":
		return nil, &session.NotFoundError{What: "Specialist", ID: string(id)}
	case machine.Arbiter:
		return nil, refuse(ErrForbidden, "not_a_proposer", "Specialist %s is not a proposer", id)
	}
	return nil, refuse(ErrForbidden, "not_a_member", "Specialist %s does not take part in state %q", id, t.now.State.Name)
}

func enabled(m *planning.Member) (*planning.Member, error) {
	if m.Off {
		return nil, refuse(ErrForbidden, "disabled", "Specialist %s is disabled", m.SpecialistID)
	}
	return m, nil
}

// refuseStale logs what an AI's proposal for another round has cost, if it says so,
// and returns the refusal. Whoever was asked in that round is charged for the ask, once;
// what a service says again, or unasked, after its round costs nothing more.
func (w *engine) refuseStale(ctx context.Context, m *planning.Member, in Submission, refused error) error {
	if m.IsHuman || in.Usage.Given == 0 || !errors.Is(refused, ErrStaleRound) {
		return refused
	}
	h := response{key: w.now.Key(), id: m.SpecialistID, answer: in.answer()}
	if key, ask, repeat, owing := w.now.Owing(in.RoundID, machine.SpecialistID(m.SpecialistID)); owing {
		h.key, h.ask, h.repeat = key, ask, repeat
	} else if !m.Local() {
		return refused
	}
	w.discard(&h, session.CodeLate)
	if _, err := w.write(ctx); err != nil {
		return err
	}
	return refused
}

// proposeAsked asks one specialist and proposes what it answers.
func (r *Runner) proposeAsked(ctx context.Context, s *session.Session, m *planning.Member, in Submission) (*specialist.Proposal, *session.Session, error) {
	if m.IsHuman {
		return nil, s, refuse(ErrIllegal, "transition_required", "Human specialist %s must name a transition", m.SpecialistID)
	}
	if err := ctx.Err(); err != nil {
		return nil, s, err
	}
	own := *m
	own.Proposer = given{m.Proposer, in}
	w := r.newEngine(s)
	defer w.end()
	if err := w.begin(ctx); err != nil {
		return nil, s, err
	}
	if a := w.open.Ask(m.SpecialistID, machine.Proposer); a != nil && a.Status.Pending() {
		if out, err := w.out(ctx, a); out || err != nil {
			if err == nil {
				err = refuse(ErrIllegal, "already_asked", "Specialist %s is being asked already", m.SpecialistID)
			}
			return nil, s, err
		}
	}
	var err error
	if w.by, err = w.arbiter(); err != nil {
		w.by = planning.NoArbiter() // asking needs no arbiter
	}
	ask, err := w.admit(ctx, []*planning.Member{&own})
	switch {
	case err != nil:
	case len(ask) > 0:
		_, err = w.gather(ctx, ask)
		for err == nil && w.flight != nil {
			_, err = w.receiving(ctx)
		}
	case w.failureOf(m.SpecialistID) == nil:
		err = refuse(ErrIllegal, "budget_contended", "Specialist %s cannot be asked now: open calls hold the last of the budget", m.SpecialistID)
	}
	if err != nil {
		err = w.giveUp(ctx, err)
		return nil, w.s, err
	}
	p, after, err := w.proposed(ctx, m.SpecialistID)
	w.whole = true
	return p, after, err
}

// proposed commits what somebody has answered, whoever else is faster, and
// returns the proposal it made. Nobody is asked twice because of a lost race.
func (w *engine) proposed(ctx context.Context, id string) (*specialist.Proposal, *session.Session, error) {
	for range maxRaces {
		failure := w.failureOf(id)
		err := w.save(ctx)
		if errors.Is(err, session.ErrStale) {
			if err = w.reload(ctx); err == nil {
				err = w.begin(ctx)
			}
			if err != nil {
				err = w.giveUp(ctx, err)
				return nil, w.s, err
			}
			continue
		}
		switch {
		case err != nil:
			return nil, w.s, err
		case failure != nil:
			return nil, w.s, refuse(ErrIllegal, failure.Code, "%s", failure.Message)
		case w.s.Key() != w.key || w.s.Open == nil:
			return nil, w.s, refuse(ErrStaleRound, CodeStaleRound, staleRound)
		}
		p, a := w.s.Open.Proposal(id), w.s.Open.Ask(id, machine.Proposer)
		if p == nil || a != nil && a.Status.Pending() { // then p is what was proposed before
			return nil, w.s, specialist.ErrAccepted
		}
		return p, w.s, nil
	}
	return nil, w.s, session.ErrStale
}

// failureOf returns why a specialist's ask failed in this commit, or nil.
func (t *commit) failureOf(id string) *session.AskFailed {
	for _, e := range t.events {
		if f, ok := e.Data.(*session.AskFailed); ok && f.SpecialistID == id {
			return f
		}
	}
	return nil
}

// paidTo returns what a specialist's answer costs that this commit records.
func (t *commit) paidTo(id string) specialist.Usage {
	for _, e := range t.events {
		switch d := e.Data.(type) {
		case *session.Proposed:
			if d.SpecialistID == id {
				return d.Usage
			}
		case *session.AskFailed:
			if d.SpecialistID == id {
				return d.Usage
			}
		}
	}
	return specialist.Usage{}
}

// given asks a proposer and lays what was given over its answer.
type given struct {
	specialist.Proposer
	in Submission
}

// Propose implements [specialist.Proposer].
func (g given) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	a, err := g.Proposer.Propose(ctx, q)
	if g.in.Reasoning != "" {
		a.Reasoning = g.in.Reasoning
	}
	if g.in.MetaJSON != nil {
		a.MetaJSON = g.in.MetaJSON
	}
	if g.in.Usage.Given != 0 {
		a.Usage = g.in.Usage
	}
	return a, err
}
