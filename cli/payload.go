package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// The payload of a ruling or a proposal, which is its metaJson: how it is given on the
// command line, and what is printed for people to fill in.

// maxPayload is how much of stdin is read as a payload; more is refused anyhow.
const maxPayload = 64 << 10

// payload reads what --data gives: one JSON value, one on stdin (-), or members of an
// object (name=value), each read by its type in the parameters of the transition, which
// may be nil. It returns nil if there is none.
func (a *app) payload(texts []string, t *machine.Transition) (json.RawMessage, error) {
	switch {
	case len(texts) == 0, len(texts) == 1 && texts[0] == "":
		return nil, nil
	case len(texts) == 1 && texts[0] == "-":
		return a.stdinPayload()
	case len(texts) == 1 && !isMember(texts[0]):
		return parsePayload("--data", texts[0])
	}
	var s property
	if t != nil && t.Parameters != nil {
		_ = json.Unmarshal([]byte(t.Parameters.String()), &s) // true and false say nothing of members
	}
	return s.members(texts)
}

func (a *app) stdinPayload() (json.RawMessage, error) {
	data, err := io.ReadAll(io.LimitReader(a.in, maxPayload+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxPayload:
		return nil, usage("--data -: stdin holds more than %d bytes", maxPayload)
	}
	return parsePayload("--data -: stdin", string(data))
}

func parsePayload(what, text string) (json.RawMessage, error) {
	value, err := exact.Tidy([]byte(text))
	switch {
	case err == nil:
		return value, nil
	case strings.Contains(text, placeholder):
		return nil, hinted(usage("%s still has a %s where a value belongs", what, placeholder), "write a value in the place of each %s", placeholder)
	}
	return nil, hinted(usage("%s is not one JSON value: %v", what, err), `for example --data '{"amount":120}' or --data amount=120`)
}

// isMember reports whether a text is name=value, and not JSON that has a = in it.
func isMember(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	return ok && name != "" && !strings.ContainsAny(text[:1], "{[\"")
}

// members makes an object of texts that are name=value.
func (p *property) members(texts []string) (json.RawMessage, error) {
	var o object
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		switch {
		case !isMember(text):
			return nil, hinted(usage("--data %q is not name=value, as the others are", text), "give one JSON value, or each member for itself")
		case o.has(name):
			return nil, usage("--data gives %q twice", name)
		}
		member := p.member(name)
		v, err := member.read(value)
		if err != nil {
			return nil, usage("--data %s: %v", name, err)
		}
		o = append(o, objectMember{name, v})
	}
	return o.json(), nil
}

// An object is a JSON object whose members keep their order.
type object []objectMember

type objectMember struct {
	name  string
	value json.RawMessage
}

// objectOf returns the members of a JSON object; nil if it is none.
func objectOf(text json.RawMessage) (o object) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil
		}
		o = append(o, objectMember{fmt.Sprint(name), value})
	}
	return o
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m objectMember) bool { return m.name == name })
}

func (o object) has(name string) bool { return o.index(name) >= 0 }

// get returns a member, nil if there is none of that name.
func (o object) get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].value
	}
	return nil
}

func (o object) json() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(exact.AppendString(b, m.name), ':'), m.value...)
	}
	return append(b, '}')
}

// A property is what is looked at in a JSON Schema.
type property struct {
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

// member returns the schema of a member; one that is not declared says nothing.
func (p *property) member(name string) (m property) {
	_ = json.Unmarshal(objectOf(p.Properties).get(name), &m) // nor does true
	return m
}

// required returns the names of the members that have to be there, each once.
func (p *property) required() (names []string) {
	for _, name := range p.Required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kinds returns the types that a schema names.
func (p *property) kinds() (names []string) {
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

// read returns a value as JSON, read by its type if the schema names one: 42 is a text
// where a text is asked for. Of no type or several it is JSON if it parses, else text.
func (p *property) read(value string) (json.RawMessage, error) {
	for _, v := range append(slices.Clip(p.Enum), p.Const) {
		var text string
		if json.Unmarshal(v, &text) == nil && text == value {
			return v, nil
		}
	}
	kinds := p.kinds()
	if len(kinds) != 1 {
		return metaValue(value)
	}
	if kinds[0] == "string" {
		return exact.AppendString(nil, value), nil
	}
	text, err := exact.Tidy([]byte(value))
	if err != nil && json.Valid([]byte(value)) {
		return nil, err
	}
	if err != nil || kindOf(text) != strings.Replace(kinds[0], "integer", "number", 1) {
		return nil, fmt.Errorf("%q is no %s, which the parameters ask for", value, kinds[0])
	}
	return text, nil
}

// kindOf returns the type of a JSON value.
func kindOf(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// placeholder stands in a template for what somebody has to write.
const placeholder = "…"

// maxTemplate is the longest payload that stands in a printed command, in bytes; a longer
// one is to be given on stdin.
const maxTemplate = 1 << 10

// template returns the payload in the printed command of a choice: what goes with it so
// far, or the names that its parameters require; "" if it needs none.
func template(t session.InboxTransition) string {
	var s property
	switch {
	case len(t.MetaJSON) > maxTemplate:
		return "-"
	case t.MetaJSON != nil:
		return string(t.MetaJSON)
	case !t.MetaJSONRequired:
		return ""
	case json.Unmarshal(t.Parameters, &s) != nil || len(s.Required) == 0:
		return placeholder
	}
	return s.object(nil, property.blank)
}

// dataWords returns a payload as words of a command.
func dataWords(payload string) []string {
	if payload == "" {
		return nil
	}
	return []string{"--data", payload}
}

// object returns a JSON object with the members given and the others that a schema
// requires.
func (p property) object(given object, value func(property) string) string {
	o := slices.Clip(given)
	for _, name := range p.required() {
		if !o.has(name) {
			o = append(o, objectMember{name, json.RawMessage(value(p.member(name)))})
		}
	}
	return string(o.json())
}

// blank returns the only value that a schema accepts or its default, else a placeholder.
func (p property) blank() string {
	switch {
	case p.Const != nil:
		return string(p.Const)
	case p.Default != nil:
		return string(p.Default)
	case len(p.Enum) == 1:
		return string(p.Enum[0])
	}
	return placeholder
}

// choiceOf returns a choice of a question by its name.
func choiceOf(q runner.Question, name string) (t session.InboxTransition) {
	if i := slices.IndexFunc(q.Transitions, func(t session.InboxTransition) bool { return t.Name == name }); i >= 0 {
		t = q.Transitions[i]
	}
	return t
}

// accepted returns the proposal of a specialist that --accept is to rule for.
func accepted(q runner.Question, who string) (p render.Proposal, err error) {
	if w := q.Withheld; w != nil {
		return p, hinted(usage("--accept %s: what was proposed in this round is withheld", who), "name the transition that you choose; --show-proposals shows what was proposed, which is recorded")
	}
	var names []string
	for _, raw := range q.Proposals {
		if err := json.Unmarshal(raw, &p); err != nil {
			return p, err
		}
		if p.SpecialistID == who {
			return p, nil
		}
		names = append(names, p.SpecialistID)
	}
	err = usage("--accept %s: there is no proposal of that specialist in this round", who)
	switch near := machine.DidYouMean(who, names); {
	case near != "":
		return p, hinted(err, "%s", near)
	case len(names) > 0:
		return p, hinted(err, "there are those of: %s", strings.Join(names, ", "))
	}
	return p, err
}

// errBothStdin is a payload on stdin beside questions at the terminal.
var errBothStdin = errors.New("stdin cannot be both the payload of --data - and the answers of --interactive")
