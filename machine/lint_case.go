package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/expression"
)

// What a machine says of the data of its sessions, held against what it declares of them:
// members that an expression reads and that nothing provides (INPUT001), and states that
// data could close altogether (WHEN001), and timers that never come (DUE001). A member is provided if the schema of the input
// names it anywhere at its top level, whatever else that says of it, or if a transition
// sets it. metaJson never changes, so for it only the input counts.

// cases looks at conditions, assignments and all expressions over data.
func (l *linter) cases() {
	for i := range l.m.states {
		l.conditional(&l.m.states[i])
	}
	if l.def.Input == nil {
		return
	}
	r := &readLint{linter: l, input: newDeclared(), set: map[string]bool{}}
	_ = json.Unmarshal(l.def.Input, &r.root) // which has been compiled
	r.input.add(r.root, r.root, 0)
	for i := range l.m.states {
		for _, t := range l.m.states[i].Transitions {
			for _, a := range t.Set {
				r.set[a.Member] = true
			}
		}
	}
	r.expression("/subject", expression.Subject, l.def.Subject)
	r.proposers("/specialists", l.def.Specialists)
	for i := range l.m.states {
		s := &l.m.states[i]
		if s.Due != nil {
			r.expression(s.Path()+"/due/at", expression.Due, s.Due.At)
		}
		for _, t := range s.Transitions {
			r.expression(t.Path()+"/when", expression.When, t.When)
			for _, a := range t.Set {
				r.expression(pointer(t.Path()+"/set", a.Member), expression.Set, a.Expression)
			}
		}
		r.proposers(s.Path()+"/specialists", s.Roster)
	}
}

// conditional looks for a state all of whose transitions may be closed at once.
func (l *linter) conditional(s *State) {
	if s.Terminal() || len(s.Transitions) == 0 || slices.ContainsFunc(s.Transitions, func(t *Transition) bool { return t.When == "" }) {
		return
	}
	l.report(s.Path()+"/transitions", true, Problem{Code: "WHEN001",
		Message: fmt.Sprintf("state %q has only transitions with conditions: a session in which none holds fails (dead_end)", s.Name),
		Hint:    "add a transition without a condition, such as one that asks a human"})
}

// timers looks for timers and reminders that never come.
func (l *linter) timers() {
	for i := range l.m.states {
		s := &l.m.states[i]
		if s.Due == nil {
			continue
		}
		if s.Terminal() {
			l.report(s.Path()+"/due", true, Problem{Code: "DUE001",
				Message: fmt.Sprintf("the due of state %q never comes: sessions end there", s.Name), Hint: "remove it"})
			continue
		}
		for j, r := range s.Due.Remind {
			if s.Due.In != 0 && r >= s.Due.In {
				l.report(fmt.Sprintf("%s/due/remind/%d", s.Path(), j), false, Problem{Code: "DUE001",
					Message: fmt.Sprintf("the reminder %s before state %q is due never comes: that is not after the entry, with %s in all", r, s.Name, s.Due.In),
					Hint:    "write a shorter duration"})
			}
		}
		if t := s.Timer; t != nil && never(t.When) {
			l.report(s.Path()+"/due/then", false, Problem{Code: "DUE001",
				Message: fmt.Sprintf("the timer of state %q never executes %q: its condition is always false", s.Name, t.Name), Hint: "change the condition, or name another transition"})
		}
	}
}

// never reports whether a condition is a plain false, which holds on no data.
func never(when string) bool { return strings.TrimSpace(strings.TrimPrefix(when, "=")) == "false" }

// A readLint looks for members that are read and that nothing provides, and for what the
// input never lets them be.
type readLint struct {
	*linter
	root  any // the schema of the input
	input *declared
	set   map[string]bool
}

func (r *readLint) proposers(path string, list []Specialist) {
	for i := range list {
		if s := &list[i]; s.Role == Proposer && isExpression(s.StrategyFn) {
			r.expression(fmt.Sprintf("%s/%d/strategyFn", path, i), expression.Propose, s.StrategyFn)
		}
	}
}

func (r *readLint) expression(path string, use expression.Use, source string) {
	if source == "" {
		return
	}
	for _, read := range expression.Reads(use, source) {
		if written := read.Variable == "data" && r.set[read.Path[0]]; !written && r.provided(path, read) {
			r.inside(path, use, read)
		}
	}
}

func (r *readLint) reports(path, hint, format string, args ...any) {
	r.report(path, false, Problem{Code: "INPUT001", Message: fmt.Sprintf(format, args...), Hint: hint})
}

// provided reports a member of data or metaJson that nothing provides.
func (r *readLint) provided(path string, read expression.Read) bool {
	member := read.Path[0]
	if r.input.has(member) {
		return true
	}
	provides, known := "input does not declare it and no transition sets it", slices.Sorted(maps.Keys(r.input.names))
	if read.Variable == "data" {
		known = append(known, slices.Sorted(maps.Keys(r.set))...)
	} else {
		provides = "input does not declare it"
	}
	hint := didYouMean(member, known)
	if r.set[member] {
		hint = fmt.Sprintf("what transitions set is in data: data.%s", member)
	}
	r.reports(path, cmp.Or(hint, "declare it in the properties of input"), "the expression reads %q of %s, and %s", member, read.Variable, provides)
	return false
}

// inside follows a read into the schemas of what it leads through, as far as these say
// what there is in properties.
func (r *readLint) inside(path string, use expression.Use, read expression.Read) {
	part := partAt(r.root, "")
	for i, member := range read.Path {
		s, _ := part.(map[string]any)
		d := newDeclared()
		d.add(s, r.root, 0)
		of := strings.Join(append([]string{read.Variable}, read.Path[:i]...), ".")
		switch kind, _ := s["type"].(string); {
		case kind != "" && kind != "object" && kind != "array":
			r.reports(path, fmt.Sprintf("read %s itself, or declare what it has", of), "the expression reads %q of %s, and input says that this is %s", member, of, article(kind))
			return
		case i > 0 && len(d.names)+len(d.patterns) > 0 && !d.has(member):
			r.reports(path, cmp.Or(didYouMean(member, slices.Sorted(maps.Keys(d.names))), "declare it in the input"), "the expression reads %q of %s, and input does not declare it", member, of)
			return
		}
		properties, _ := s["properties"].(map[string]any)
		if part = properties[member]; part == nil {
			return
		}
	}
	if s, ok := part.(map[string]any); ok {
		r.values(path, use, read, s)
	}
}

// values reports what a member is compared with, or yielded as, and never is.
func (r *readLint) values(path string, use expression.Use, read expression.Read, schema map[string]any) {
	name := strings.Join(append([]string{read.Variable}, read.Path...), ".")
	kind, _ := schema["type"].(string)
	enum, limited := schema["enum"].([]any)
	var texts []string
	for _, v := range enum {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	for _, v := range read.Compared {
		text, _ := v.(string)
		switch {
		case kind != "" && !hasType(v, kind):
			r.reports(path, fmt.Sprintf("compare it with %s", article(kind)), "the expression compares %s with %s, and input says that it is %s", name, article(typeOf(v)), article(kind))
		case limited && !slices.Contains(enum, v):
			r.reports(path, cmp.Or(didYouMean(text, texts), "add it to the enum of input, or compare with what is there"), "the expression compares %s with %#v, which is none of the values that input allows it", name, v)
		}
	}
	want := map[expression.Use]string{expression.When: "boolean", expression.Subject: "string", expression.Due: "string", expression.Propose: "string"}[use]
	if read.Yielded && kind != "" && want != "" && kind != want {
		hint := fmt.Sprintf("yield %s", article(want))
		if use == expression.Subject {
			hint = fmt.Sprintf("string(%s) makes a text of it", name)
		}
		r.reports(path, hint, "the expression yields %s, and input says that it is %s, not %s", name, article(kind), article(want))
	}
}

// declared is what a schema of an object says of its members' names.
type declared struct {
	names    map[string]bool
	patterns []*regexp.Regexp
	anything bool // it can have members of any name, which it describes
}

func (d *declared) has(name string) bool {
	return d.anything || d.names[name] || slices.ContainsFunc(d.patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

func newDeclared() *declared { return &declared{names: map[string]bool{}} }

// add collects what a part of a schema declares.
func (d *declared) add(part, root any, depth int) {
	s, _ := part.(map[string]any)
	if s == nil || depth > maxSchemaDepth {
		return
	}
	properties, _ := s["properties"].(map[string]any)
	for name := range properties {
		d.names[name] = true
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if text, ok := name.(string); ok {
			d.names[text] = true
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for source := range patterns {
		if p, err := regexp.Compile(source); err == nil {
			d.patterns = append(d.patterns, p)
		}
	}
	_, described := s["additionalProperties"].(map[string]any)
	d.anything = d.anything || described
	if ref, ok := s["$ref"].(string); ok {
		sub := partAt(root, strings.TrimPrefix(ref, "#"))
		d.anything = d.anything || sub == nil // it leads by a name, not by a path
		d.add(sub, root, depth+1)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[word].([]any)
		for _, sub := range list {
			d.add(sub, root, depth+1)
		}
	}
	for _, word := range []string{"if", "then", "else"} {
		d.add(s[word], root, depth+1)
	}
}

// partAt follows a JSON pointer into a schema.
func partAt(part any, path string) any {
	if path != "" && path[0] != '/' {
		return nil
	}
	for _, name := range splitPointer(path) {
		s, _ := part.(map[string]any)
		part = s[name]
	}
	return part
}
