package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// What a session is about, and which transitions that leaves. The data begin with the
// session's metaJson and the defaults of the machine's input; an executed transition
// writes members of them. When a round opens, the conditions of its transitions are
// evaluated, once, by whoever drives the session: here is only what came of it, so that
// reading a log needs no expression. A session of a machine that says nothing of all this
// has no caseFacts.

// A ClosedTransition is one that may not be chosen in a round, by its condition.
type ClosedTransition struct {
	TransitionName string `json:"transitionName"`
	Error          string `json:"error,omitempty"` // the condition could not be evaluated; "" if it does not hold
}

func (c *ClosedTransition) form(f *form) {
	f.str("transitionName", &c.TransitionName)
	f.opt("error", &c.Error)
}

// caseFacts never change: every event makes others.
type caseFacts struct {
	data    jsontext.Object
	subject string
	closed  []ClosedTransition // in the present round
	offered *machine.State     // the present state with the transitions that are left; nil if all are
}

// begin returns the facts with which a session begins; nil if its machine has none.
func (d *Created) facts() *caseFacts {
	m := d.Program.Machine
	if !m.UsesData() {
		return nil
	}
	return &caseFacts{data: m.FirstData(d.Options.Meta), subject: d.Options.Subject}
}

// opened returns the facts of a round that opens. A further attempt at a round keeps what
// was closed.
func (c *caseFacts) opened(d *RoundOpened) *caseFacts {
	if c == nil || d.Attempt > 0 && d.Closed == nil || len(d.Closed) == 0 && c.offered == nil {
		return c
	}
	next := *c
	next.closed, next.offered = d.Closed, nil
	if len(d.Closed) > 0 {
		next.offered = d.State.Without(d.Closes)
	}
	return &next
}

// Closes reports whether a transition may not be chosen in the round.
func (d *RoundOpened) Closes(t *machine.Transition) bool {
	return slices.ContainsFunc(d.Closed, func(c ClosedTransition) bool { return c.TransitionName == t.Name })
}

// executed returns the facts after a transition.
func (c *caseFacts) executed(d *Executed) *caseFacts {
	if c == nil || d.Data == nil {
		return c
	}
	next := *c
	next.data, next.subject = c.data.WithJSON(d.Data), d.Subject
	return &next
}

// Data returns the session's data: a JSON object that transitions write. It is empty where
// the machine says nothing of data: they are the members of the metaJson then.
func (s *Session) Data() jsontext.Object {
	if s.facts == nil {
		return jsontext.Object{}
	}
	return s.facts.data
}

// Subject returns in a few words what the session is about; "" if the machine does not
// say, or could not.
func (s *Session) Subject() string {
	if s.facts == nil {
		return ""
	}
	return s.facts.subject
}

// Closed returns the transitions that may not be chosen in the present round. The caller
// must not change it.
func (s *Session) Closed() []ClosedTransition {
	if s.facts == nil {
		return nil
	}
	return s.facts.closed
}

// Offered returns the present state with the transitions that may be chosen in this
// round: the state itself if none is closed, else a copy, which is equal to no state of
// the machine by pointer.
func (s *Session) Offered() *machine.State {
	if s.facts == nil || s.facts.offered == nil {
		return s.State
	}
	return s.facts.offered
}

// WhyClosed says why a transition of the present state may not be chosen in this round;
// "" if it may.
func (s *Session) WhyClosed(t *machine.Transition) string {
	for _, c := range s.Closed() {
		if c.TransitionName == t.Name {
			if c.Error != "" {
				return fmt.Sprintf("transition %q is closed in this round: its condition failed: %s", t.Name, c.Error)
			}
			return fmt.Sprintf("transition %q is closed in this round: its condition does not hold: %s", t.Name, t.When)
		}
	}
	return ""
}

// DeadEnd says why no transition can be chosen.
func (s *Session) DeadEnd() string {
	if len(s.Closed()) == 0 {
		return "No transitions available from current state"
	}
	reasons := make([]string, len(s.State.Transitions))
	for i, t := range s.State.Transitions {
		reasons[i] = s.WhyClosed(t)
	}
	return "No transitions available from current state: " + strings.Join(reasons, "; ")
}
