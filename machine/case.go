package machine

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/internal/jsontext"
)

// What a machine file says about the case that a session is about: the input with which
// it starts (input), what that is in a few words (subject), what a transition writes into
// the session's data (set), and on which data it may be chosen (when). An expression is a
// text that begins with "="; it is checked here, once, and nobody else reads it as text.

// An Assignment is what a transition writes into one member of a session's data.
type Assignment struct {
	Member     string
	Expression string          // begins with "="; "" if Value is written as it stands
	Value      json.RawMessage // compact
}

// maxAssignments bounds what one transition sets.
const maxAssignments = 256

// isExpression reports whether a text of a machine file is one.
func isExpression(text string) bool {
	return strings.HasPrefix(text, "=") && !strings.HasPrefix(text, "==")
}

// assignments returns what a set member of a file says: its members in their order.
func assignments(set json.RawMessage) (list []Assignment) {
	for _, m := range jsontext.ReadObject(set).Members() {
		a := Assignment{Member: m.Name, Value: m.Value}
		var text string
		if m.Value[0] == '"' && json.Unmarshal(m.Value, &text) == nil {
			if isExpression(text) {
				a.Expression, a.Value = text, nil
			} else if rest, marked := strings.CutPrefix(text, "=="); marked {
				a.Value = jsontext.AppendString(nil, "="+rest)
			}
		}
		list = append(list, a)
	}
	return list
}

// checkCase checks what the machine and its transitions say about a session's case.
func (c *checker) checkCase() {
	if c.def.Input != nil && len(c.def.Input) <= maxSchemaBytes {
		c.input = c.checkSchema("/input", c.def.Input, "input")
	}
	c.checkExpression("/subject", expression.Subject, c.def.Subject)
	for i := range c.def.States {
		for j := range c.def.States[i].Transitions {
			t := &c.def.States[i].Transitions[j]
			at := c.statePath(i) + pointer("/transitions", t.Name)
			c.checkExpression(at+"/when", expression.When, t.When)
			c.checkSet(at+"/set", t)
		}
	}
}

func (c *checker) checkSet(at string, t *TransitionDefinition) {
	if t.Set == nil || len(t.Set) > maxSchemaBytes {
		return
	}
	if t.Set[0] != '{' {
		c.report(at, false, Problem{Code: "wrong-type", Message: "set must be an object", Hint: `name each member of the data and what is written into it: {"approved": true, "total": "= data.total + payload.amount"}`})
		return
	}
	list := assignments(t.Set)
	if len(list) > maxAssignments {
		c.report(at, false, Problem{Code: "too-large", Message: fmt.Sprintf("set has %d members, more than %d", len(list), maxAssignments)})
	}
	for _, a := range list {
		if fault := badName(a.Member); fault != "" {
			c.report(pointer(at, a.Member), true, Problem{Code: "bad-name", Message: fmt.Sprintf("the name %q %s", clip(a.Member, maxNameRunes), fault), Hint: "choose a short name of printable characters"})
			continue
		}
		if a.Expression != "" {
			c.checkExpression(pointer(at, a.Member), expression.Set, a.Expression)
		}
	}
}

// checkExpression checks a text that is nothing but an expression.
func (c *checker) checkExpression(at string, use expression.Use, text string) {
	switch {
	case text == "" || c.unread[at]:
	case !isExpression(text):
		hint := `begin it with "=", as in "= data.amount > 1000"`
		switch use {
		case expression.Subject:
			hint = `begin it with "=", as in "= \"Invoice \" + data.number"`
		case expression.Due:
			hint = `begin it with "=", as in "= data.deadline"; a duration that is the same for all belongs into "in"`
		}
		c.report(at, false, Problem{Code: "bad-expression", Message: fmt.Sprintf("%s is %q, which is no expression", lastOf(at), clip(text, maxNameRunes)), Hint: hint})
	default:
		if err := expression.Check(use, text, nil); err != nil {
			c.report(at, false, Problem{Code: "bad-expression", Message: err.Error()})
		}
	}
}

// compileCase fills in what the tables say about cases. input is its compiled schema, nil
// if there is none.
func (m *Machine) compileCase(input *Schema) {
	m.input = input
	if m.input != nil {
		m.defaults = defaultsOf(m.def.Input)
	}
	m.keepsData = m.def.Input != nil
	m.usesData = m.def.Subject != ""
	for i := range m.states {
		for _, t := range m.states[i].Transitions {
			m.keepsData = m.keepsData || len(t.Set) > 0
			m.starters = m.starters || t.excludesStarter()
			m.usesData = m.usesData || t.When != ""
		}
	}
	m.usesData = m.usesData || m.keepsData
}

// defaultsOf returns what a schema says of members that are missing.
func defaultsOf(schema json.RawMessage) (list []jsontext.Member) {
	properties := jsontext.ReadObject(jsontext.ReadObject(schema).Get("properties"))
	for _, p := range properties.Members() {
		if value := jsontext.ReadObject(p.Value).Get("default"); value != nil {
			list = append(list, jsontext.Member{Name: p.Name, Value: value})
		}
	}
	return list
}

// Input returns the schema that the metaJson of a session must satisfy; nil if there is
// none.
func (m *Machine) Input() *Schema { return m.input }

// Subject returns the expression that says what a session is about; "" if there is none.
func (m *Machine) Subject() string { return m.def.Subject }

// UsesData reports whether the machine says anything about the data of its sessions: it
// has an input, a subject, or transitions with conditions or assignments.
func (m *Machine) UsesData() bool { return m.usesData }

// KeepsData reports whether the sessions of the machine have data that are more than their
// metaJson: it declares what they start with, or its transitions set something. A nil Machine
// says nothing.
func (m *Machine) KeepsData() bool { return m != nil && m.keepsData }

// FirstData returns the data with which a session begins: the members of its metaJson, if
// that is an object, and the defaults of the machine's input for those that it lacks.
func (m *Machine) FirstData(metaJSON json.RawMessage) jsontext.Object {
	given := jsontext.ReadObject(metaJSON)
	var missing []jsontext.Member
	for _, d := range m.defaults {
		if given.Get(d.Name) == nil {
			missing = append(missing, d)
		}
	}
	if missing == nil {
		return given
	}
	return given.With(missing)
}
