package cli

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// What is printed to whoever gave no payload, or one that does not fit: a command with
// one that does. An example is made of the parameters, then held to them. Not every
// schema gives one away, since that of a pattern or of two bounds may be anything:
// then the command has the names, and a placeholder for each value.

// payloadHint says what the parameters of a transition are, and a command that gives a
// payload which satisfies them: what goes with it so far, or what was given and an
// example of the rest. Where no example satisfies them, it is to be filled in. "" if it
// has no parameters.
func (a *app) payloadHint(name string, t *machine.Transition, c refusedChoice) string {
	if t == nil || t.Parameters == nil {
		return ""
	}
	schema := t.Parameters.String()
	hint := "its parameters are " + schema
	command := func(payload string) string {
		return a.Command(name, []string{c.question.SessionID, t.Name}, append(c.words, "--data", payload)...).String()
	}
	choice := choiceOf(c.question, t.Name)
	for _, passes := range []string{string(choice.MetaJSON), completed(schema, c.given, property.example), completed(schema, nil, property.example), "{}"} {
		if passes != "" && len(passes) <= maxTemplate && t.Parameters.Validate([]byte(passes)) == nil {
			return hint + "; for example: " + command(passes)
		}
	}
	blank := completed(schema, c.given, property.blank)
	if !strings.Contains(blank, placeholder) || len(blank) > maxTemplate { // all is there, and something of it is wrong
		blank = completed(schema, nil, property.blank)
	}
	if blank == "" || len(blank) > maxTemplate {
		blank = placeholder
	}
	return hint + "; with values in the place of each " + placeholder + ": " + command(blank)
}

// skeleton returns an object with a value for each member that a schema requires, which
// it is likely to accept; "" if it requires none.
func skeleton(schema json.RawMessage) string {
	return completed(string(schema), nil, property.example)
}

// completed returns the members of a payload and a value for each other one that a
// schema requires; "" if it requires none.
func completed(schema string, given json.RawMessage, value func(property) string) string {
	var s property
	if schema == "" || json.Unmarshal([]byte(schema), &s) != nil || len(s.Required) == 0 {
		return ""
	}
	return s.object(objectOf(given), value)
}

// example returns a value that the schema is likely to accept.
func (p property) example() string {
	for _, list := range [][]json.RawMessage{{p.Const}, {p.Default}, p.Examples, p.Enum} {
		if len(list) > 0 && list[0] != nil {
			return string(list[0])
		}
	}
	switch kinds := p.kinds(); {
	case len(kinds) == 0:
		return "null"
	case kinds[0] == "string":
		return string(exact.AppendString(nil, p.text()))
	case kinds[0] == "number" || kinds[0] == "integer":
		return p.number()
	case kinds[0] == "boolean":
		return "false"
	case kinds[0] == "array":
		return "[]"
	case kinds[0] == "object":
		return p.object(nil, property.example)
	}
	return "null"
}

// number returns the smallest number that the schema allows, or the next whole one.
func (p property) number() string {
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
func (p property) text() string {
	least := int(min(max(p.MinLength, 0), maxTemplate))
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
