package agenttest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

func post(t *testing.T, url string, body any) (status int, text string) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

type m = map[string]any

// TestSteps: each answer of a turn is the next step of the newest prompt that has any, whatever
// the tools in between gave back.
func TestSteps(t *testing.T) {
	s := agenttest.Start(t)
	first := agenttest.Prompt("begin", agenttest.Uses("Bash", m{"command": "ls"}), agenttest.Step{Text: "second", CacheRead: 9, Millis: 1})
	inner := agenttest.Prompt("you are a subagent", agenttest.Step{Text: "inner"})
	outer := agenttest.Prompt("then", agenttest.Uses("Agent", m{"prompt": inner}), agenttest.Step{Text: "outer"})
	talk := []any{m{"role": "user", "content": first}}
	say := func(want string) {
		t.Helper()
		if status, got := post(t, s.URL+"/v1/messages", m{"model": "m", "messages": talk}); status != 200 || !strings.Contains(got, want) {
			t.Fatalf("%d %s\nwant %s", status, got, want)
		}
		talk = append(talk, m{"role": "assistant", "content": "…"})
	}
	say(`"partial_json":"{\"command\":\"ls\"}"`)
	talk = append(talk, m{"role": "user", "content": []any{m{"type": "tool_result", "content": []any{m{"type": "text", "text": "a.txt"}}}}})
	say(`"text":"second"`)
	talk = append(talk, m{"role": "user", "content": []any{m{"type": "text", "text": outer}}})
	say(`"name":"Agent"`)
	talk = append(talk, m{"role": "user", "content": []any{m{"type": "tool_result", "content": "inner"}}})
	say(`"text":"outer"`)
	talk = append(talk, m{"role": "user", "content": "no steps"})
	say(`"text":"ok"`)
	talk = []any{m{"role": "user", "content": inner}}
	say(`"text":"inner"`)
	if got := s.Requests()[1]; got.Since != "a.txt" || got.Model != "m" {
		t.Errorf("%+v", got)
	}
}

// TestFailure: a step can be an error of the provider.
func TestFailure(t *testing.T) {
	s := agenttest.Start(t)
	prompt := agenttest.Prompt("x", agenttest.Step{Status: 401, Error: "authentication_error"})
	for path, body := range map[string]any{
		"/v1/messages":  m{"messages": []any{m{"role": "user", "content": prompt}}},
		"/v1/responses": m{"input": []any{m{"type": "message", "role": "user", "content": []any{m{"type": "input_text", "text": prompt}}}}},
	} {
		if status, text := post(t, s.URL+path, body); status != 401 || !strings.Contains(text, "authentication_error") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _ := post(t, s.URL+"/v1/messages", 5); status != 400 {
		t.Errorf("what is no request: %d", status)
	}
}

// TestResponses: the items of one answer of the other provider are one answer.
func TestResponses(t *testing.T) {
	s := agenttest.Start(t)
	prompt := agenttest.Prompt("x", agenttest.Step{Text: "one", Tools: []agenttest.Use{{Name: "shell", Input: []byte(`{}`)}}}, agenttest.Step{Text: "two", Input: 7})
	talk := []any{m{"type": "message", "role": "user", "content": []any{m{"type": "input_text", "text": prompt}}}}
	if _, got := post(t, s.URL+"/v1/responses", m{"input": talk}); !strings.Contains(got, `"type":"function_call"`) {
		t.Fatal(got)
	}
	talk = append(talk, m{"type": "message", "role": "assistant", "content": []any{}}, m{"type": "function_call", "call_id": "c"}, m{"type": "function_call_output", "call_id": "c", "output": "done"})
	if _, got := post(t, s.URL+"/v1/responses", m{"input": talk}); !strings.Contains(got, `"text":"two"`) || !strings.Contains(got, `"input_tokens":7`) {
		t.Fatal(got)
	}
	if got := s.Requests()[1].Since; got != "done" {
		t.Errorf("since: %q", got)
	}
}
