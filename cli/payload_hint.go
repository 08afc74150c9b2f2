package cli

import (
	"strings"

	"github.com/dialai/dialai/cli/internal/payloads"
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
	for _, passes := range []string{string(choice.MetaJSON), payloads.Completed(schema, c.given, payloads.Schema.Example), payloads.Completed(schema, nil, payloads.Schema.Example), "{}"} {
		if passes != "" && len(passes) <= payloads.MaxTemplate && t.Parameters.Validate([]byte(passes)) == nil {
			return hint + "; for example: " + command(passes)
		}
	}
	blank := payloads.Completed(schema, c.given, payloads.Schema.Blank)
	if !strings.Contains(blank, payloads.Placeholder) || len(blank) > payloads.MaxTemplate { // all is there, and something of it is wrong
		blank = payloads.Completed(schema, nil, payloads.Schema.Blank)
	}
	if blank == "" || len(blank) > payloads.MaxTemplate {
		blank = payloads.Placeholder
	}
	return hint + "; with values in the place of each " + payloads.Placeholder + ": " + command(blank)
}
