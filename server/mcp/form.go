package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/dialai/dialai/api"
)

// A form for a human, as clients show them: the choices, without one that is chosen beforehand, a
// reason, and the choice once more, typed: a client that accepts forms by itself decides nothing.
// Parameters of a choice are fields of their own, if each is a text, a number or a yes or no;
// what has other parameters has no form.

const (
	fieldChoice    = "choice"
	fieldReasoning = "reasoning"
	fieldConfirm   = "confirm"
)

// formOf returns the schema of the form for a question, nil if it has none.
func formOf(q *api.Question) map[string]any {
	properties, names := map[string]any{}, []string{}
	for i := range q.Transitions {
		t := &q.Transitions[i]
		if t.Closed != "" {
			continue
		}
		names = append(names, t.Name)
		fields, ok := fieldsOf(t)
		if !ok {
			return nil
		}
		for name, schema := range fields {
			properties[fieldOf(t.Name, name)] = schema
		}
	}
	if len(names) == 0 {
		return nil
	}
	properties[fieldChoice] = map[string]any{"type": "string", "title": "Your decision", "enum": names}
	properties[fieldReasoning] = map[string]any{"type": "string", "title": "Why"}
	properties[fieldConfirm] = map[string]any{"type": "string", "title": "Type your decision once more"}
	return map[string]any{"type": "object", "properties": properties, "required": []string{fieldChoice, fieldConfirm}}
}

// fieldOf is the name of the field for a parameter of a choice.
func fieldOf(transition, parameter string) string { return transition + "." + parameter }

// fieldsOf returns the fields for the parameters of a choice; false if they have no such.
func fieldsOf(t *api.Choice) (map[string]any, bool) {
	fields := map[string]any{}
	if len(t.Parameters) == 0 {
		return fields, true
	}
	var schema struct {
		Properties map[string]struct {
			Type        string
			Description string
			Enum        []string
		}
	}
	if json.Unmarshal(t.Parameters, &schema) != nil || schema.Properties == nil {
		return nil, !t.MetaJSONRequired
	}
	for name, p := range schema.Properties {
		field := map[string]any{"type": p.Type, "title": name + " (for " + t.Name + ")"}
		switch p.Type {
		case "string":
			if len(p.Enum) > 0 {
				field["enum"] = p.Enum
			}
		case "number", "integer", "boolean":
		default:
			return nil, false
		}
		if p.Description != "" {
			field["description"] = printable(p.Description)
		}
		fields[name] = field
	}
	return fields, true
}

// filled is what comes of a form that a human has filled in.
func (c *conversation) filled(ctx context.Context, id string, w wish, was asked, form map[string]any) outcome {
	choice, _ := form[fieldChoice].(string)
	confirm, _ := form[fieldConfirm].(string)
	if choice == "" || strings.TrimSpace(confirm) != choice {
		return answered(asking{Code: notConfirmed, Hint: "the human has not typed their choice; nothing was changed"})
	}
	reasoning, _ := form[fieldReasoning].(string)
	said := word{roundID: was.RoundID, digest: was.Digest, transitionName: choice, reasoning: reasoning, spoken: SpokenForm}
	payload := map[string]any{}
	for name, value := range form {
		if parameter, ok := strings.CutPrefix(name, fieldOf(choice, "")); ok {
			payload[parameter] = value
		}
	}
	if len(payload) > 0 {
		said.metaJSON, _ = json.Marshal(payload) // values of JSON
	}
	return c.say(ctx, id, w, said)
}

// maxFacts is how much of each thing a form shows, in characters.
const maxFacts = 2000

// messageOf is what a human reads above the form.
func messageOf(q *api.Question, w *wish) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nMachine %s, state %s", q.Prompt, q.MachineName, q.State)
	if q.Subject != "" {
		fmt.Fprintf(&b, ", about %s", q.Subject)
	}
	facts, err := json.Marshal(q.Facts)
	if err == nil && len(facts) > len("{}") {
		fmt.Fprintf(&b, "\n\nWhat is known: %s", short(string(facts)))
	}
	for _, t := range q.Transitions {
		fmt.Fprintf(&b, "\n- %s → %s %s", t.Name, t.Target, t.Description)
		switch {
		case t.Closed != "":
			fmt.Fprintf(&b, " (closed: %s)", t.Closed)
		case t.Irreversible:
			b.WriteString(" (cannot be undone)")
		}
	}
	for _, p := range q.Proposals {
		fmt.Fprintf(&b, "\n\nProposed: %s", short(string(p)))
	}
	if q.Withheld != nil {
		fmt.Fprintf(&b, "\n\n%d proposals are withheld until you have decided.", q.Withheld.Proposals)
	}
	if w.transitionName != "" {
		fmt.Fprintf(&b, "\n\nThe program that asks suggests %s: %s", w.transitionName, short(w.reasoning))
	}
	return printable(b.String())
}

// short cuts a text that is too long to read.
func short(text string) string {
	if r := []rune(text); len(r) > maxFacts {
		return string(r[:maxFacts]) + "…"
	}
	return text
}

// printable replaces what would not show, or would show other text as something else.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}
