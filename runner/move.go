package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A session goes on under another definition of its machine. It keeps its history, its
// data, what it has spent and where it stands, and its round begins anew: what was asked,
// proposed and ruled in it was about another question.
// Where it stands then, and what stands in the way, says planning.Moved.

// Moving says who moves a session, and why. Both are required.
type Moving struct {
	Actor session.Actor
	Note  string
	// States are names of states that the new definition does not have any more, each with
	// the one in its place: that in which the session stands, and those in which somebody has
	// ruled whom approvals exclude.
	States map[machine.StateName]machine.StateName
	// DryRun tells what would come of it, and changes nothing.
	DryRun bool
	// If, if it is not nil, is asked about the session that is to be moved; its error is
	// returned, and nothing is changed.
	If func(*session.Session) error
}

// Move lets a session that has not completed go on under another definition of the same
// machine name. One that has stopped or failed stays so until it is resumed. It returns the
// session as it is then, or, with DryRun, as it is.
//
// Errors: ErrNotFound, [ErrNotRunning] if the session has completed, [ErrIllegal] with what
// stands in the way (another machine, the same definition, a state that is not there or in
// which sessions end, an input that does not fit), a [*StartError] if something that the new
// definition names is missing, and a store that fails.
func (r *Runner) Move(ctx context.Context, id specialist.SessionID, m *machine.Machine, o Moving) (*session.Session, error) {
	switch {
	case m == nil:
		return nil, refuse(ErrIllegal, "no_machine", "there is no machine to move to: machine.Parse makes one")
	case !o.Actor.Known():
		return nil, refuse(ErrIllegal, "no_actor", "a session is moved by nobody: say who does it")
	case strings.TrimSpace(o.Note) == "":
		return nil, refuse(ErrIllegal, "no_note", "a session is moved without a note: say why")
	}
	program, err := r.programs.Of(m)
	if err != nil {
		return nil, err
	}
	m = program.Machine // which may be another object of the same definition
	for range maxRaces {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := holds(o.If, s); err != nil {
			return s, err
		}
		p, err := r.plan(ctx, program.Like(s.Program))
		if err != nil {
			return nil, planning.Placed(m, err)
		}
		if err := r.unpricedModels(m, p); err != nil {
			return nil, err
		}
		if s.Status == session.Completed {
			return s, refuse(ErrNotRunning, "completed", "session %s has completed in %q: nothing goes on", s.ID, s.State.Name)
		}
		state, err := planning.Moved(s, m, o.States)
		if err != nil {
			return s, err
		}
		after, err := r.moveOnce(ctx, s, p, state, &o)
		if !errors.Is(err, session.ErrStale) {
			return after, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", id, session.ErrStale)
}

func (r *Runner) moveOnce(ctx context.Context, s *session.Session, p *plan, state *machine.State, o *Moving) (*session.Session, error) {
	t := &commit{}
	t.reset(r, s)
	m := p.Program.Machine
	data := m.FirstData(s.Options().Meta)
	if now := s.Data(); len(now.Members()) > 0 {
		data = m.FirstData(now.JSON())
	}
	t.emit(&session.Moved{Program: p.Program, From: s.Machine().Digest(), State: state, States: o.renamed(), Subject: p.Cases.Subject(ctx, data, s.Options().Meta),
		Note: specialist.Clip(o.Note, maxReasoning), Actor: o.Actor.Clone()})
	if by, was, name := t.now.Forgets(s); by != "" {
		e := refuse(ErrIllegal, "no_state", "%s ruled in %q, which the new definition does not have, and who ruled in its state %q is excluded from approvals", by, was, name)
		e.Hint = fmt.Sprintf("say which state is in its place, this one (--state %s=%s) or another", was, name)
		return s, e
	}
	if o.DryRun {
		return s, nil
	}
	opened := &session.RoundOpened{Round: t.now.Round, Attempt: t.now.Attempt + 1, State: state, Closed: p.Cases.Closed(ctx, &t.now)}
	if t.now.Due() == nil {
		opened.Due = p.Cases.Due(ctx, &t.now, t.at)
	}
	t.emit(opened)
	return t.write(ctx)
}

// renamed returns the states that have another name from now on; nil if none has.
func (o *Moving) renamed() (states map[string]string) {
	for was, to := range o.States {
		if states == nil {
			states = map[string]string{}
		}
		if was != to {
			states[string(was)] = string(to)
		}
	}
	return states
}
