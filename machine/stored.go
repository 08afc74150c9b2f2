package machine

import "fmt"

// A store keeps definitions for as long as it keeps their sessions: longer than the
// rules of a machine file stay as they are. Hence Checks.Stored, which [Parse] and
// [Compile] take:
//
//   - Without it they are for what is written today: files that are loaded, linted or
//     started, and definitions of a program. Every rule holds.
//   - With it they are for what a store holds: sessions that are folded, shown, listed,
//     ruled on, cancelled, resumed, back-tested. Only the form is read, and what the
//     tables need is repaired: a transition whose target is no state of the definition
//     leads to a state of that name without transitions, where sessions come to a dead
//     end, and parameters that are no schema any more bind nobody. The machine has the
//     digest of what is stored. An error means that the text is damaged.
//
// A new load error therefore belongs into the checker (checkTransitions and its
// like), which does not run for what is stored, never into the decoder or into
// NewSchema; in package guard into reader.refuse, never into reader.report. The test
// TestStoredDefinitions in package store has a row for each kind of definition that
// is refused today and may be stored: add yours.

// Stored reports whether m was read as a store holds it, so that no rule has been
// checked.
func (m *Machine) Stored() bool { return m.stored }

// buildStored compiles def, which nobody else holds, as it is. problems are those of
// its form.
func buildStored(def *Definition, from origin, problems []Problem) (*Machine, error) {
	if len(problems) > 0 {
		return nil, newError(problems, 0, nil)
	}
	m := newMachine(def, from)
	m.stored = true
	def.addMissing()
	input, _ := NewSchema(def.Input) // what is no schema any more binds nobody
	m.compile(def.storedSchemas(), input)
	if m.initial == nil || m.goal == nil {
		return nil, newError([]Problem{{File: from.file, Code: "unknown-state",
			Message: fmt.Sprintf("initialState %q or goalState %q does not exist in states", def.InitialState, def.GoalState)}}, 0, nil)
	}
	return m, nil
}

// addMissing adds a state for every target that is none: every transition of a
// machine leads to a state.
func (def *Definition) addMissing() {
	exists := make(map[string]bool, len(def.States))
	for i := range def.States {
		exists[def.States[i].Name] = true
	}
	for i := range def.States { // not those that are added: they have no transitions
		for _, t := range def.States[i].Transitions {
			if !exists[t.Target] {
				exists[t.Target] = true
				def.States = append(def.States, StateDefinition{Name: t.Target})
			}
		}
	}
}

// storedSchemas compiles the parameters of all transitions.
func (def *Definition) storedSchemas() map[*TransitionDefinition]*Schema {
	schemas := map[*TransitionDefinition]*Schema{}
	for i := range def.States {
		for j := range def.States[i].Transitions {
			t := &def.States[i].Transitions[j]
			if t.Parameters == nil {
				continue
			}
			if s, err := NewSchema(t.Parameters); err == nil {
				schemas[t] = s
			}
		}
	}
	return schemas
}
