package session

import (
	"slices"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// A limit that a human raised belongs to one session: to its log, and so to the
// Program that the session is folded with. The definition stays as it was.

// Raised returns the limits that humans have raised in the session, the oldest
// first. The caller must not change them.
func (s *Session) Raised() []guard.Raise { return s.Program.raised }

// Lift returns p with limits raised for a session that stands in a state.
func (p *Program) Lift(s *machine.State, raises []guard.Raise) (*Program, error) {
	next := *p
	next.guards = slices.Clone(p.guards)
	for i, c := range p.guards {
		lifted, err := c.Lift(p.Guards(s), raises)
		if err != nil {
			return nil, err
		}
		next.guards[i] = lifted
	}
	next.raised = append(slices.Clip(p.raised), raises...)
	next.lifts = append(slices.Clip(p.lifts), int32(len(raises)))
	return &next, nil
}
