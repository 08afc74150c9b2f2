package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
)

// payload asks for the payload of a choice, if its parameters speak of one: member by
// member where all that are required are simple, else as JSON. What goes with it so far
// is offered. ok is false if the question is left open.
func (d *dialogue) payload(t session.InboxTransition) (payload json.RawMessage, ok bool) {
	if len(t.Parameters) == 0 {
		return t.MetaJSON, true // of a ruling that waits for another, with which this one is to agree
	}
	var s property
	if json.Unmarshal(t.Parameters, &s) == nil && s.simple(t.MetaJSON) {
		return d.members(t, &s)
	}
	return d.wholePayload(t)
}

// simple reports whether a payload can be asked for member by member: it is an object,
// and nothing is required in it but texts, numbers and the like.
func (p *property) simple(so json.RawMessage) bool {
	declared := objectOf(p.Properties)
	if len(declared) == 0 || so != nil && so[0] != '{' {
		return false
	}
	for _, name := range p.required() {
		if m := p.member(name); !declared.has(name) || !m.scalar() {
			return false
		}
	}
	return true
}

// scalar reports whether a schema is of a value that is typed as it is.
func (p *property) scalar() bool {
	kinds := p.kinds()
	if len(p.Enum) > 0 || p.Const != nil {
		return !slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return v[0] == '{' || v[0] == '[' })
	}
	return len(kinds) > 0 && !slices.Contains(kinds, "object") && !slices.Contains(kinds, "array")
}

// members asks for the members of an object one by one: those that are required, and
// the others that are simple. What else was proposed stays as it is.
func (d *dialogue) members(t session.InboxTransition, s *property) (json.RawMessage, bool) {
	d.say("%s takes parameters; q leaves it open, - leaves one out:\n", render.Clean(t.Name))
	required, so := s.required(), objectOf(t.MetaJSON)
	names := slices.Clone(required)
	for _, m := range objectOf(s.Properties) {
		if p := s.member(m.name); p.scalar() && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	var o object
	for _, name := range names {
		value, ok := d.member(name, s.member(name), so.get(name), slices.Contains(required, name))
		if !ok {
			return nil, false
		}
		if value != nil {
			o = append(o, objectMember{name, value})
		}
	}
	for _, m := range so {
		if !slices.Contains(names, m.name) {
			o = append(o, m)
		}
	}
	if len(o) == 0 && !t.MetaJSONRequired {
		return nil, true
	}
	return o.json(), true
}

// member asks for one member. value is nil if it is left out; ok is false if the question
// is left open.
func (d *dialogue) member(name string, p property, so json.RawMessage, required bool) (value json.RawMessage, ok bool) {
	if so == nil {
		so = p.Default
	}
	if so == nil {
		so = p.Const
	}
	for {
		line, ok := d.read(p.prompt(name, so, required))
		switch {
		case !ok || line == "q":
			return nil, false
		case line == "" && so != nil:
			return so, true
		case !required && (line == "" || line == "-"):
			return nil, true
		case line == "":
			d.say("%s is required.\n", render.Clean(name))
			continue
		}
		value, err := p.typed(line)
		if err == nil {
			return value, true
		}
		d.say("%s.\n", render.Clean(err.Error()))
	}
}

// typed reads what was typed for a member. A text may stand in quotes, as one has to
// that would mean something else.
func (p *property) typed(line string) (json.RawMessage, error) {
	var text string
	if json.Unmarshal([]byte(line), &text) == nil {
		line = text
	}
	return p.read(line)
}

// prompt returns what a member is asked for with.
func (p *property) prompt(name string, so json.RawMessage, required bool) string {
	what := strings.Join(p.kinds(), " or ")
	if len(p.Enum) > 0 {
		texts := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			texts[i] = render.ValueText(v)
		}
		what = strings.Join(texts, ", ")
	}
	if p.Description != "" {
		what = strings.TrimPrefix(what+"; "+p.Description, "; ")
	}
	if !required {
		what += "; optional"
	}
	text := "  " + name
	if what != "" {
		text += " (" + strings.TrimPrefix(what, "; ") + ")"
	}
	if so != nil {
		text += " [" + render.ValueText(so) + "]"
	}
	return render.Clean(text) + ": "
}

// wholePayload asks for a payload as JSON.
func (d *dialogue) wholePayload(t session.InboxTransition) (json.RawMessage, bool) {
	d.say("%s takes parameters: %s\n", render.Clean(t.Name), render.Clean(string(t.Parameters)))
	empty := "empty for none"
	if t.MetaJSON != nil {
		d.say("So far: %s\n", render.Clean(string(t.MetaJSON)))
		empty = "empty for that"
	}
	for {
		line, ok := d.read("Parameters as JSON (" + empty + ", q to leave it open): ")
		if !ok || line == "q" {
			return nil, false
		}
		if line == "" {
			return t.MetaJSON, true
		}
		value, err := exact.Tidy([]byte(line))
		if err == nil {
			return value, true
		}
		example := skeleton(t.Parameters)
		if example == "" {
			example = "{}"
		}
		d.say("That is not JSON; an example: %s\n", render.Clean(example))
	}
}
