package planning

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/refusal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Where a session stands that goes on under another definition of its machine. No approval is
// skipped by it. The state in which the session stands has to be there; if it is not, it may be
// mapped to another one, but never to one in which sessions end, nor from one that takes
// approvals to one that takes none. What the session was started with has to satisfy the new
// input, and where approvals exclude who has started the session, that has to be known.

// Moved returns where a session that has not completed stands under another definition of
// its machine, or what stands in the way. states are the names of states that the other does
// not have, each with the one in its place.
func Moved(s *session.Session, m *machine.Machine, states map[machine.StateName]machine.StateName) (*machine.State, error) {
	switch {
	case m.Name() != s.Machine().Name():
		return nil, refusal.New(refusal.ErrIllegal, "another_machine", "session %s is one of machine %q, not of %q", s.ID, s.Machine().Name(), m.Name())
	case m.Digest() == s.Machine().Digest():
		return nil, refusal.New(refusal.ErrIllegal, "same_definition", "session %s runs by this definition already (%.12s)", s.ID, m.Digest())
	}
	state, err := movedState(s, m, states)
	if err != nil {
		return nil, err
	}
	if err := Fitting(m, s.Options().Meta); err != nil {
		return nil, err
	}
	if len(s.Data().Members()) > 0 && m.UsesData() {
		data := m.FirstData(s.Data().JSON())
		if problem := cases.Oversize(data.Size(), data.Members()); problem != "" {
			return nil, refusal.New(refusal.ErrIllegal, session.CodeInvalidInput, "%s", problem)
		}
	}
	if m.Starters() && len(s.StartedBy()) == 0 {
		return nil, refusal.New(refusal.ErrIllegal, "no_starter", "machine %q excludes who has started a session from approvals, and nobody knows as whom session %s was started", m.Name(), s.ID)
	}
	return state, nil
}

func movedState(s *session.Session, m *machine.Machine, states map[machine.StateName]machine.StateName) (*machine.State, error) {
	if err := renames(s, m, states); err != nil {
		return nil, err
	}
	state := m.State(s.State.Name)
	if state == nil {
		now := machine.StateName(s.State.Name)
		to, mapped := states[now]
		if !mapped {
			e := refusal.New(refusal.ErrIllegal, "no_state", "session %s stands in %q, which the new definition does not have", s.ID, now)
			e.Hint = fmt.Sprintf("say which state is in its place: --state %s=NEW", now)
			return nil, e
		}
		if state = m.State(string(to)); takesApprovals(s.State) && !takesApprovals(state) {
			return nil, refusal.New(refusal.ErrIllegal, "skips_approvals", "a transition of state %q takes approvals, and none of state %q, which is to be in its place, does", now, to)
		}
		if state != nil && behindApprovals(m, state) && !behindApprovals(s.Machine(), s.State) {
			return nil, refusal.New(refusal.ErrIllegal, "skips_approvals", "state %q, which is to be in the place of %q, is reached by approvals alone, and %q is not", to, now, now)
		}
	}
	if state.Terminal() {
		return nil, refusal.New(refusal.ErrIllegal, "terminal_state", "sessions end in state %q: a session gets there by a transition only, with its approvals", state.Name)
	}
	return state, nil
}

// renames says what stands in the way of the names that states are to have.
func renames(s *session.Session, m *machine.Machine, states map[machine.StateName]machine.StateName) error {
	for _, was := range slices.Sorted(maps.Keys(states)) {
		to := states[was]
		left := func(e *session.Executed) bool { return e.Transition.From.Name == string(was) }
		switch {
		case m.State(string(was)) != nil && to != was:
			return refusal.New(refusal.ErrIllegal, "state_exists", "state %q is there in the new definition: session %s goes on in it, and in no other", was, s.ID)
		case m.State(string(to)) == nil:
			return refusal.New(refusal.ErrIllegal, "no_state", "state %q, in the place of %q, is not one of the new definition", to, was)
		case s.Machine().State(string(was)) == nil && !slices.ContainsFunc(s.History(), left):
			return refusal.New(refusal.ErrIllegal, "no_state", "state %q is none of the definition by which session %s runs", was, s.ID)
		}
	}
	return nil
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
