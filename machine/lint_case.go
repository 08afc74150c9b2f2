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
	r := &readLint{linter: l, input: declaredBy(l.def.Input), set: map[string]bool{}}
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

// A readLint looks for members that are read and that nothing provides.
type readLint struct {
	*linter
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
	if source == "" || r.input.anything {
		return
	}
	for _, read := range expression.Reads(use, source) {
		if r.input.has(read.Member) || read.Variable == "data" && r.set[read.Member] {
			continue
		}
		provides, known := "input does not declare it and no transition sets it", slices.Sorted(maps.Keys(r.input.names))
		if read.Variable == "data" {
			known = append(known, slices.Sorted(maps.Keys(r.set))...)
		} else {
			provides = "input does not declare it"
		}
		hint := didYouMean(read.Member, known)
		if r.set[read.Member] {
			hint = fmt.Sprintf("what transitions set is in data: data.%s", read.Member)
		}
		r.report(path, false, Problem{Code: "INPUT001",
			Message: fmt.Sprintf("the expression reads %q of %s, and %s", read.Member, read.Variable, provides),
			Hint:    cmp.Or(hint, "declare it in the properties of input")})
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

// declaredBy collects the names that a schema declares, its parts included.
func declaredBy(schema json.RawMessage) *declared {
	d := &declared{names: map[string]bool{}}
	var root any
	if json.Unmarshal(schema, &root) == nil {
		d.add(root, root, 0)
	}
	return d
}

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
