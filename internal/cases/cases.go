// Package cases works out what a machine says about the case of a session: on which
// conditions its transitions may be chosen, by when a state is to be left, what transitions
// write into the session's data, and what the session is about. It evaluates expressions, and only whoever drives a session
// does that: what comes of it is recorded, and nobody evaluates it again.
package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Limits of the data of a session, as compact JSON, and of its subject.
const (
	MaxData    = 256 << 10 // bytes
	MaxDepth   = 64
	MaxSubject = 120 // characters
)

// A Program is what a machine says about cases, compiled. It never changes and may be
// used concurrently. The nil Program is that of a machine that says nothing: no method
// does anything.
type Program struct {
	subject     *compiled // nil if there is none
	transitions map[*machine.Transition]*transition
	conditional []bool      // by index of the state
	due         []*compiled // by index of the state; nil where no expression says when it is due
}

type transition struct {
	when *compiled   // nil if it may always be chosen
	set  []*compiled // by place in machine.Transition.Set; nil for plain values
}

// Compile compiles the expressions of a machine; nil if it says nothing of cases. One that
// cannot be compiled, as a definition in a store may hold, fails where it is evaluated.
func Compile(m *machine.Machine) *Program {
	if !m.UsesData() && !m.Timed() {
		return nil
	}
	n := len(m.States())
	p := &Program{subject: compile(expression.Subject, m.Subject()), transitions: map[*machine.Transition]*transition{}, conditional: make([]bool, n), due: make([]*compiled, n)}
	for i := range m.States() {
		if d := m.States()[i].Due; d != nil {
			p.due[i] = compile(expression.Due, d.At)
		}
		for _, t := range m.States()[i].Transitions {
			if t.When == "" && t.Set == nil {
				continue
			}
			own := &transition{when: compile(expression.When, t.When), set: make([]*compiled, len(t.Set))}
			for j, a := range t.Set {
				own.set[j] = compile(expression.Set, a.Expression)
			}
			p.transitions[t] = own
			p.conditional[i] = p.conditional[i] || own.when != nil
		}
	}
	return p
}

// A compiled expression, or why there is none.
type compiled struct {
	*expression.Expression
	err error
}

func compile(use expression.Use, source string) *compiled {
	if source == "" {
		return nil
	}
	e, err := expression.New(use, source)
	return &compiled{e, err}
}

func (e *compiled) holds(ctx context.Context, c *expression.Case) (bool, error) {
	if e.err != nil {
		return false, e.err
	}
	return e.Holds(ctx, c)
}

func (e *compiled) json(ctx context.Context, c *expression.Case) (json.RawMessage, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.JSON(ctx, c)
}

// of returns what expressions see of a session as it is now; release takes it back.
func of(s *session.Session) *expression.Case {
	c := spare.Get().(*expression.Case)
	*c = expression.Case{Data: s.Data(), MetaJSON: s.Options().Meta, Visits: s.Visits(s.State), Steps: int(s.Executed)}
	if e := s.Last(); e != nil {
		c.Last = e.Transition.Name
	}
	return c
}

// spare are cases to be used again: what an expression yields is JSON, and holds nothing
// of them.
var spare = sync.Pool{New: func() any { return new(expression.Case) }}

func release(c *expression.Case) {
	*c = expression.Case{}
	spare.Put(c)
}

// Closed evaluates the conditions of the transitions of a session's present state, which
// it has just entered.
func (p *Program) Closed(ctx context.Context, s *session.Session) (closed []session.ClosedTransition) {
	if p == nil || !p.conditional[s.State.Index] {
		return nil
	}
	c := of(s)
	defer release(c)
	for _, t := range s.State.Transitions {
		own := p.transitions[t]
		if own == nil || own.when == nil {
			continue
		}
		switch holds, err := own.when.holds(ctx, c); {
		case err != nil:
			closed = append(closed, session.ClosedTransition{TransitionName: t.Name, Error: err.Error()})
		case !holds:
			closed = append(closed, session.ClosedTransition{TransitionName: t.Name})
		}
	}
	return closed
}

// Open adds to the options of a session that is about to begin what it is about, and of
// its first round which transitions are closed and by when it is due.
func (p *Program) Open(ctx context.Context, program *session.Program, o *session.Options, at specialist.Time) {
	if p == nil {
		return
	}
	o.Subject = p.Subject(ctx, program.Machine.FirstData(o.Meta), o.Meta)
	first := session.NewOpening(session.New(specialist.SessionID{}, program, *o, at))
	defer first.Release()
	o.Closed, o.Due = p.Closed(ctx, first.Change.After), p.Due(ctx, first.Change.After, at)
}

// Due works out by when a session is to leave its present state, which it enters at a
// moment; nil if it may take as long as it likes.
func (p *Program) Due(ctx context.Context, s *session.Session, at specialist.Time) *session.Due {
	if p == nil || s.State.Due == nil || s.State.Terminal() {
		return nil
	}
	if d := s.State.Due.In; d != 0 {
		return dueAt(at.Time().Add(time.Duration(d)))
	}
	own := p.due[s.State.Index]
	if own == nil {
		return nil // of a definition that a store holds
	}
	if own.err != nil {
		return &session.Due{Error: own.err.Error()}
	}
	c := of(s)
	defer release(c)
	c.Now = at.Time()
	text, err := own.Text(ctx, c)
	if err != nil {
		return &session.Due{Error: err.Error()}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return dueAt(at.Time().Add(d))
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return &session.Due{Error: fmt.Sprintf("%q is neither a time such as 2026-11-23T17:00:00+01:00 nor a duration such as 24h", specialist.Clip(text, MaxSubject))}
	}
	return dueAt(moment)
}

// dueAt returns a moment as a session keeps it: nothing is due before 1970, which is past
// all the same.
func dueAt(moment time.Time) *session.Due {
	if y := moment.UTC().Year(); y > 9999 {
		return &session.Due{Error: fmt.Sprintf("it lies in the year %d, after the last one that a time can be written of", y)}
	}
	return &session.Due{At: max(1, specialist.TimeOf(moment))}
}

// Subject says what a session with these data and this metaJson is about; "" where the
// machine does not say, or the expression fails.
func (p *Program) Subject(ctx context.Context, data jsontext.Object, metaJSON json.RawMessage) string {
	if p == nil || p.subject == nil || p.subject.err != nil {
		return ""
	}
	text, err := p.subject.Text(ctx, &expression.Case{Data: data, MetaJSON: metaJSON})
	if err != nil {
		return ""
	}
	return clip(text)
}

// clip cuts a text to MaxSubject characters.
func clip(text string) string {
	if utf8.RuneCountInString(text) <= MaxSubject {
		return text
	}
	return string([]rune(text)[:MaxSubject-1]) + "…"
}

// A Step is a transition that is about to be executed.
type Step struct {
	Transition *machine.Transition
	MetaJSON   json.RawMessage // compact; nil if there is none
	By         string          // whose proposal or ruling it is
	Human      bool
	At         specialist.Time
}

// A SetError says why a transition cannot write what it is to write.
type SetError struct {
	Transition string
	Member     string // of the data; "" if they have become too large
	Problem    string
}

func (e *SetError) Error() string {
	if e.Member == "" {
		return fmt.Sprintf("transition %q cannot set the data: %s", e.Transition, e.Problem)
	}
	return fmt.Sprintf("transition %q cannot set %q: %s", e.Transition, e.Member, e.Problem)
}

// Write works out what a transition writes into the data of a session, as an object, and
// what the session is about afterwards. data is nil if it writes nothing. All values are
// worked out from the data as they are. The error is a *SetError.
func (p *Program) Write(ctx context.Context, s *session.Session, step Step) (data json.RawMessage, subject string, err error) {
	if p == nil || len(step.Transition.Set) == 0 {
		return nil, "", nil
	}
	c := of(s)
	defer release(c)
	c.Payload, c.By, c.Human, c.State, c.To, c.Now = step.MetaJSON, step.By, step.Human, s.State.Name, step.Transition.Target, step.At.Time()
	own := p.transitions[step.Transition]
	members := make([]jsontext.Member, len(step.Transition.Set))
	for i, a := range step.Transition.Set {
		members[i] = jsontext.Member{Name: a.Member, Value: a.Value}
		if own.set[i] == nil {
			continue
		}
		if members[i].Value, err = own.set[i].json(ctx, c); err != nil {
			return nil, "", &SetError{step.Transition.Name, a.Member, err.Error()}
		}
	}
	written := jsontext.ObjectOf(members)
	next, size := c.Data, c.Data.Size()+written.Size() // at most, since it may write over what is there
	if p.subject != nil || size > MaxData {
		next = c.Data.With(written.Members())
		size = next.Size()
	}
	if problem := Oversize(size, written.Members()); problem != "" {
		return nil, "", &SetError{step.Transition.Name, "", problem}
	}
	return written.JSON(), p.Subject(ctx, next, c.MetaJSON), nil
}

// Oversize says why data of a size are larger, or members of theirs nested deeper, than a
// session keeps; "" if they are not.
func Oversize(size int, members []jsontext.Member) string {
	if size > MaxData {
		largest := slices.MaxFunc(members, func(a, b jsontext.Member) int { return cmp.Compare(len(a.Value), len(b.Value)) })
		return fmt.Sprintf("the data would have %d bytes, more than %d; %d of them in %q", size, MaxData, len(largest.Value), largest.Name)
	}
	for _, m := range members {
		if n := 1 + jsontext.Depth(m.Value); n > MaxDepth {
			return fmt.Sprintf("the data would be nested %d deep in %q, more than %d", n, m.Name, MaxDepth)
		}
	}
	return ""
}
