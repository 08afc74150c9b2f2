package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The slow, obvious model of time: when a state of the case is due, who is reminded of it
// before, and what its timer executes. It is worked out anew from the log; the clocks of the
// processes jump back and forth, and nothing may happen twice because of that.

// A dueRule is what a state says of time.
type dueRule struct {
	text   string // of the member in or at
	after  func(*facts) (time.Duration, error)
	remind time.Duration // before it is due; 0 for never
	then   string        // a transition; "" for none
}

func inTime(d time.Duration) dueRule {
	return dueRule{text: fmt.Sprintf(`"in":"%s"`, d), after: func(*facts) (time.Duration, error) { return d, nil }}
}

var dues = []dueRule{
	inTime(40 * time.Second), inTime(90 * time.Second), inTime(10 * time.Minute), inTime(70 * time.Hour),
	{text: `"at":"= visits < 3 ? '30s' : '2h'"`, after: func(f *facts) (time.Duration, error) {
		if f.visits < 3 {
			return 30 * time.Second, nil
		}
		return 2 * time.Hour, nil
	}},
	{text: `"at":"= '-1h'"`, after: func(*facts) (time.Duration, error) { return -time.Hour, nil }},
	{text: `"at":"= data.deadline"`, after: func(*facts) (time.Duration, error) { return 0, errMissing }},
}

// drawDue draws by when a state is to be left; nil for whenever. Its timer executes what
// needs nobody.
func (w *world) drawDue(s *caseState) *dueRule {
	if w.draw(3, "due", s.name) > 0 {
		return nil
	}
	d := dues[w.draw(len(dues), "when due", s.name)]
	if w.draw(2, "remind", s.name) == 0 {
		d.remind = time.Duration(10+w.draw(60, "remind before", s.name)) * time.Second
	}
	var free []string
	for _, t := range s.transitions {
		if !t.irreversible && t.approvals == nil {
			free = append(free, t.name)
		}
	}
	if len(free) > 0 && w.draw(4, "then", s.name) > 0 {
		d.then = free[w.draw(len(free), "what then", s.name)]
	}
	return &d
}

// written returns the due as the machine's file has it, but for the defect that is put in.
func (d *dueRule) written(m *mutation, mangled bool) string {
	if d == nil || m.is("due is forgotten") {
		return ""
	}
	text := d.text
	if mangled && strings.HasPrefix(text, `"at"`) {
		text = `"at":"= 'never'"`
	}
	if d.remind != 0 {
		text += fmt.Sprintf(`,"remind":["%s"]`, d.remind)
	}
	if d.then != "" {
		text += fmt.Sprintf(`,"then":%q`, d.then)
	}
	return `"due":{` + text + `},`
}

// dueLog is what the model knows of the present round of a session.
type dueLog struct {
	rule     *dueRule
	at       specialist.Time // 0 if it is not due at all, or nobody knows when
	entered  specialist.Time
	reminded bool
	failed   bool // the timer's transition could not be executed
}

// The name of the invariant of time.
const timersCome = "timers come"

func (c *check) timersCome() error { return c.wrong(timersCome) }

// timed enters one event into the model of time.
func (c *check) timed(e *session.Event) {
	if c.w.cases == nil {
		return
	}
	l := c.s.cases
	due := &l.due
	switch d := e.Data.(type) {
	case *session.RoundOpened:
		c.opened(d, e.At)
	case *session.Reminded:
		c.w.count("reminders")
		switch before := machine.Duration(0); {
		case due.rule == nil || due.rule.remind == 0 || d.Due != due.at || d.Before == before || time.Duration(d.Before) != due.rule.remind:
			l.blame(timersCome, "a reminder of %s, %s before, and it is due at %s (%+v)", d.Due, d.Before, due.at, due.rule)
		case due.reminded:
			l.blame(timersCome, "the reminder %s before comes twice", d.Before)
		case e.At < due.at-millis(due.rule.remind) || due.at-millis(due.rule.remind) <= due.entered:
			l.blame(timersCome, "the reminder %s before %s comes at %s, in a state that was entered at %s", d.Before, due.at, e.At, due.entered)
		}
		due.reminded = true
	case *session.Resumed, *session.Moved:
		due.failed = false // it is tried again
	case *session.AwaitsHuman:
		if d.Timer {
			c.w.count("timers that cannot")
			c.comes(e.At, "is given up")
			due.failed = true
		}
	case *session.Executed:
		if d.How != session.ByTimer {
			return
		}
		c.w.count("timers")
		c.comes(e.At, "executes "+d.Transition.Name)
		switch {
		case due.rule != nil && due.rule.then != d.Transition.Name:
			l.blame(timersCome, "the timer executes %s in place of %q", d.Transition.Name, due.rule.then)
		case d.IsHuman || d.SpecialistID != session.TimerID || d.Actor != nil || d.Authors != nil || d.Draws != nil || d.Arrival != 0:
			l.blame(timersCome, "the timer executes as %+v", d)
		case slices.ContainsFunc(c.events, func(e session.Event) bool { return e.Data.Kind() == session.KindLearned }):
			l.blame(timersCome, "the timer teaches something")
		}
	}
}

// comes looks at whether the timer may do something at a moment.
func (c *check) comes(at specialist.Time, what string) {
	l := c.s.cases
	switch due := &l.due; {
	case due.rule == nil || due.at == 0 || due.rule.then == "":
		l.blame(timersCome, "a timer %s in %s, which has none", what, c.before.State.Name)
	case at < due.at:
		l.blame(timersCome, "the timer %s at %s, before %s", what, at, due.at)
	case due.failed:
		l.blame(timersCome, "the timer %s after it was given up", what)
	case !c.before.Status.Live():
		l.blame(timersCome, "the timer %s in a session that is %s", what, c.before.Status)
	}
}

// opened works out by when the state of a new round is to be left.
func (c *check) opened(d *session.RoundOpened, at specialist.Time) {
	if d.Attempt == 0 {
		c.dueAnew(d.State.Name, d.Due, at)
	} else if d.Due != nil {
		c.s.cases.blame(timersCome, "a further attempt is due anew: %+v", d.Due)
	}
}

// dueAnew works out by when a state that is entered at a moment is to be left.
func (c *check) dueAnew(state string, due *session.Due, at specialist.Time) {
	l := c.s.cases
	l.due = dueLog{rule: c.w.cases.state(state).due, entered: at}
	if l.due.rule == nil {
		if due != nil {
			l.blame(timersCome, "%s is due: %+v", state, due)
		}
		return
	}
	after, err := l.due.rule.after(l.sees(state))
	switch {
	case due == nil:
		l.blame(timersCome, "%s has no due", state)
	case err != nil && (due.Error == "" || due.At != 0):
		l.blame(timersCome, "%s is due at %s, which nobody knows", state, due.At)
	case err == nil && (due.Error != "" || due.At != at+millis(after)):
		l.blame(timersCome, "%s is due at %s (%s), entered at %s, after %s", state, due.At, due.Error, at, after)
	case err == nil:
		l.due.at = due.At
	}
}

const waitsWait = "waits wait"

// drawWait draws whether nobody is asked in a state that its timer ends.
func (w *world) drawWait(s *caseState) bool {
	takesPeople := slices.ContainsFunc(s.transitions, func(t caseRule) bool { return t.approvals != nil })
	return s.due != nil && s.due.then != "" && s.deciders == nil && !takesPeople && w.draw(2, "wait", s.name) == 0
}

// waitsWait looks at what happens in a state in which nobody is asked.
func (c *check) waitsWait() error {
	if c.w.cases == nil || c.before == nil || !c.w.cases.state(c.before.State.Name).wait {
		return nil
	}
	human := len(c.before.Proposals()) > 0 // somebody has proposed, though nobody was asked
	for i, e := range c.events {
		if c.keys[i] != c.before.Key() {
			continue
		}
		c.w.count("events in waits")
		switch d := e.Data.(type) {
		case *session.Asked:
			if slices.ContainsFunc(d.Asks, func(a session.Ask) bool { return a.Role == machine.Proposer }) {
				return fmt.Errorf("in %s, where nobody is asked, %v are", c.before.State.Name, who(d))
			}
		case *session.Proposed:
			if human = true; !d.IsHuman {
				return fmt.Errorf("in %s, where nobody is asked, %s proposes %s", c.before.State.Name, d.SpecialistID, d.Transition.Name)
			}
		case *session.Executed:
			if d.How != session.ByTimer && !c.w.isHuman(d.SpecialistID) {
				return fmt.Errorf("in %s, where nobody is asked, %s executes %s", c.before.State.Name, d.SpecialistID, d.Transition.Name)
			}
		case *session.AwaitsHuman:
			if !human && (d.Code == session.CodeNoProposals || d.Code == session.CodeNoQuorum) {
				return fmt.Errorf("in %s, where nobody is asked, it waits for a human: %s", c.before.State.Name, d.Reason)
			}
		}
	}
	return nil
}

func millis(d time.Duration) specialist.Time { return specialist.Time(d.Milliseconds()) }
