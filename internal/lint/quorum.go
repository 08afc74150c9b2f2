package lint

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
)

// Codes of findings about panels that keep rounds from ever being decided without a
// human.
const (
	quorumAbovePanel  = "quorum-above-panel" // a number of answers that nobody is there to give
	requiredElsewhere = "required-elsewhere" // who is required everywhere takes no part in a state
	requiredOff       = "required-off"       // who is required is switched off
)

// quorums adds what keeps every round of a state from being decided without a human,
// whatever the panel says.
func (f *findings) quorums(m *machine.Machine, c *planning.StateCast, level []*machine.Specialist) {
	f.abovePanel(m, c)
	for i := range c.Proposers {
		if s := &c.Proposers[i]; s.Required && s.Off {
			f.add(c.State.Name+"\x00"+s.SpecialistID, machine.Problem{Code: requiredOff, Path: placeOfMember(m, c.State, s.SpecialistID),
				Message: fmt.Sprintf("specialist %q is required and switched off: in state %q a human decides every round", s.SpecialistID, c.State.Name),
				Hint:    "switch it on, or remove required"})
		}
	}
	for _, s := range level {
		if s.Required && s.Role == machine.Proposer && !s.IsHuman && !takesPart(c, s.SpecialistID) {
			f.add(c.State.Name+"\x00"+s.SpecialistID, machine.Problem{Code: requiredElsewhere, Path: placeOfMember(m, c.State, s.SpecialistID),
				Message: fmt.Sprintf("specialist %q is required, and takes no part in state %q: its own list replaces the machine's", s.SpecialistID, c.State.Name),
				Hint:    `name it in the list of the state, or write "required": true in the lists of those states alone that need it`})
		}
	}
}

// takesPart reports whether somebody may propose or rule in a state.
func takesPart(c *planning.StateCast, id string) bool {
	is := func(p planning.Participant) bool { return p.SpecialistID == id }
	return slices.ContainsFunc(c.Proposers, is) || slices.ContainsFunc(c.Humans, is)
}

// abovePanel adds a finding if the quorum is a number that is larger than the panel. A
// state that asks only humans needs none.
func (f *findings) abovePanel(m *machine.Machine, c *planning.StateCast) {
	q, n := c.State.Quorum, len(c.Panel.Roster)
	if q == nil || q.Rule != "" || n == 0 || q.Count <= n {
		return
	}
	path := "/quorum"
	if m.Definition().States[c.State.Index].Quorum != nil {
		path = c.State.Path() + path
	}
	proposers := "1 proposer is asked"
	if n > 1 {
		proposers = fmt.Sprintf("%d proposers are asked", n)
	}
	f.add(c.State.Name, machine.Problem{Code: quorumAbovePanel, Path: path,
		Message: fmt.Sprintf("quorum is %d, and %s in state %q: a human decides every round", q.Count, proposers, c.State.Name),
		Hint:    fmt.Sprintf(`write %d at most, or "all"; who is registered counts where they are`, n)})
}

// placeOfMember returns the pointer to the entry that names somebody: of the state's
// list, or else of the machine's, or else to the state.
func placeOfMember(m *machine.Machine, s *machine.State, id string) string {
	for _, list := range []struct {
		path    string
		entries []machine.Specialist
	}{{s.Path(), s.Roster}, {"", m.Specialists()}} {
		for i := range list.entries {
			if list.entries[i].SpecialistID == id {
				return fmt.Sprintf("%s/specialists/%d", list.path, i)
			}
		}
	}
	return s.Path()
}
