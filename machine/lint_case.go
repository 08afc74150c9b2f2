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
// members that an expression reads and that nothing provides (INPUT001), or that need not be
// there (INPUT002), the same of payloads and parameters (PARAM002), states that data could close
// altogether (WHEN001), conditions that are none (WHEN002),
// texts that look like expressions (SET001), and timers that never come (DUE001).
// A member is provided if the schema of the input names it anywhere at its top level, whatever
// else that says of it, or if a transition sets it. metaJson never changes, so for it only the
// input counts.

// cases looks at conditions, assignments and all expressions over data.
func (l *linter) cases() {
	r := &readLint{linter: l, set: map[string]bool{}}
	if l.def.Input != nil {
		r.input = describe(l.def.Input, ofInput)
	}
	for i := range l.m.states {
		l.conditional(&l.m.states[i])
		for _, t := range l.m.states[i].Transitions {
			for _, a := range t.Set {
				r.set[a.Member] = true
				l.unmarked(t, a)
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
		for j, t := range s.Transitions {
			r.payload = describe(l.def.States[i].Transitions[j].Parameters, ofParameters)
			r.expression(t.Path()+"/when", expression.When, t.When)
			given := expression.Reads(expression.When, t.When)
			for _, a := range t.Set {
				r.expression(pointer(t.Path()+"/set", a.Member), expression.Set, a.Expression, given...)
			}
		}
		r.proposers(s.Path()+"/specialists", s.Roster)
	}
}

// conditional looks for conditions that are none, and for a state all of whose transitions may
// be closed at once.
func (l *linter) conditional(s *State) {
	open := s.Terminal() || len(s.Transitions) == 0
	for _, t := range s.Transitions {
		holds, constant := expression.Constant(t.When)
		open = open || t.When == "" || holds
		if t.When == "" || !constant {
			continue
		}
		p := Problem{Code: "WHEN002", Message: fmt.Sprintf("transition %q is always open: its condition reads nothing", t.Name), Hint: "remove the condition, or let it read data, metaJson, visits, steps or last"}
		if !holds {
			p.Message = fmt.Sprintf("transition %q is never open: its condition reads nothing, and does not hold", t.Name)
			p.Hint = "remove the transition, or let its condition read data, metaJson, visits, steps or last"
		}
		l.report(t.Path()+"/when", false, p)
	}
	if open {
		return
	}
	l.report(s.Path()+"/transitions", true, Problem{Code: "WHEN001",
		Message: fmt.Sprintf("state %q has only transitions with conditions: a session in which none holds fails (dead_end)", s.Name),
		Hint:    "add a transition without a condition, such as one that asks a human"})
}

// unmarked looks for texts that are written as they stand and read like expressions.
func (l *linter) unmarked(t *Transition, a Assignment) {
	var value any
	if a.Expression != "" || json.Unmarshal(a.Value, &value) != nil {
		return
	}
	if whole, ok := value.(string); ok && isExpression(whole) {
		return // written so on purpose, with "=="
	}
	text, hint := unread(value, true), `begin it with "="; if the text itself is meant, write an expression that yields it: "= '…'"`
	if text == "" {
		return
	}
	if _, ok := value.(string); !ok {
		hint = `write the whole value as one expression, such as "= [data.amount]": what is inside a list or an object is no expression`
	}
	l.report(pointer(t.Path()+"/set", a.Member), false, Problem{Code: "SET001",
		Message: fmt.Sprintf("transition %q writes the text %q into %q, and not what that reads", t.Name, clip(text, maxNameRunes), a.Member), Hint: hint})
}

// unread returns the first text in a value that reads like an expression, within a list or an
// object only with its "="; "" if none does.
func unread(value any, whole bool) string {
	switch v := value.(type) {
	case string:
		source, marked := strings.CutPrefix(strings.TrimSpace(v), "=")
		if (whole || marked) && len(expression.Reads(expression.Set, source)) > 0 {
			return v
		}
	case []any:
		for _, item := range v {
			if text := unread(item, false); text != "" {
				return text
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if text := unread(v[name], false); text != "" {
				return text
			}
		}
	}
	return ""
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
	}
}

// A readLint looks for members that are read and that nothing provides, that need not be there,
// or that never are what they are taken for.
type readLint struct {
	*linter
	input   *described // nil if the machine has none
	payload *described // of the transition whose expressions are looked at
	set     map[string]bool
}

// A described is what the schema of a variable says of it.
type described struct {
	*declared
	root any // the schema, nil if there is none
	words
}

// words are how findings speak of a schema.
type words struct {
	unknown, optional          string // codes
	name, doesNot, says, allow string
}

var (
	ofInput      = words{"INPUT001", "INPUT002", "input", "input does not", "input says", "input allows it"}
	ofParameters = words{"PARAM002", "PARAM002", "parameters", "parameters do not", "parameters say", "parameters allow it"}
)

func describe(schema json.RawMessage, w words) *described {
	d := &described{declared: newDeclared(), words: w}
	if schema != nil {
		_ = json.Unmarshal(schema, &d.root) // which has been compiled
		d.add(d.root, d.root, 0)
	}
	return d
}

func (r *readLint) proposers(path string, list []Specialist) {
	for i := range list {
		if s := &list[i]; s.Role == Proposer && isExpression(s.StrategyFn) {
			r.expression(fmt.Sprintf("%s/%d/strategyFn", path, i), expression.Propose, s.StrategyFn)
		}
	}
}

// expression looks at what an expression reads. given are reads of what has held before it is
// evaluated.
func (r *readLint) expression(path string, use expression.Use, source string, given ...expression.Read) {
	if source == "" {
		return
	}
	reads := expression.Reads(use, source)
	told := map[string]bool{}
	for _, read := range reads {
		d := r.input
		if read.Variable == "payload" {
			d = r.payload
		}
		if written := read.Variable == "data" && r.set[read.Path[0]]; written || d == nil || !r.provided(path, d, read) || !r.inside(path, use, d, read) {
			continue
		}
		if i := missing(d, read, slices.Concat(reads, given)); i > 0 {
			read.Path = read.Path[:i]
			if name := read.String(); !told[name] {
				told[name] = true
				r.missing(path, use, d, read)
			}
		}
	}
}

func (r *readLint) reports(path, code, hint, format string, args ...any) {
	r.report(path, false, Problem{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// provided reports a member of a variable that nothing provides.
func (r *readLint) provided(path string, d *described, read expression.Read) bool {
	member := read.Path[0]
	if d.root == nil || d.has(member) {
		return true
	}
	provides, known, hint := d.doesNot+" declare it", slices.Sorted(maps.Keys(d.names)), ""
	switch {
	case read.Variable == "data":
		provides += " and no transition sets it"
		known = append(known, slices.Sorted(maps.Keys(r.set))...)
	case read.Variable == "metaJson" && r.set[member]:
		hint = fmt.Sprintf("what transitions set is in data: data.%s", member)
	}
	hint = cmp.Or(hint, didYouMean(member, known), "declare it in the properties of "+d.name)
	r.reports(path, d.unknown, hint, "the expression reads %q of %s, and %s", member, read.Variable, provides)
	return false
}

// inside follows a read into the schemas of what it leads through, as far as these say
// what there is in properties and items. It reports what they have no place for.
func (r *readLint) inside(path string, use expression.Use, d *described, read expression.Read) bool {
	part := d.root
	for i, member := range read.Path {
		s, _ := part.(map[string]any)
		here := newDeclared()
		here.add(s, d.root, 0)
		of := (&expression.Read{Variable: read.Variable, Path: read.Path[:i]}).String()
		switch kind, _ := s["type"].(string); {
		case kind != "" && kind != "object" && kind != "array":
			what := fmt.Sprintf("reads %q", member)
			if member == expression.Element {
				what = "reads elements"
			}
			r.reports(path, d.unknown, fmt.Sprintf("read %s itself, or declare what it has", of), "the expression %s of %s, and %s that this is %s", what, of, d.says, article(kind))
			return false
		case member != expression.Element && i > 0 && len(here.names)+len(here.patterns) > 0 && !here.has(member):
			r.reports(path, d.unknown, cmp.Or(didYouMean(member, slices.Sorted(maps.Keys(here.names))), "declare it there"), "the expression reads %q of %s, and %s declare it", member, of, d.doesNot)
			return false
		}
		if part = within(s, member); part == nil {
			return true
		}
	}
	if s, ok := part.(map[string]any); ok {
		r.values(path, use, d, read, s)
	}
	return true
}

// within returns what a schema says of a member, or of the elements of a list; nil if that is
// nothing.
func within(s map[string]any, member string) any {
	if member != expression.Element {
		properties, _ := s["properties"].(map[string]any)
		return properties[member]
	}
	if s["type"] == "object" || s["prefixItems"] != nil { // names of members, or elements that are not all alike
		return nil
	}
	return s["items"]
}

// missing returns how many members of a path are read up to the first that need not be there
// and that none of the reads asks for; 0 if there is none.
func missing(d *described, read expression.Read, reads []expression.Read) int {
	part := d.root
	for i, member := range read.Path {
		s, _ := part.(map[string]any)
		here := newDeclared()
		here.add(s, d.root, 0)
		optional := here.names[member] && !here.required[member]
		if i == 0 && (d.root == nil || read.Variable == "data" && hasDefault(s, member)) {
			optional = d.root == nil
		}
		tested := slices.ContainsFunc(reads, func(o expression.Read) bool {
			return o.Tested && o.Variable == read.Variable && slices.Equal(o.Path, read.Path[:i+1])
		})
		if optional && !tested {
			return i + 1
		}
		if part = within(s, member); part == nil {
			return 0
		}
	}
	return 0
}

func hasDefault(schema map[string]any, member string) bool {
	s, _ := within(schema, member).(map[string]any)
	_, ok := s["default"]
	return ok
}

// missing reports a member that is read and need not be there.
func (r *readLint) missing(path string, use expression.Use, d *described, read expression.Read) {
	then, asked := map[expression.Use]string{
		expression.When: "the transition is closed",
		expression.Set:  "nothing is executed (set_failed)",
		expression.Due:  "no moment is known",
	}[use]
	if !asked {
		return
	}
	hint := "test for it with has(), or require it in " + d.name
	root, _ := d.root.(map[string]any)
	switch top := len(read.Path) == 1; {
	case top && read.Variable == "data":
		hint = "test for it with has(), require it in input, or give it a default there"
	case top && read.Variable == "metaJson" && hasDefault(root, read.Path[0]):
		hint = fmt.Sprintf("read data.%s, which has the default", read.Path[0])
	}
	requires := d.doesNot + " require it"
	if d.root == nil {
		requires = "no parameters require it"
	}
	r.reports(path, d.optional, hint, "the expression reads %s without has(), and %s: where it is missing %s", read.String(), requires, then)
}

// values reports what a member is compared with, or yielded as, and never is.
func (r *readLint) values(path string, use expression.Use, d *described, read expression.Read, schema map[string]any) {
	name := read.String()
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
			r.reports(path, d.unknown, fmt.Sprintf("compare it with %s", article(kind)), "the expression compares %s with %s, and %s that it is %s", name, article(typeOf(v)), d.says, article(kind))
		case limited && !slices.Contains(enum, v):
			r.reports(path, d.unknown, cmp.Or(didYouMean(text, texts), "add it to the enum, or compare with what is there"), "the expression compares %s with %#v, which is none of the values that %s", name, v, d.allow)
		}
	}
	want := map[expression.Use]string{expression.When: "boolean", expression.Subject: "string", expression.Due: "string", expression.Propose: "string"}[use]
	if read.Yielded && kind != "" && want != "" && kind != want {
		hint := fmt.Sprintf("yield %s", article(want))
		if use == expression.Subject {
			hint = fmt.Sprintf("string(%s) makes a text of it", name)
		}
		r.reports(path, d.unknown, hint, "the expression yields %s, and %s that it is %s, not %s", name, d.says, article(kind), article(want))
	}
}

// declared is what a schema of an object says of its members' names.
type declared struct {
	names    map[string]bool
	required map[string]bool // those that have to be there, in whatever case
	patterns []*regexp.Regexp
	anything bool // it can have members of any name, which it describes
}

func (d *declared) has(name string) bool {
	return d.anything || d.names[name] || slices.ContainsFunc(d.patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

func newDeclared() *declared { return &declared{names: map[string]bool{}, required: map[string]bool{}} }

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
			d.names[text], d.required[text] = true, true
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
	dependent, _ := s["dependentRequired"].(map[string]any)
	for _, names := range dependent {
		d.add(map[string]any{"required": names}, root, depth+1)
	}
	dependent, _ = s["dependentSchemas"].(map[string]any)
	for _, sub := range dependent {
		d.add(sub, root, depth+1)
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
