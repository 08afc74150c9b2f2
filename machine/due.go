package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/internal/jsontext"
)

// By when a state is to be left (due), and what is executed if it is not (then). A file
// says how long that is from the entry into the state (in), or has an expression work
// out the moment (at); when a round opens, whoever drives the session does that once and
// records what came of it. Reminders come so long before it.
//
// What a timer executes nobody has looked at, so it can only be a transition that needs
// nobody: one that can be undone, takes no approvals and no payload. A state that nobody
// but its timer can end is a wait (State.Wait).

// A Due says by when a state is to be left.
type Due struct {
	In     Duration   `json:"in,omitempty"`     // after the entry into the state; 0 if At says it
	At     string     `json:"at,omitempty"`     // an expression: a time as in RFC 3339, or a duration after the entry
	Remind []Duration `json:"remind,omitempty"` // how long before it somebody is reminded; the zero value is never
	Then   string     `json:"then,omitempty"`   // the transition that is executed; "" if none is
}

// MarshalJSON writes a Due that is no more than a duration as such.
func (d Due) MarshalJSON() ([]byte, error) {
	if d.In != 0 && d.At == "" && d.Remind == nil && d.Then == "" {
		return d.In.MarshalJSON()
	}
	type plain Due
	return jsontext.Marshal(plain(d))
}

func copyDue(d *Due) *Due {
	own := copyOf(d)
	if own != nil {
		own.Remind = slices.Clone(own.Remind)
	}
	return own
}

const (
	dueHint      = `write how long the state may take, such as "24h", or {"in": "24h", "remind": ["4h"], "then": "escalate"}`
	durationHint = `write a number and a unit, such as "90s", "5m" or "24h"`
)

// Reading.

func (d *decoder) due(into **Due) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		due := &Due{}
		switch n.kind {
		case stringNode:
			d.duration(&due.In)(n, path, what)
		case objectNode:
			d.object(n, path, what, []field{
				{"in", d.duration(&due.In)},
				{"at", text(d, &due.At)},
				{"remind", d.durations(&due.Remind)},
				{"then", text(d, &due.Then)},
			})
		default:
			d.wrongType(n, path, what, "a duration or an object")
			return
		}
		*into = due
	}
}

// durations reads an array of durations.
func (d *decoder) durations(into *[]Duration) func(n *node, path, what string) {
	return d.only(arrayNode, "an array", func(n *node, path, what string) {
		*into = make([]Duration, len(n.items))
		for i, item := range n.items {
			d.duration(&(*into)[i])(item, pointer(path, strconv.Itoa(i)), fmt.Sprintf("%s[%d]", what, i))
		}
	})
}

// Checking.

// maxReminders is how often somebody may be reminded of one state.
const maxReminders = 16

// checkDue checks by when each state is to be left.
func (c *checker) checkDue() {
	for i := range c.def.States {
		if s := &c.def.States[i]; s.Due != nil {
			c.checkDueOf(c.statePath(i)+"/due", s)
		}
	}
}

func (c *checker) checkDueOf(at string, s *StateDefinition) {
	d, what := s.Due, fmt.Sprintf("due of state %q", clip(s.Name, maxNameRunes))
	switch {
	case c.unread[at], c.unread[at+"/in"], c.unread[at+"/at"]:
	case d.In == 0 && d.At == "":
		c.report(at, false, Problem{Code: "missing-field", Message: what + " says neither in nor at", Hint: dueHint})
	case d.In != 0 && d.At != "":
		c.report(at, false, Problem{Code: "contradiction", Message: what + " says both in and at", Hint: "remove one of the two"})
	case d.In < 0 || d.In > Duration(maxDuration):
		c.report(at+"/in", false, badDuration(what, d.In))
	}
	c.checkExpression(at+"/at", expression.Due, d.At)
	if len(d.Remind) > maxReminders {
		c.report(at+"/remind", false, Problem{Code: "too-large", Message: fmt.Sprintf("remind has more than %d entries", maxReminders)})
	}
	for i, r := range d.Remind {
		if at := fmt.Sprintf("%s/remind/%d", at, i); (r <= 0 || r > Duration(maxDuration)) && !c.unread[at] {
			c.report(at, false, badDuration(what+": a reminder", r))
		}
	}
	if d.Then != "" && !c.unread[at+"/then"] {
		c.checkThen(at+"/then", what, s)
	}
}

func badDuration(what string, d Duration) Problem {
	return Problem{Code: "bad-duration", Message: fmt.Sprintf("%s is %s, not a duration above 0 and up to %s", what, d, Duration(maxDuration)), Hint: durationHint}
}

// checkThen checks that the transition of a timer needs nobody.
func (c *checker) checkThen(at, what string, s *StateDefinition) {
	names := make([]string, len(s.Transitions))
	for i := range s.Transitions {
		names[i] = s.Transitions[i].Name
	}
	i := slices.Index(names, s.Due.Then)
	if i < 0 {
		c.report(at, false, Problem{Code: "unknown-transition", Message: fmt.Sprintf("%s executes %q, which is no transition of the state", what, clip(s.Due.Then, maxNameRunes)),
			Hint: cmp.Or(didYouMean(s.Due.Then, names), "name one of its transitions")})
		return
	}
	t, why, hint := &s.Transitions[i], "", ""
	switch schema := c.schemas[t]; {
	case isSet(t.Irreversible) || isSet(s.Irreversible):
		why, hint = "cannot be undone", "only humans execute what is irreversible: let the timer lead to a state where they are asked"
	case t.Approvals != nil:
		why, hint = "takes approvals", "nobody has given them when the timer comes: let it lead to a state where others are asked"
	case schema != nil && schema.Validate(nil) != nil:
		why, hint = "needs a payload", "a timer has none: let the parameters be satisfied by {}, or name another transition"
	default:
		return
	}
	c.report(at, false, Problem{Code: "bad-timer", Message: fmt.Sprintf("%s executes %q, which %s", what, clip(t.Name, maxNameRunes), why), Hint: hint})
}

// Compiling.

// compileDue fills in by when a state is to be left.
func (m *Machine) compileDue(s *State, d *StateDefinition) {
	if s.Due = d.Due; s.Due == nil {
		return
	}
	m.timed = true
	if s.Timer = s.Transition(d.Due.Then); s.Timer == nil || d.Deciders != nil {
		return
	}
	roster := s.Roster
	if roster == nil {
		roster = m.def.Specialists
	}
	s.Wait = !slices.ContainsFunc(roster, func(sp Specialist) bool { return sp.Role == Proposer || sp.IsHuman })
}

// Timed reports whether a state of the machine is to be left by some moment.
func (m *Machine) Timed() bool { return m.timed }

// Reminder returns the first moment after another at which somebody is to be reminded that
// a state is due at a moment, and how long before it that is; the first result is false if
// no reminder comes after it. Times are in milliseconds.
func (d *Due) Reminder(due, after int64) (found bool, at int64, before Duration) {
	for _, r := range d.Remind {
		if m := due - time.Duration(r).Milliseconds(); m > after && (!found || m < at) {
			found, at, before = true, m, r
		}
	}
	return found, at, before
}
