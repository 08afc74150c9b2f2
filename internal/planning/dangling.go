package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/machine"
)

// A state's list may name specialists who are declared for the machine or who were
// registered in the store. Whether somebody was registered is known when a session
// starts, so a name that nobody has is an error there, with its place in the file; lint
// warns of it, since it goes by the file or by one store.

// Dangling is the code of a finding about a name in a state's list that nobody has.
const Dangling = "unknown-specialist"

// dangling is the problem of entry i of a state's list, which names none of those whom
// the machine knows.
func dangling(m *machine.Machine, s *machine.State, i int, level []*machine.Specialist) machine.Problem {
	entry, known := &s.Roster[i], make([]string, 0, len(level))
	for _, sp := range level {
		if sp.Role == entry.Role {
			known = append(known, sp.SpecialistID)
		}
	}
	return m.Locate(machine.Problem{
		Path: fmt.Sprintf("%s/specialists/%d", s.Path(), i), Code: Dangling,
		Message: fmt.Sprintf("state %q names specialist %q, which is neither declared nor registered for machine %q", s.Name, entry.SpecialistID, m.Name()),
		Hint:    cmp.Or(machine.DidYouMean(entry.SpecialistID, known), "declare it in the specialists of the machine, or register it"),
	})
}

// Placed returns the error of a start with the places that its problems have in the
// file of m: a plan may have been made for another file with the same definition.
func Placed(m *machine.Machine, err error) error {
	start, ok := errors.AsType[*StartError](err)
	if !ok {
		return err
	}
	here := &StartError{slices.Clone(start.Problems)}
	for i, p := range here.Problems {
		if d, ok := errors.AsType[*DanglingError](p); ok {
			here.Problems[i] = &DanglingError{m.Locate(d.Problem)}
		}
	}
	return here
}
