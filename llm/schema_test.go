package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/machine"
)

// TestClosedSchemas: Anthropic is sent a schema only if all its objects are closed, as it
// demands, and else asked for JSON by the prompt alone; the others are sent any.
func TestClosedSchemas(t *testing.T) {
	plain := strings.Replace(deskFile, `"cut": { "target": "done", "parameters": { "type": "object", "properties": { "amount": { "type": "number", "minimum": 0 } }, "required": ["amount"], "additionalProperties": false } }`, `"cut": "done"`, 1)
	for file, sent := range map[string][]bool{plain: {true, true, true}, deskFile: {true, false, true}} {
		for i, id := range ids {
			s := serve(t, llmtest.Script(llmtest.Reply{Text: `{"transitionName":"pay","reasoning":"x"}`}))
			m, err := machine.Parse("desk.json", fmt.Appendf(nil, file, id+"[tools=no]"), machine.Checks{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := proposer(t, llm.New(config(s)), m, "").Propose(t.Context(), inState(m))
			if err != nil || a.TransitionName != "pay" || len(s.Calls()) != 1 {
				t.Fatalf("%s: %+v, %v", id, a, err)
			}
			body := s.Calls()[0].Body
			at := func(v any, path ...string) any {
				for _, name := range path {
					o, _ := v.(map[string]any)
					v = o[name]
				}
				return v
			}
			schema := at(body, []string{"response_format", "output_config", "generationConfig"}[i], []string{"json_schema", "format", "responseJsonSchema"}[i])
			if i < 2 {
				schema = at(schema, "schema")
			}
			if (schema != nil) != sent[i] || sent[i] && (at(schema, "additionalProperties") != false || at(schema, "properties", "transitionName") == nil) {
				t.Errorf("%s: the schema is %v, want one: %t", id, schema, sent[i])
			}
			if call := s.Calls()[0]; !strings.Contains(call.System, "Answer with one JSON object") {
				t.Errorf("%s: the model is not told what to answer: %s", id, call.System)
			}
		}
	}
}

// TestSchemaThatWasNotSent: an error that names a schema, where none was sent, is no reason
// to ask again.
func TestSchemaThatWasNotSent(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 400, Body: `{"error":"bad request: {\"response_format\":null}"}`}))
	if _, err := ask(t, llm.New(config(s)), ids[0], question()); err == nil || len(s.Calls()) != 1 {
		t.Errorf("%v after %d calls", err, len(s.Calls()))
	}
}

// TestRefusedSchemas: a 400 about the schema of an answer, whatever it complains of, is
// learnt: the model is asked without it, at once and from then on.
func TestRefusedSchemas(t *testing.T) {
	for i, text := range []string{
		"Invalid schema for response_format 'proposal': In context=('properties',), 'metaJson' is required to be of another type.",
		"output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
		"Invalid JSON payload received: generation_config.response_json_schema has too many states for serving.",
	} {
		s := serve(t, func(_ int, c llmtest.Call) llmtest.Reply {
			generation, _ := c.Body["generationConfig"].(map[string]any)
			if c.Body["response_format"] != nil || c.Body["output_config"] != nil || generation["responseJsonSchema"] != nil {
				return llmtest.Reply{Status: 400, Body: fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%q}}`, text)}
			}
			return llmtest.Reply{Text: `{"unsafe":false,"score":0,"code":""}`}
		})
		client := llm.New(config(s))
		r := question()
		r.Tools, r.Schema = nil, json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)
		for n := range 2 {
			got, err := ask(t, client, ids[i], r)
			if err != nil || got.Text == "" || len(s.Calls()) != 2+n || !sameUsage(got.Usage, usage(100, 10).WithCalls(int64(2-n), int64(1-n))) && n == 0 {
				t.Errorf("%s: %+v, %v after %d calls", ids[i], got, err, len(s.Calls()))
			}
		}
	}
}
