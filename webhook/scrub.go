package webhook

import (
	"bytes"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// MinSecret is the length, in bytes, from which a token or a secret is looked for in
// what services answer. What is shorter is likely to be a word that the answer means.
const MinSecret = 6

// ShortSecrets returns the variables that a machine names for tokens and secrets of
// its webhooks, and which hold something shorter than MinSecret, each once.
func ShortSecrets(m *machine.Machine, lookup func(string) (string, bool)) (names []string) {
	add := func(name string) {
		if value, ok := lookup(name); ok && value != "" && len(value) < MinSecret && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	roster := func(list []machine.Specialist) {
		for i := range list {
			if s := &list[i]; s.StrategyWebhookURL != "" || s.ContextWebhookURL != "" {
				add(s.WebhookTokenName)
				add(s.WebhookSecretName)
			}
		}
	}
	roster(m.Specialists())
	for i := range m.States() {
		roster(m.States()[i].Roster)
	}
	return names
}

// echoes returns what finds secrets in answers.
func echoes(secrets []string) *Concealer { return conceal(secrets, MinSecret, false) }

// scrub takes the secrets of a call out of a text that a service answered, since
// answers are stored and shown to others.
func (c *call) scrub(text string) string {
	text = c.echoes.Hide(text)
	if c.ask.CallbackToken == "" {
		return text
	}
	if c.callback == nil {
		c.callback = echoes([]string{c.ask.CallbackToken})
	}
	return c.callback.Hide(text)
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
	for at := 0; at < len(text); {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			clean = append(clean, text[at:]...)
			break
		}
		begin := at + n
		said, _, next := jsontext.Unquote(text, begin, nil)
		clean = append(clean, text[at:begin]...)
		if s := c.scrub(string(said)); s != string(said) {
			clean, same = jsontext.AppendString(clean, s), false
		} else {
			clean = append(clean, text[begin:next]...)
		}
		at = next
	}
	if same {
		return text
	}
	return clean
}
