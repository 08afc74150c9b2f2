package runner

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// A limit that a human raised belongs to one session: to its log, and so to the
// Program that the session is folded with. The definition stays as it was.

// Raised returns the limits that humans have raised in the session, the oldest
// first. The caller must not change them.
func (s *Session) Raised() []guard.Raise { return s.Program.raised }

// lift returns p with limits raised for a session that stands in a state.
func (p *Program) lift(s *machine.State, raises []guard.Raise) (*Program, error) {
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
	return &next, nil
}

// raise adds to d the limits that a human wants to raise in the session.
func (t *tx) raise(d *Resumed, asked []guard.Raise) (err error) {
	s := &t.now
	switch {
	case s.Status == Completed:
		return refuse(ErrNotRunning, "completed", "the session has completed in %q, so there is nothing to raise a limit for", s.State.Name)
	case !t.mayRule(d.Actor):
		e := refuse(ErrForbidden, "not_human", "only humans who take part in state %q can raise a limit, and %q is none", s.State.Name, d.Actor)
		e.Hint = "the machine file says who they are (isHuman)"
		return e
	case d.Note == "":
		return refuse(nil, BadRaise, "a limit is raised without a note: say why")
	}
	var problems []machine.Problem
	if d.Raised, problems = s.Program.Guards(s.State).Raise(s.State.Name, asked); len(problems) > 0 {
		e := refuse(nil, BadRaise, "%s", problems[0].Message)
		e.Hint = problems[0].Hint
		return e
	}
	d.program, err = s.Program.lift(s.State, d.Raised)
	return err
}

// resumed reads a resumed event.
func (d *reading) resumed() (Data, error) {
	v := &Resumed{}
	if err := d.into(v); err != nil || len(v.Raised) == 0 {
		return v, err
	}
	for _, r := range v.Raised {
		if r.State != d.session.State.Name {
			return nil, &DecodeError{"state of a raised limit", r.State}
		}
	}
	var err error
	if v.program, err = d.session.Program.lift(d.session.State, v.Raised); err != nil {
		err = fmt.Errorf("a raised limit: %w", err)
	}
	return v, err
}
