package cli

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// payload asks for the payload of a choice, if its parameters speak of one, or if other
// rulings may have one: member by member where all that are required are simple, else as JSON. What goes with it so far
// is offered. ok is false if the question is left open.
func (d *dialogue) payload(q *runner.Question, t session.InboxTransition) (payload json.RawMessage, ok bool) {
	if len(t.Parameters) == 0 {
		switch differ := slices.ContainsFunc(q.Rulings, func(r session.QuestionRuling) bool { return r.MetaJSON != nil && r.TransitionName == t.Name }); {
		case t.MetaJSON != nil || !differ && q.WithheldRulings == 0:
			return t.MetaJSON, true // as the question shows it: of rulings with which this one is to agree
		case differ:
			d.say("The rulings for %s differ in what goes with it.\n", render.Clean(t.Name))
		}
		return d.wholePayload(t)
	}
	var s payloads.Schema
	if json.Unmarshal(t.Parameters, &s) == nil && s.Simple(t.MetaJSON) {
		return d.members(t, &s)
	}
	return d.wholePayload(t)
}

// members asks for the members of an object one by one: those that are required, and
// the others that are simple. What else was proposed stays as it is.
func (d *dialogue) members(t session.InboxTransition, s *payloads.Schema) (json.RawMessage, bool) {
	d.say("%s takes parameters; q leaves it open, - leaves one out:\n", render.Clean(t.Name))
	required, so := s.RequiredNames(), jsontext.ReadObject(t.MetaJSON)
	names := slices.Clone(required)
	for _, m := range jsontext.ReadObject(s.Properties).Members() {
		if p := s.Member(m.Name); p.Scalar() && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	var typed []jsontext.Member
	for _, name := range names {
		value, ok := d.member(name, s.Member(name), so.Get(name), slices.Contains(required, name))
		if !ok {
			return nil, false
		}
		if value != nil {
			typed = append(typed, jsontext.Member{Name: name, Value: value})
		}
	}
	for _, m := range so.Members() {
		if !slices.Contains(names, m.Name) {
			typed = append(typed, m)
		}
	}
	if len(typed) == 0 && !t.MetaJSONRequired {
		return nil, true
	}
	return jsontext.ObjectOf(typed).JSON(), true
}

// member asks for one member. value is nil if it is left out; ok is false if the question
// is left open.
func (d *dialogue) member(name string, p payloads.Schema, so json.RawMessage, required bool) (value json.RawMessage, ok bool) {
	if so == nil {
		so = p.Default
	}
	if so == nil {
		so = p.Const
	}
	for {
		line, ok := d.read(p.Prompt(name, so, required))
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
		value, err := p.Typed(line)
		if err == nil {
			return value, true
		}
		d.say("%s.\n", render.Clean(err.Error()))
	}
}

// wholePayload asks for a payload as JSON.
func (d *dialogue) wholePayload(t session.InboxTransition) (json.RawMessage, bool) {
	if len(t.Parameters) > 0 {
		d.say("%s takes parameters: %s\n", render.Clean(t.Name), render.Clean(string(t.Parameters)))
	}
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
		value, err := jsontext.Tidy([]byte(line))
		if err == nil {
			return value, true
		}
		d.say("That is not JSON; an example: %s\n", render.Clean(cmp.Or(payloads.Skeleton(t.Parameters), "{}")))
	}
}
