package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the log of a session comes to by the model of cases_test.go, event for event, and the
// invariants that compare it with the engine.

// A caseLog is what the model knows of one session.
type caseLog struct {
	data, meta map[string]any
	closed     map[string]bool // by the name of a transition; true if its condition fails
	steps      []*session.Executed
	drawn      map[specialist.RoundKey]bool // a second human was drawn
	wrong      map[string]error             // what does not hold, by the invariant
	due        dueLog
}

func newCaseLog(w *world) *caseLog {
	l := &caseLog{data: object([]byte(startMeta)), meta: object([]byte(startMeta)), drawn: map[specialist.RoundKey]bool{}, wrong: map[string]error{}}
	l.data["region"] = "eu"
	if w.cases != nil {
		l.open(w.cases.state("open"))
	}
	return l
}

// object reads a JSON object; nothing is an empty one.
func object(text []byte) map[string]any {
	m := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err)
		}
	}
	return m
}

// sees returns what an expression of a state sees.
func (l *caseLog) sees(state string) *facts {
	f := &facts{data: l.data, meta: l.meta, state: state, steps: len(l.steps)}
	if state == "open" {
		f.visits = 1
	}
	for _, e := range l.steps {
		if e.Transition.Target == state {
			f.visits++
		}
		f.last = e.Transition.Name
	}
	return f
}

// open works out what is closed in a round that opens in a state.
func (l *caseLog) open(s *caseState) {
	l.closed = map[string]bool{}
	f := l.sees(s.name)
	for _, t := range s.transitions {
		if t.when == nil {
			continue
		}
		if holds, err := t.when.holds(f); err != nil || !holds {
			l.closed[t.name] = err != nil
		}
	}
}

func (l *caseLog) blame(invariant, format string, a ...any) {
	if l.wrong[invariant] == nil {
		l.wrong[invariant] = fmt.Errorf(format, a...)
	}
}

// wrong returns what the model has found against an invariant.
func (c *check) wrong(invariant string) error {
	if c.s.cases == nil {
		return nil
	}
	return c.s.cases.wrong[invariant]
}

// cased enters one event into the model of the session's case.
func (c *check) cased(key specialist.RoundKey, d session.Data) {
	l, rules := c.s.cases, c.w.cases
	if rules == nil {
		return
	}
	switch d := d.(type) {
	case *session.Proposed:
		if _, closed := l.closed[d.Transition.Name]; closed {
			l.blame(conditionsHold, "%s proposes %s, which is closed", d.SpecialistID, d.Transition.Name)
		}
	case *session.AwaitsHuman:
		if d.Code == session.CodeSetFailed || d.Code == session.CodeApprovals {
			c.w.count("waits: " + d.Code)
		}
		for _, t := range rules.state(c.before.State.Name).transitions {
			if d.Code == session.CodeSetFailed && strings.HasPrefix(d.Reason, fmt.Sprintf("transition %q", t.name)) && l.canSet(t.set, c.before.State.Name, nil) {
				l.blame(dataWritten, "%s, and it can: %+v", d.Reason, l.data)
			}
		}
	case *session.Ended:
		if d.Code == session.CodeDeadEnd {
			c.w.count("dead ends")
		}
	case *session.Ruled:
		c.ruledOn(key, d)
		if d.Draws != nil && d.Draws.Second {
			l.drawn[key] = true
		}
	case *session.Executed:
		c.mayExecute(key, d)
		l.write(c.w, d)
	case *session.RoundOpened:
		if d.Attempt == 0 {
			l.open(rules.state(d.State.Name))
		}
	}
}

// canSet reports whether what is to be set can be worked out. None of it depends on who
// executes it.
func (l *caseLog) canSet(set *assignment, state string, payload json.RawMessage) bool {
	f := l.sees(state)
	f.payload = object(payload)
	_, err := set.value(f)
	return err == nil
}

// refusedToSet looks at a ruling that is refused because of what it would set, unless the
// session has gone on since.
func (w *world) refusedToSet(a *activity) {
	e, ok := errors.AsType[*runner.Error](a.err)
	if w.cases == nil || a.act == nil || !ok || e.Code != session.CodeSetFailed || a.s.now.Key() != a.act.round {
		return
	}
	w.count("rulings that cannot set")
	state := a.s.now.State.Name
	if set := w.cases.state(state).rule(a.act.transition).set; set == nil || a.s.cases.canSet(set, state, a.act.payload) {
		w.fail(dataWritten, "%s: %s rules %s %s, which is refused: %v", a.s, a.act.human, a.act.transition, a.act.payload, a.err)
	}
}

// write enters what an executed transition writes.
func (l *caseLog) write(w *world, d *session.Executed) {
	state, t := d.Transition.From.Name, d.Transition
	if _, closed := l.closed[t.Name]; closed {
		l.blame(conditionsHold, "%s is executed, and was closed when its round opened (%v)", t.Name, l.closed)
	}
	f := l.sees(state)
	f.payload, f.by, f.human, f.to = object(d.MetaJSON), d.SpecialistID, strings.HasPrefix(d.SpecialistID, "h"), t.Target
	l.steps = append(l.steps, d)
	set := w.cases.state(state).rule(t.Name).set
	if set == nil {
		if d.Data != nil {
			l.blame(dataWritten, "%s writes %s, and sets nothing", t.Name, d.Data)
		}
		return
	}
	values, err := set.value(f)
	if err != nil {
		l.blame(dataWritten, "%s is executed, and cannot set %s: %v", t.Name, set.text, err)
		return
	}
	w.count("data written")
	if found := object(d.Data); !reflect.DeepEqual(found, values) {
		l.blame(dataWritten, "%s writes %s, and sets %v", t.Name, d.Data, values)
	}
	next := maps.Clone(l.data)
	maps.Copy(next, values)
	l.data = next
}

// The names of the invariants of cases.
const (
	conditionsHold = "conditions hold"
	dataWritten    = "data as written"
	noExpression   = "the log is read without an expression"
)

// conditionsHold compares what is closed in the present round with the model.
func (c *check) conditionsHold() error {
	if c.w.cases == nil || c.wrong(conditionsHold) != nil {
		return c.wrong(conditionsHold)
	}
	found := map[string]bool{}
	for _, t := range c.after.Closed() {
		c.w.count("closed transitions")
		found[t.TransitionName] = t.Error != ""
	}
	if l := c.s.cases; c.after.Status.Live() && !maps.Equal(found, l.closed) {
		return fmt.Errorf("closed are %v, by the conditions %v (true: they fail)", found, l.closed)
	}
	return nil
}

// dataWritten compares the data and the subject of the session with the model.
func (c *check) dataWritten() error {
	if c.w.cases == nil || c.wrong(dataWritten) != nil {
		return c.wrong(dataWritten)
	}
	l := c.s.cases
	if found := object(c.after.Data().JSON()); !reflect.DeepEqual(found, l.data) {
		return fmt.Errorf("the data are %v, by what was set %v", found, l.data)
	}
	if want := fmt.Sprintf("case %v", l.data["count"]); c.after.Subject() != want {
		return fmt.Errorf("the session is about %q, by its data about %q", c.after.Subject(), want)
	}
	return nil
}

// withoutExpressions folds each log with a definition in which every expression says
// something else: what was recorded must count, and nothing else.
func (w *world) withoutExpressions() {
	if w.cases == nil {
		return
	}
	other, err := machine.Parse("mangled.json", []byte(w.mangled), session.StoredChecks())
	if err != nil {
		w.t.Fatalf("seed %d: %v\n%s", w.seed, err, w.mangled)
	}
	moved := w.another(other, session.StoredChecks())
	digests := strings.NewReplacer(w.machine.Digest(), other.Digest(), w.other.Digest(), moved.Digest())
	for _, s := range w.sessions {
		programs := session.NewPrograms()
		for _, m := range []*machine.Machine{other, moved} {
			if _, err := programs.Of(m); err != nil {
				w.t.Fatal(err)
			}
		}
		f := &session.Folder{Programs: programs}
		for rec, err := range w.base.Records(context.Background(), s.id, 0) {
			if err == nil {
				_, err = f.Add([]byte(digests.Replace(string(rec.Events))))
			}
			if err != nil {
				w.fail(noExpression, "%s: %v", s, err)
				return
			}
		}
		if was, is := inWords(s.now), inWords(f.Session()); was != is {
			w.fail(noExpression, "%s is\n%s\nand with other expressions\n%s", s, was, is)
		}
	}
}

// dueOf says by when a session is to leave its state.
func dueOf(s *session.Session) string {
	if d := s.Due(); d != nil {
		return fmt.Sprint(*d)
	}
	return ""
}

// inWords says what the log of a session comes to.
func inWords(s *session.Session) string {
	pending, _ := s.PendingRulings()
	rulings := slices.Collect(func(yield func(string) bool) {
		for _, r := range pending {
			if !yield(r.SpecialistID + " " + r.Transition.Name + " " + string(r.MetaJSON)) {
				return
			}
		}
	})
	return fmt.Sprint(s.State.Name, s.Key(), s.Status, s.Outcome(), s.Executed, s.Sequence, string(s.Data().JSON()), s.Subject(), s.Closed(), dueOf(s), s.WakeAt(), rulings, s.Spent())
}
