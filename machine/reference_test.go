package machine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/strategies"
)

//go:generate go test -run ^TestReference$ -write-reference .

var writeReference = flag.Bool("write-reference", false, "write docs/machine-file.md")

const referencePath = "../docs/machine-file.md"

// TestReference compares docs/machine-file.md with the published schema, of which
// it is made but for the introduction.
func TestReference(t *testing.T) {
	want := strings.ReplaceAll(introduction, "~", "`") + reference(t)
	if *writeReference {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the schema says: go generate ./machine writes it", referencePath)
	}
}

// sections are the objects of a machine file in reading order, by the name of
// their definition or, where they have none, by their title.
var sections = []string{"", "state", "due", "transitionObject", "approvals", "specialist", "solicitObject", "risk", "collapse", "audit", "secondHuman",
	"guards", "limits", "toolCalls", "Sequence", "Tool", "cost", "price", "tier", "loopDetection", "Cycle", "Near duplicates",
	"packs", "pack", "batchLoop", "Ladder", "budget", "retry", "store", "classifier", "breaker", "truth", "thresholds", "prmOptions"}

// values are the definitions that are no objects, and what the tables call them.
var values = []struct{ def, called string }{
	{"name", "name"}, {"threshold", "threshold"}, {"duration", "duration"}, {"dollars", "dollars"}, {"count", "count"}, {"url", "address"}, {"share", "share"}, {"quorum", "quorum"}, {"expression", "expression"}, {"humans", "humans"},
}

// A page is a reference being written.
type page struct {
	*testing.T
	bytes.Buffer
	root   ordered
	linked map[string]bool // sections that a type links to
}

// reference returns the objects of a machine file with all their fields, as
// Markdown.
func reference(t *testing.T) string {
	t.Helper()
	p := &page{T: t, root: readOrdered(t, machine.FileSchema()), linked: map[string]bool{"": true}}
	p.WriteString("\n## Every object\n\n")
	for _, name := range sections {
		fmt.Fprintf(p, "- [%s](#%s)\n", p.title(name), anchor(p.title(name)))
	}
	fmt.Fprintf(p, "- [%s](#%s)\n", valuesTitle, anchor(valuesTitle))
	for _, name := range sections {
		p.section(name)
	}
	p.values()
	for _, name := range sections {
		delete(p.linked, name)
	}
	if len(p.linked) > 0 {
		t.Errorf("no section of the reference is about %v", p.linked)
	}
	return p.String()
}

const valuesTitle = "Values"

func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// title returns the heading of a section.
func (p *page) title(name string) string {
	if name == "" {
		return "Machine"
	}
	return p.object(name).text("title")
}

// object returns the schema of a section.
func (p *page) object(name string) ordered {
	if name == "" {
		return p.root
	}
	if o := p.root.get("$defs").get(name); o != nil {
		return o
	}
	o := p.root.find(name)
	if o == nil {
		p.Fatalf("the schema has no object %q", name)
	}
	return o
}

// section writes one object and its fields.
func (p *page) section(name string) {
	o := p.object(name)
	fmt.Fprintf(p, "\n## %s\n\n", p.title(name))
	if text := o.text("description"); text != "" {
		fmt.Fprintf(p, "%s\n\n", text)
	}
	if name == "guards" {
		p.WriteString(p.stateGuards())
	}
	p.WriteString("| field | type | default | what it is |\n|---|---|---|---|\n")
	for _, field := range o.get("properties") {
		schema := p.nested(field.value)
		text := p.describe(schema)
		if text == "" {
			p.Errorf("%s.%s has no description", name, field.name)
		}
		if examples := schema.raw("examples"); examples != nil {
			text += " Example: " + p.examples(examples)
		}
		fmt.Fprintf(p, "| `%s` | %s | %s | %s |\n", field.name, p.typeOf(schema), p.defaultOf(name, o, field.name, schema), strings.ReplaceAll(text, "|", `\|`))
	}
}

// stateGuards says what a state's guards have not.
func (p *page) stateGuards() string {
	var without []string
	state := p.object("stateGuards").get("properties")
	for _, field := range p.object("guards").get("properties") {
		if !slices.ContainsFunc(state, func(m orderedMember) bool { return m.name == field.name }) {
			without = append(without, "`"+field.name+"`")
		}
	}
	last := len(without) - 1
	return fmt.Sprintf("In the place of the object a text may name a file that holds it, relative to the\nmachine file. The guards of a state have the same fields but for %s and %s.\n[guards.md](guards.md) says what to set first, and what each guard says.\n\n", strings.Join(without[:last], ", "), without[last])
}

// describe returns the description of a field, or of what it refers to.
func (p *page) describe(schema ordered) string {
	if text := schema.text("description"); text != "" {
		return text
	}
	if ref := schema.ref(); ref != "" {
		return p.describe(p.object(ref))
	}
	return ""
}

// typeOf says what a value may be, in words and links.
func (p *page) typeOf(schema ordered) string {
	if ref := schema.ref(); ref != "" {
		return p.typeOfRef(ref)
	}
	if list := schema.raw("enum"); list != nil {
		return p.choices(list)
	}
	if alternatives := schema.raw("anyOf"); alternatives != nil {
		var parts []string
		for _, a := range readList(p, alternatives) {
			if part := p.typeOf(p.nested(a)); part != "" {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, " or ")
	}
	if schema.get("properties") != nil {
		return p.link(schema.text("title"))
	}
	return p.plainType(schema)
}

func (p *page) typeOfRef(ref string) string {
	for _, v := range values {
		if v.def == ref {
			return fmt.Sprintf("[%s](#%s)", v.called, anchor(valuesTitle))
		}
	}
	switch ref {
	case "stateGuards":
		return p.link("guards")
	case "machineSpecialist", "stateSpecialist":
		return p.link("specialist")
	}
	if o := p.object(ref); o.get("properties") == nil {
		return p.typeOf(o)
	}
	return p.link(ref)
}

// link links to a section.
func (p *page) link(name string) string {
	p.linked[name] = true
	title := p.title(name)
	return fmt.Sprintf("[%s](#%s)", strings.ToLower(title), anchor(title))
}

// plainType is typeOf for schemas of one JSON type.
func (p *page) plainType(schema ordered) string {
	switch kind := schema.text("type"); kind {
	case "array":
		return "list of " + p.typeOf(p.nested(schema.raw("items")))
	case "object":
		if schema.text("title") == "JSON Schema" || schema.raw("examples") != nil && schema.raw("additionalProperties") == nil {
			return "JSON Schema"
		}
		return "by name: " + p.typeOf(p.nested(schema.raw("additionalProperties")))
	case "string":
		return "text"
	case "null":
		return "null"
	case "boolean":
		return "true or false"
	case "integer", "number":
		return map[string]string{"integer": "whole number", "number": "number"}[kind] + p.bounds(schema)
	case "":
		if schema.raw("maxLength") != nil { // the empty text, which counts as absent
			return ""
		}
		return "any"
	default:
		p.Errorf("the reference has no words for the type %q", kind)
		return ""
	}
}

// bounds says between what a number must be.
func (p *page) bounds(schema ordered) string {
	low, high := string(schema.raw("minimum")), string(schema.raw("maximum"))
	if above := schema.raw("exclusiveMinimum"); above != nil {
		return fmt.Sprintf(" above %s, up to %s", above, high)
	}
	if high == "9007199254740992" {
		return " from " + low
	}
	return fmt.Sprintf(" from %s to %s", low, high)
}

func (p *page) choices(list []byte) string {
	var parts []string
	for _, item := range readList(p, list) {
		parts = append(parts, "`"+strings.Trim(string(item), `"`)+"`")
	}
	return strings.Join(parts, ", ")
}

func (p *page) examples(list []byte) string {
	var parts []string
	for _, item := range readList(p, list) {
		var one bytes.Buffer
		if err := json.Compact(&one, item); err != nil {
			p.Fatal(err)
		}
		parts = append(parts, "`"+one.String()+"`")
	}
	return strings.Join(parts, ", ") + "."
}

// defaultOf says what a field is if it is left out.
func (p *page) defaultOf(section string, o ordered, name string, schema ordered) string {
	if slices.ContainsFunc(readList(p, o.raw("required")), func(r json.RawMessage) bool { return string(r) == `"`+name+`"` }) {
		return "**required**"
	}
	if byProfile := profileDefaults[section+"."+name]; byProfile != nil {
		strict, compat := byProfile(guard.Defaults(guard.Strict)), byProfile(guard.Defaults(guard.Compat))
		return fmt.Sprintf("`%s`; compat: `%s`", inJSON(p, strict), inJSON(p, compat))
	}
	if section == "" && name == "goalState" {
		return "**required**"
	}
	if d := schema.raw("default"); d != nil {
		return "`" + strings.Trim(string(d), `"`) + "`"
	}
	return ""
}

// profileDefaults are the defaults that differ between the profiles of guards.
var profileDefaults = map[string]func(*guard.Config) any{
	"limits.cap_basis":                 func(c *guard.Config) any { return c.Limits.CapBasis },
	"cost.on_unknown_model":            func(c *guard.Config) any { return c.Cost.OnUnknownModel },
	"loopDetection.mode":               func(c *guard.Config) any { return c.Loop.Mode },
	"loopDetection.visit_counting":     func(c *guard.Config) any { return c.Loop.VisitCounting },
	"loopDetection.progress_aware":     func(c *guard.Config) any { return c.Loop.ProgressAware },
	"loopDetection.normalize":          func(c *guard.Config) any { return c.Loop.Normalize },
	"loopDetection.max_output_repeats": func(c *guard.Config) any { return c.Loop.MaxOutputRepeats },
	"loopDetection.cycle": func(c *guard.Config) any {
		if c.Loop.Cycle == nil {
			return false
		}
		return map[string]any{"max_period": c.Loop.Cycle.MaxPeriod, "repeats": c.Loop.Cycle.Repeats}
	},
	"loopDetection.near": func(c *guard.Config) any {
		if c.Loop.Near == nil {
			return false
		}
		return map[string]any{"jaccard": c.Loop.Near.Jaccard, "repeats": c.Loop.Near.Repeats}
	},
}

func inJSON(t testing.TB, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(text), `"`)
}

// values writes the kinds of values that have a name of their own.
func (p *page) values() {
	fmt.Fprintf(p, "\n## %s\n\n| the tables say | that is |\n|---|---|\n", valuesTitle)
	for _, v := range values {
		o := p.object(v.def)
		text := o.text("description")
		switch {
		case v.def == "share":
			text = "A number above 0, up to 1."
		case v.def == "count":
			text = "A whole number from 0."
		case v.def == "dollars":
			text = "An amount of US dollars from 0."
		case text == "":
			text = "A number" + p.bounds(o) + "."
		}
		if examples := o.raw("examples"); examples != nil {
			text += " Example: " + p.examples(examples)
		}
		fmt.Fprintf(p, "| %s | %s |\n", v.called, text)
	}
}

// An ordered object keeps its members in the order in which they are written. It
// is nil if it is none.
type ordered []orderedMember

type orderedMember struct {
	name  string
	value json.RawMessage
}

func readOrdered(t testing.TB, text []byte) (o ordered) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("%s is no object: %v", text, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		m := orderedMember{name: name.(string)}
		if err := d.Decode(&m.value); err != nil {
			t.Fatal(err)
		}
		o = append(o, m)
	}
	return o
}

// nested returns a schema; true is the one that says nothing.
func (p *page) nested(text []byte) ordered {
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	return readOrdered(p, text)
}

func readList(t testing.TB, text []byte) (list []json.RawMessage) {
	t.Helper()
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (o ordered) raw(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// get returns a member that is an object, or nil.
func (o ordered) get(name string) (member ordered) {
	v := o.raw(name)
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(v))
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		m := orderedMember{name: key.(string)}
		_ = d.Decode(&m.value) // it was read before
		member = append(member, m)
	}
	return member
}

func (o ordered) text(name string) (s string) {
	_ = json.Unmarshal(o.raw(name), &s) // what is no text has none
	return s
}

// ref returns the name of the definition that a schema is.
func (o ordered) ref() string { return strings.TrimPrefix(o.text("$ref"), "#/$defs/") }

// find returns the object of that title, however deep it is.
func (o ordered) find(title string) ordered {
	if o.text("title") == title && o.get("properties") != nil {
		return o
	}
	for _, m := range o {
		for _, inside := range objectsIn(m.value) {
			if found := inside.find(title); found != nil {
				return found
			}
		}
	}
	return nil
}

// objectsIn returns an object, or the objects of a list.
func objectsIn(text []byte) (list []ordered) {
	var items []json.RawMessage
	switch {
	case len(text) == 0:
	case text[0] == '{':
		return []ordered{ordered{{"", text}}.get("")}
	case text[0] == '[' && json.Unmarshal(text, &items) == nil:
		for _, item := range items {
			list = append(list, objectsIn(item)...)
		}
	}
	return list
}

// blocks returns the fenced blocks of the introduction in a language.
func blocks(language string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^~~~"+language+"\n(.*?)^~~~$").FindAllStringSubmatch(introduction, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestReferenceExamples loads every machine that the introduction shows.
func TestReferenceExamples(t *testing.T) {
	for language, want := range map[string]int{"json": 1, "yaml": 5} {
		shown := blocks(language)
		if len(shown) != want {
			t.Errorf("the introduction shows %d machines in %s, not %d", len(shown), language, want)
		}
		for _, text := range shown {
			m, err := machine.Parse("machine."+language, []byte(text), checks())
			if err != nil {
				t.Error(err)
				continue
			}
			for _, p := range m.Lint(machine.LintOptions{}) {
				t.Error(p.Warning())
			}
		}
	}
}

// TestReferenceExpressions checks every expression of the introduction in the
// role of the heading above it. Package strategies checks the variables.
func TestReferenceExpressions(t *testing.T) {
	transitions := []string{"approve", "ask", "reject"}
	for _, role := range []machine.Role{machine.Proposer, machine.Arbiter} {
		_, part, found := strings.Cut(introduction, "\n### Expressions of "+string(role)+"s\n")
		part, _, _ = strings.Cut(part, "\n##")
		shown := regexp.MustCompile("~(= [^~]+)~").FindAllStringSubmatch(part, -1)
		if !found || len(shown) < 3 {
			t.Fatalf("the introduction has %d expressions of a %s", len(shown), role)
		}
		for _, m := range shown {
			if err := strategies.CheckExpression(role, m[1], transitions); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	}
	for heading, use := range map[string]expression.Use{"conditions": expression.When, "assignments": expression.Set, "subjects": expression.Subject, "due": expression.Due} {
		_, part, found := strings.Cut(introduction, "\n### Expressions of "+heading+"\n")
		part, _, _ = strings.Cut(part, "\n##")
		shown := regexp.MustCompile("~(= [^~]+)~").FindAllStringSubmatch(part, -1)
		if !found || len(shown) < 3 {
			t.Fatalf("the introduction has %d expressions of %s", len(shown), heading)
		}
		for _, m := range shown {
			if err := expression.Check(use, m[1], nil); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	}
	long := "= \"" + strings.Repeat("a", 1024-len("= \"\"")) + "\""
	if err := strategies.CheckExpression(machine.Proposer, long, []string{strings.Trim(long, `= "`)}); err != nil {
		t.Error(err)
	}
	if err := strategies.CheckExpression(machine.Proposer, long+" ", nil); err == nil {
		t.Error("an expression may have more than 1,024 characters")
	}
}

// TestReferenceYAML loads what the introduction says about YAML, and about names
// that begin with x-.
func TestReferenceYAML(t *testing.T) {
	const head = "machineName: m\ninitialState: a\ngoalState: b\n"
	for _, c := range []struct{ name, text, refused string }{
		{"plain", head + "states: {a: {transitions: {t: b}}, b: {}}", ""},
		{"keys are text as written", "machineName: m\ninitialState: 'no'\ngoalState: '010'\nstates: {no: {transitions: {on: 010}}, 010: {}}", "begins with 0"},
		{"keys are text as written, values quoted", "machineName: m\ninitialState: 'no'\ngoalState: '010'\nstates: {no: {transitions: {on: '010'}}, 010: {}}", ""},
		{"an alias", head + "states: {a: {prompt: &p why, transitions: {t: c}}, c: {prompt: *p, transitions: {t: b}}, b: {}}", ""},
		{"a merge key", head + "states: {a: &s {transitions: {t: b}}, c: {<<: *s}, b: {}}", "merge keys"},
		{"two documents", head + "states: {a: {transitions: {t: b}}, b: {}}\n---\n{}", "second document"},
		{"a tag", head + "states: {a: {prompt: !secret x, transitions: {t: b}}, b: {}}", "the tag !secret"},
		{"x- on a machine", head + "x-team: [a, {b: 1}]\nstates: {a: {transitions: {t: b}}, b: {}}", ""},
		{"x- on a state and a transition", head + "states: {a: {x-n: 1, transitions: {t: {target: b, x-n: 1}}}, b: {}}", ""},
		{"x- on a specialist", head + "specialists: [{role: arbiter, specialistId: r, x-n: 1}]\nstates: {a: {transitions: {t: b}}, b: {}}", ""},
		{"x- in guards", head + "guards: {x-n: 1, limits: {x-n: 1}, loop_detection: {x-n: 1, cycle: {x-n: 1}}}\nstates: {a: {transitions: {t: b}}, b: {}}", ""},
		{"x- in the batch loop guard", head + "guards: {batch_loop: {x-n: 1}}\nstates: {a: {transitions: {t: b}}, b: {}}", "x-n"},
		{"x- in a ladder", head + "guards: {batch_loop: {ladder: {steer: 2, stop: 3, x-n: 1}}}\nstates: {a: {transitions: {t: b}}, b: {}}", "x-n"},
		{"a state called x-", head + "states: {a: {transitions: {x-t: x-s}}, x-s: {transitions: {t: b}}, b: {}}", ""},
		{"a state called x- is checked", head + "states: {a: {transitions: {t: b}}, b: {}, x-s: {nonsense: 1}}", "nonsense"},
		{"$schema", "$schema: https://example.com\n" + head + "states: {a: {transitions: {t: b}}, b: {}}", ""},
	} {
		_, err := machine.Parse("m.yaml", []byte(c.text), checks())
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if m, err := machine.Parse("m.yaml", []byte(head+"states: {a: {transitions: {z: b, '10': a, '2': b}}, b: {}}"), checks()); err != nil || m.Initial().Transitions[1].Name != "10" {
		t.Errorf("transitions lose their order: %v", err)
	}
}
