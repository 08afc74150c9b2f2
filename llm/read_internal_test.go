package llm

import (
	"testing"

	"github.com/dialai/dialai/machine"
)

// FuzzRead: whatever a model says, what is read of it is one of the state's
// transitions with parameters that satisfy its schema, or a fault that says what is
// wrong.
func FuzzRead(f *testing.F) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"plain":"b",
		"with":{"target":"b","parameters":{"type":"object","properties":{"n":{"type":"number","minimum":0}},"required":["n"]}},
		"list":{"target":"b","parameters":{"type":"array","items":{"type":"string"}}}}},"b":{}}}`), machine.Checks{})
	if err != nil {
		f.Fatal(err)
	}
	o := options{state: m.Initial(), order: m.Initial().Transitions, aliases: aliases(m.Initial())}
	for _, said := range [][3]string{
		{"", "plain", "{}"}, {"", "with", `{"n":1}`}, {"", "with", `{"n":-1}`}, {"", "list", `{"value":["x"]}`}, {"", "list", `["x"]`}, {"", "none", `{`},
		{`{"transitionName":"with","metaJson":{"n":2}}`, "", ""}, {"```json\n{\"transitionName\":\"list\",\"metaJson\":[\"x\"]}\n```", "", ""}, {"``````", "", ""}, {`{"transitionName":null}`, "", ""},
	} {
		f.Add(said[0], said[1], said[2])
	}
	f.Fuzz(func(t *testing.T, text, tool, arguments string) {
		r := Response{Text: text}
		if tool != "" {
			r.ToolCalls = []ToolCall{{tool, arguments}}
		}
		for _, form := range []form{byTool, bySchema, byPrompt} {
			a, bad := o.read(form, &r)
			if bad != nil {
				if bad.err == nil || bad.why == "" && !bad.final {
					t.Errorf("the fault is %+v", bad)
				}
				continue
			}
			chosen := o.state.Transition(a.TransitionName)
			if chosen == nil {
				t.Fatalf("the choice is %q", a.TransitionName)
			}
			if p := chosen.Parameters; p != nil && (a.MetaJSON == nil || p.Validate(a.MetaJSON) != nil) && p.Validate([]byte("{}")) != nil {
				t.Errorf("%q is chosen with %s", a.TransitionName, a.MetaJSON)
			}
		}
	})
}
