// Package payloads reads the payloads of rulings and proposals by the JSON Schema of a
// transition's parameters, member by member, and makes examples and templates of it.
package payloads

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jsontext"
)

// A Schema is what is looked at in a JSON Schema.
type Schema struct {
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Default     json.RawMessage   `json:"default"`
	Examples    []json.RawMessage `json:"examples"`
	Minimum     json.RawMessage   `json:"minimum"`
	Above       *float64          `json:"exclusiveMinimum"`
	Pattern     string            `json:"pattern"`
	MinLength   float64           `json:"minLength"`
	Required    []string          `json:"required"`
	Properties  json.RawMessage   `json:"properties"`
}

// Member returns the schema of a member; one that is not declared says nothing.
func (p *Schema) Member(name string) (m Schema) {
	_ = json.Unmarshal(jsontext.ReadObject(p.Properties).Get(name), &m) // nor does true
	return m
}

// RequiredNames returns the names of the members that have to be there, each once.
func (p *Schema) RequiredNames() (names []string) {
	for _, name := range p.Required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kinds returns the types that a schema names.
func (p *Schema) kinds() (names []string) {
	switch t := p.Type.(type) {
	case string:
		return []string{t}
	case []any:
		for _, v := range t {
			names = append(names, fmt.Sprint(v))
		}
	}
	return names
}

// Read returns a value as JSON, read by its type if the schema names one: 42 is a text
// where a text is asked for. Of no type or several it is JSON if it parses, else text.
func (p *Schema) Read(value string) (json.RawMessage, error) {
	for _, v := range append(slices.Clip(p.Enum), p.Const) {
		var text string
		if json.Unmarshal(v, &text) == nil && text == value {
			return v, nil
		}
	}
	kinds := p.kinds()
	if len(kinds) != 1 {
		return Value(value)
	}
	if kinds[0] == "string" {
		return jsontext.AppendString(nil, value), nil
	}
	text, err := jsontext.Tidy([]byte(value))
	if err != nil && json.Valid([]byte(value)) {
		return nil, err
	}
	if err != nil || cmp.Or(jsonKinds[text[0]], "number") != strings.Replace(kinds[0], "integer", "number", 1) {
		return nil, fmt.Errorf("%q is no %s, and it has to be one", value, kinds[0])
	}
	return text, nil
}

// object returns a JSON object with the members given and the others that a schema
// requires.
func (p Schema) object(given jsontext.Object, value func(Schema) string) string {
	var missing []jsontext.Member
	for _, name := range p.RequiredNames() {
		if !given.Has(name) {
			missing = append(missing, jsontext.Member{Name: name, Value: json.RawMessage(value(p.Member(name)))})
		}
	}
	return string(given.With(missing).JSON())
}

// Blank returns the only value that a schema accepts or its default, else a placeholder.
func (p Schema) Blank() string {
	switch {
	case p.Const != nil:
		return string(p.Const)
	case p.Default != nil:
		return string(p.Default)
	case len(p.Enum) == 1:
		return string(p.Enum[0])
	case len(p.Required) > 0 && slices.Equal(p.kinds(), []string{"object"}):
		return p.object(jsontext.Object{}, Schema.Blank)
	}
	return Placeholder
}

// jsonKinds are those of JSON values by their first byte; all others are numbers.
var jsonKinds = map[byte]string{'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null"}

// Example returns a value that the schema is likely to accept.
func (p Schema) Example() string {
	for _, list := range [][]json.RawMessage{{p.Const}, {p.Default}, p.Examples, p.Enum} {
		if len(list) > 0 && list[0] != nil {
			return string(list[0])
		}
	}
	switch kinds := p.kinds(); {
	case len(kinds) == 0:
		return "null"
	case kinds[0] == "string":
		return string(jsontext.AppendString(nil, p.text()))
	case kinds[0] == "number" || kinds[0] == "integer":
		return p.number()
	case kinds[0] == "boolean":
		return "false"
	case kinds[0] == "array":
		return "[]"
	case kinds[0] == "object":
		return p.object(jsontext.Object{}, Schema.Example)
	}
	return "null"
}

// number returns the smallest number that the schema allows, or the next whole one.
func (p Schema) number() string {
	switch {
	case p.Minimum != nil:
		return string(p.Minimum)
	case p.Above != nil:
		return strconv.FormatFloat(math.Floor(*p.Above)+1, 'f', -1, 64)
	}
	return "0"
}

// texts are tried where a text has to match a pattern.
var texts = []string{"", "x", "X", "Example", "1", "123456", "EX-1", "EX-1234", "2026-01-31", "name@example.com", "https://example.com"}

// text returns a text of the length and the pattern that the schema asks for; "" if none
// is known.
func (p Schema) text() string {
	least := int(min(max(p.MinLength, 0), MaxTemplate))
	pattern, err := regexp.Compile(p.Pattern)
	if err != nil {
		return ""
	}
	for _, text := range append([]string{strings.Repeat("x", least)}, texts...) {
		if len(text) >= least && pattern.MatchString(text) {
			return text
		}
	}
	return ""
}

// Simple reports whether a payload can be asked for member by member: it is an object,
// and nothing is required in it but texts, numbers and the like.
func (p *Schema) Simple(so json.RawMessage) bool {
	declared := jsontext.ReadObject(p.Properties)
	if len(declared.Members()) == 0 || so != nil && so[0] != '{' {
		return false
	}
	return !slices.ContainsFunc(p.RequiredNames(), func(name string) bool {
		m := p.Member(name)
		return !declared.Has(name) || !m.Scalar()
	})
}

// Scalar reports whether a schema is of a value that is typed as it is.
func (p *Schema) Scalar() bool {
	kinds := p.kinds()
	if len(p.Enum) > 0 || p.Const != nil {
		return !slices.ContainsFunc(p.Enum, func(v json.RawMessage) bool { return v[0] == '{' || v[0] == '[' })
	}
	return len(kinds) > 0 && !slices.Contains(kinds, "object") && !slices.Contains(kinds, "array")
}

// Typed reads what was typed for a member. A text may stand in quotes, as one has to
// that would mean something else.
func (p *Schema) Typed(line string) (json.RawMessage, error) {
	var text string
	if json.Unmarshal([]byte(line), &text) == nil {
		line = text
	}
	return p.Read(line)
}

// Prompt returns what a member is asked for with.
func (p *Schema) Prompt(name string, so json.RawMessage, required bool) string {
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
	text := "  " + name + render.When(what != "", " ("+strings.TrimPrefix(what, "; ")+")")
	if so != nil {
		text += " [" + render.ValueText(so) + "]"
	}
	return render.Clean(text) + ": "
}

// Value returns a value as JSON: as it is if it is JSON, else as a string.
func Value(value string) ([]byte, error) {
	if json.Valid([]byte(value)) {
		return jsontext.Tidy([]byte(value))
	}
	return json.Marshal(value)
}
