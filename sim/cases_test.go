package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The slow, obvious model of cases: what conditions and assignments of a machine say, as
// functions of Go beside the expressions, and the data and the closed transitions that
// follow from them, worked out anew from the log.
//
// Every second world has a machine with cases. What is drawn for it is drawn by what it is
// for, so that the other worlds are those that they were before there were cases.

// facts are what an expression sees of a session.
type facts struct {
	data, meta, payload map[string]any
	by, state, to, last string
	human               bool
	visits, steps       int
}

func (f *facts) number(name string) float64 {
	n, _ := f.data[name].(float64)
	return n
}

// A condition is one that a transition may have. It returns an error where the expression
// fails.
type condition struct {
	text  string
	holds func(*facts) (bool, error)
}

var errMissing = fmt.Errorf("no such member")

var conditions = []condition{
	{"= data.count < 3", func(f *facts) (bool, error) { return f.number("count") < 3, nil }},
	{"= visits < 4", func(f *facts) (bool, error) { return f.visits < 4, nil }},
	{"= steps % 2 == 0", func(f *facts) (bool, error) { return f.steps%2 == 0, nil }},
	{"= last != 'again'", func(f *facts) (bool, error) { return f.last != "again", nil }},
	{"= data.a > data.b", func(f *facts) (bool, error) { return f.number("a") > f.number("b"), nil }},
	{"= data.region == 'eu' && metaJson.count == 0", func(f *facts) (bool, error) { return f.data["region"] == "eu" && f.meta["count"] == 0., nil }},
	{"= data.amount > 1", func(f *facts) (bool, error) {
		if f.data["amount"] == nil {
			return false, errMissing
		}
		return f.number("amount") > 1, nil
	}},
}

// An assignment is what a transition may write. It returns an error where the expression
// fails.
type assignment struct {
	text  string // of the members, as JSON
	value func(*facts) (map[string]any, error)
}

var assignments = []assignment{
	{`"count":"= data.count + 1.0"`, func(f *facts) (map[string]any, error) { return map[string]any{"count": f.number("count") + 1}, nil }},
	{`"a":"= data.b","b":"= data.a"`, func(f *facts) (map[string]any, error) {
		return map[string]any{"a": f.data["b"], "b": f.data["a"]}, nil
	}},
	{`"who":"= by","man":"= human"`, func(f *facts) (map[string]any, error) { return map[string]any{"who": f.by, "man": f.human}, nil }},
	{`"way":"= state + '>' + to"`, func(f *facts) (map[string]any, error) { return map[string]any{"way": f.state + ">" + f.to}, nil }},
	{`"path":"= [visits, steps]"`, func(f *facts) (map[string]any, error) {
		return map[string]any{"path": []any{float64(f.visits), float64(f.steps)}}, nil
	}},
	{`"plain":{"x":[7]},"text":"==literal"`, func(*facts) (map[string]any, error) {
		return map[string]any{"plain": map[string]any{"x": []any{7.}}, "text": "=literal"}, nil
	}},
	{`"count":"= data.count + 1.0","amount":"= payload.amount"`, func(f *facts) (map[string]any, error) {
		if f.payload["amount"] == nil {
			return nil, errMissing
		}
		return map[string]any{"count": f.number("count") + 1, "amount": f.payload["amount"]}, nil
	}},
}

// startMeta is the metaJson of sessions with cases; region is a default of the input.
const (
	startMeta = `{"count":0,"a":1,"b":2}`
	input     = `"input":{"type":"object","properties":{"count":{"type":"integer"},"region":{"default":"eu"}}}`
	subject   = `= 'case ' + string(data.count)`
)

// A caseRule is what a transition says of cases and of people.
type caseRule struct {
	name, target string
	irreversible bool
	when         *condition  // nil if it may always be chosen
	set          *assignment // nil if it writes nothing
	approvals    *approvals  // nil if it takes none
}

// A caseState is what a state says of them.
type caseState struct {
	name        string
	deciders    []string // nil if everybody decides
	transitions []caseRule
	due         *dueRule // nil if it may take as long as it likes
	wait        bool     // nobody is asked there, and the timer ends it
}

// cases are what the machine of a world says of them; nil if it says nothing.
type cases struct {
	states    []caseState
	groups    []group
	switching bool // humans are switched off and on
}

func (c *cases) state(name string) *caseState {
	for i := range c.states {
		if c.states[i].name == name {
			return &c.states[i]
		}
	}
	return &caseState{}
}

func (s *caseState) rule(name string) *caseRule {
	for i := range s.transitions {
		if s.transitions[i].name == name {
			return &s.transitions[i]
		}
	}
	return &caseRule{}
}

// drawCases draws a machine's cases. irreversible says whether what finishes it is.
func (g *generator) drawCases(irreversible bool, humans []string) *cases {
	w := g.w
	c := &cases{switching: w.draw(2, "switches humans") == 0, groups: []group{{"finance", humans[:2]}, {"legal", humans[1:3]}, {"board", []string{humans[1], humans[0]}}}}
	for _, s := range []caseState{
		{name: "open", transitions: []caseRule{{name: "again", target: "open"}, {name: "on", target: "next"}, {name: "finish", target: "done", irreversible: irreversible}}},
		{name: "next", transitions: []caseRule{{name: "back", target: "open"}, {name: "on", target: "last"}, {name: "drop", target: "dropped"}}},
		{name: "last", transitions: []caseRule{{name: "again", target: "last"}, {name: "back", target: "open"}, {name: "finish", target: "done", irreversible: irreversible}}},
	} {
		if w.draw(3, "deciders", s.name) == 0 {
			s.deciders = humans[:2+w.draw(len(humans)-1, "how many decide", s.name)]
		}
		for i := range s.transitions {
			t := &s.transitions[i]
			if w.draw(3, "when", s.name, i) == 0 {
				t.when = &conditions[w.draw(len(conditions), "condition", s.name, i)]
			}
			if w.draw(3, "set", s.name, i) > 0 {
				t.set = &assignments[w.draw(len(assignments), "assignment", s.name, i)]
			}
			if w.draw(5, "approvals", s.name, i) < 2 {
				t.approvals = w.drawApprovals(c, &s, i, humans)
			}
		}
		s.due = w.drawDue(&s)
		s.wait = w.drawWait(&s)
		c.states = append(c.states, s)
	}
	return c
}

// written returns the states as the machine's file has them, but for the defect that is
// put in. With mangled every expression is another one.
func (c *cases) written(m *mutation, mangled bool) string {
	var states []string
	expression := func(text, other string) string {
		if mangled {
			text = other
		}
		quoted, _ := json.Marshal(text)
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
	}
	for _, s := range c.states {
		var transitions []string
		for _, t := range s.transitions {
			text := fmt.Sprintf(`%q:{"target":%q`, t.name, t.target)
			if t.irreversible {
				text += `,"irreversible":true`
			}
			if t.when != nil && !m.is("conditions are forgotten") {
				text += `,"when":` + expression(t.when.text, "= visits > 1000000")
			}
			if t.set != nil && mangled {
				text += `,"set":{"never":"= 'never'"}`
			} else if t.set != nil {
				text += `,"set":{` + t.set.text + `}`
			}
			if t.approvals != nil && !m.is("approvals are forgotten") {
				text += `,"approvals":` + t.approvals.written(m)
			}
			transitions = append(transitions, text+"}")
		}
		deciders := ""
		if s.deciders != nil && !m.is("deciders are forgotten") {
			list, _ := json.Marshal(s.deciders)
			deciders = fmt.Sprintf(`"deciders":%s,`, list)
		}
		if s.wait && !m.is("waits are forgotten") {
			deciders += `"specialists":[],`
		}
		states = append(states, fmt.Sprintf(`%q:{%s%s"transitions":{%s}}`, s.name, deciders, s.due.written(m, mangled), strings.Join(transitions, ",")))
	}
	return strings.Join(states, ",") + `,"dropped":{"final":true},"done":{}`
}

// head returns the other members of the machine's file.
func (c *cases) head(mangled bool) string {
	about := subject
	if mangled {
		about = "= 'never'"
	}
	groups := map[string][]string{}
	for _, g := range c.groups {
		groups[g.name] = g.humans
	}
	text, _ := json.Marshal(groups)
	return fmt.Sprintf(`,%s,"subject":%q,"groups":%s`, input, about, text)
}
