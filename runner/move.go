package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A session goes on under another definition of its machine. It keeps its history, its
// data, what it has spent and where it stands, and its round begins anew: what was asked,
// proposed and ruled in it was about another question.
//
// No approval is skipped by it. The state in which the session stands has to be there; if it
// is not, it may be mapped to another one, but never to one in which sessions end, nor from
// one that takes approvals to one that takes none. What the
// session was started with has to satisfy the new input, and where approvals exclude who has
// started the session, that has to be known.

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
		p, err := r.plan(ctx, program.Like(s.Program))
		if err != nil {
			return nil, planning.Placed(m, err)
		}
		if err := r.unpricedModels(m, p); err != nil {
			return nil, err
		}
		state, err := movable(s, m, &o)
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

// movable returns where a session would stand under another definition, or what stands in
// the way.
func movable(s *session.Session, m *machine.Machine, o *Moving) (*machine.State, error) {
	switch {
	case s.Status == session.Completed:
		return nil, refuse(ErrNotRunning, "completed", "session %s has completed in %q: nothing goes on", s.ID, s.State.Name)
	case m.Name() != s.Machine().Name():
		return nil, refuse(ErrIllegal, "another_machine", "session %s is one of machine %q, not of %q", s.ID, s.Machine().Name(), m.Name())
	case m.Digest() == s.Machine().Digest():
		return nil, refuse(ErrIllegal, "same_definition", "session %s runs by this definition already (%.12s)", s.ID, m.Digest())
	}
	state, err := movedState(s, m, o)
	if err != nil {
		return nil, err
	}
	if err := planning.Fitting(m, s.Options().Meta); err != nil {
		return nil, err
	}
	if len(s.Data().Members()) > 0 && m.UsesData() {
		data := m.FirstData(s.Data().JSON())
		if problem := cases.Oversize(data.Size(), data.Members()); problem != "" {
			return nil, refuse(ErrIllegal, session.CodeInvalidInput, "%s", problem)
		}
	}
	if m.Starters() && len(s.StartedBy()) == 0 {
		return nil, refuse(ErrIllegal, "no_starter", "machine %q excludes who has started a session from approvals, and nobody knows as whom session %s was started", m.Name(), s.ID)
	}
	return state, nil
}

func movedState(s *session.Session, m *machine.Machine, o *Moving) (*machine.State, error) {
	if err := renames(s, m, o); err != nil {
		return nil, err
	}
	state := m.State(s.State.Name)
	if state == nil {
		now := machine.StateName(s.State.Name)
		to, mapped := o.States[now]
		if !mapped {
			e := refuse(ErrIllegal, "no_state", "session %s stands in %q, which the new definition does not have", s.ID, now)
			e.Hint = fmt.Sprintf("say which state is in its place: --state %s=NEW", now)
			return nil, e
		}
		if state = m.State(string(to)); takesApprovals(s.State) && !takesApprovals(state) {
			return nil, refuse(ErrIllegal, "skips_approvals", "a transition of state %q takes approvals, and none of state %q, which is to be in its place, does", now, to)
		}
		if state != nil && behindApprovals(m, state) && !behindApprovals(s.Machine(), s.State) {
			return nil, refuse(ErrIllegal, "skips_approvals", "state %q, which is to be in the place of %q, is reached by approvals alone, and %q is not", to, now, now)
		}
	}
	if state.Terminal() {
		return nil, refuse(ErrIllegal, "terminal_state", "sessions end in state %q: a session gets there by a transition only, with its approvals", state.Name)
	}
	return state, nil
}

// renames says what stands in the way of the names that states are to have.
func renames(s *session.Session, m *machine.Machine, o *Moving) error {
	for _, was := range slices.Sorted(maps.Keys(o.States)) {
		to := o.States[was]
		left := func(e *session.Executed) bool { return e.Transition.From.Name == string(was) }
		switch {
		case m.State(string(was)) != nil && to != was:
			return refuse(ErrIllegal, "state_exists", "state %q is there in the new definition: session %s goes on in it, and in no other", was, s.ID)
		case m.State(string(to)) == nil:
			return refuse(ErrIllegal, "no_state", "state %q, in the place of %q, is not one of the new definition", to, was)
		case s.Machine().State(string(was)) == nil && !slices.ContainsFunc(s.History(), left):
			return refuse(ErrIllegal, "no_state", "state %q is none of the definition by which session %s runs", was, s.ID)
		}
	}
	return nil
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

func takesApprovals(s *machine.State) bool {
	return slices.ContainsFunc(s.Transitions, func(t *machine.Transition) bool { return t.Approvals != nil })
}

// behindApprovals reports whether sessions come to a state by transitions that take approvals
// alone.
func behindApprovals(m *machine.Machine, s *machine.State) bool {
	return reaches(m, s, func(*machine.Transition) bool { return true }) && !reaches(m, s, func(t *machine.Transition) bool { return t.Approvals == nil })
}

// reaches reports whether transitions of a kind lead from where sessions begin to a state.
func reaches(m *machine.Machine, s *machine.State, by func(*machine.Transition) bool) bool {
	reached := []*machine.State{m.Initial()}
	for i := 0; i < len(reached); i++ {
		for _, t := range reached[i].Transitions {
			if by(t) && !slices.Contains(reached, t.To) {
				reached = append(reached, t.To)
			}
		}
	}
	return slices.Contains(reached, s)
}
