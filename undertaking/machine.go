package undertaking

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// An undertaking may run an edited copy of its machine. The loop knows the states and the moves by
// name, and whatever a move sets by what it means: those have to stay.

// SameMoves returns how a machine differs from another in its states, its transitions, who takes
// part and how is decided, nil if it does not: prompts, risks, guards, timers and approvals may
// differ.
func SameMoves(m, base *machine.Machine) error {
	a, b := m.Definition(), base.Definition()
	if a.MachineName != b.MachineName || a.InitialState != b.InitialState || a.GoalState != b.GoalState {
		return fmt.Errorf("name, initial state and goal state are %s, %s and %s, and have to be %s, %s and %s", a.MachineName, a.InitialState, a.GoalState, b.MachineName, b.InitialState, b.GoalState)
	}
	if x, y := listed(m.Specialists()), listed(base.Specialists()); x != y {
		return fmt.Errorf("the machine lists %s, and has to list %s", x, y)
	}
	if len(m.States()) != len(base.States()) {
		return fmt.Errorf("it has %d states, and has to have %d", len(m.States()), len(base.States()))
	}
	for i := range base.States() {
		want := &base.States()[i]
		have := m.State(want.Name)
		if have == nil {
			return fmt.Errorf("the state %s is missing", want.Name)
		}
		if err := sameState(have, want); err != nil {
			return fmt.Errorf("state %s %w", want.Name, err)
		}
	}
	return nil
}

func sameState(have, want *machine.State) error {
	if x, y := edges(have), edges(want); x != y {
		return fmt.Errorf("has the transitions %s, and has to have %s", x, y)
	}
	for _, t := range want.Transitions {
		x, y := have.Transition(t.Name), t
		if x.When != y.When {
			return fmt.Errorf("may be left by %s when %q, and has to when %q", t.Name, x.When, y.When)
		}
		if !reflect.DeepEqual(x.Set, y.Set) {
			return fmt.Errorf("sets other members of the case by %s: leave set as it is", t.Name)
		}
	}
	if x, y := listed(have.Roster), listed(want.Roster); x != y {
		return fmt.Errorf("lists %s, and has to list %s", x, y)
	}
	if !reflect.DeepEqual(have.Quorum, want.Quorum) {
		return errors.New("has another quorum: leave it as it is")
	}
	return nil
}

func edges(s *machine.State) string {
	var list []string
	for _, t := range s.Transitions {
		list = append(list, t.Name+"→"+t.Target)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// listed is who takes part, and by which strategy decides who does.
func listed(specialists []machine.Specialist) string {
	var list []string
	for i := range specialists {
		sp := &specialists[i]
		text := string(sp.Role) + " " + sp.SpecialistID
		if sp.IsHuman {
			text = "human " + sp.SpecialistID
		}
		if by := cmp.Or(sp.StrategyFn, sp.StrategyFnName, sp.StrategyWebhookURL); sp.Role == machine.Arbiter && by != "" {
			text += " (" + by + ")"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
