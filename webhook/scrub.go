package webhook

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// minEcho is the length, in bytes, from which a secret is looked for in answers.
// What is shorter is likely to be a word that the answer means.
const minEcho = 6

// echoForms returns the forms of secrets that answers are searched for.
func echoForms(secrets []string) (forms []string) {
	for _, f := range secretForms(secrets) {
		if len(f) >= minEcho {
			forms = append(forms, f)
		}
	}
	return forms
}

// scrub takes the secrets of a call out of a text that a service answered, since
// answers are stored and shown to others.
func (c *call) scrub(text string) string {
	for _, f := range c.echoes {
		text = strings.ReplaceAll(text, f, redacted)
	}
	if t := c.ask.CallbackToken; len(t) >= minEcho {
		text = strings.ReplaceAll(text, t, redacted)
	}
	return text
}

// scrubAnswer is scrub for an answer. A transition that is legal in the state and
// its target are no secrets, whatever they are called.
func (c *call) scrubAnswer(a *specialist.Answer, s *machine.State) {
	t := s.Transition(a.TransitionName)
	if t == nil {
		a.TransitionName = c.scrub(a.TransitionName)
	}
	if t == nil || t.Target != a.ToState {
		a.ToState = c.scrub(a.ToState)
	}
	a.Reasoning, a.Model = c.scrub(a.Reasoning), c.scrub(a.Model)
	a.MetaJSON = c.scrubJSON(a.MetaJSON)
	for i := range a.ToolCalls {
		call := &a.ToolCalls[i]
		call.Name, call.ID = c.scrub(call.Name), c.scrub(call.ID)
		call.Args, call.Result = c.scrubJSON(call.Args), c.scrubJSON(call.Result)
	}
}

// scrubJSON is scrub for the strings of a legal JSON text, names included.
func (c *call) scrubJSON(text []byte) []byte {
	if bytes.IndexByte(text, '"') < 0 {
		return text
	}
	clean, same := make([]byte, 0, len(text)), true
	for rest := text; len(rest) > 0; {
		n := bytes.IndexByte(rest, '"')
		if n < 0 {
			clean = append(clean, rest...)
			break
		}
		clean, rest = append(clean, rest[:n]...), rest[n:]
		n = stringLength(rest)
		var s string
		_ = json.Unmarshal(rest[:n], &s) // legal
		if t := c.scrub(s); t != s {
			clean, same = exact.AppendString(clean, t), false
		} else {
			clean = append(clean, rest[:n]...)
		}
		rest = rest[n:]
	}
	if same {
		return text
	}
	return clean
}

// stringLength returns the length of the JSON string that a legal text begins
// with, quotes included.
func stringLength(text []byte) int {
	n := 1
	for ; text[n] != '"'; n++ {
		if text[n] == '\\' {
			n++
		}
	}
	return n + 1
}
