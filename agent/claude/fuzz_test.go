package claude

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/agent"
)

// FuzzLine: whatever the program says, reading it never panics, a request is answered or put to
// the host, and all that is written is JSON.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"type":"system","subtype":"init"}
{"type":"assistant","message":{"id":"a","model":"m","usage":{"input_tokens":1},"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"u","name":"Bash","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"y"}]}]}}
{"type":"result","subtype":"success","modelUsage":{"m":{"inputTokens":1}}}`,
		`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":null}}`,
		`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"after","input":{"tool_name":"Bash"}}}
{"type":"control_cancel_request","request_id":"h"}`,
		`{"type":"control_request","request_id":"m","request":{"subtype":"mcp_message","server_name":"dialai","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit"}}}}`,
		`{"type":"control_request","request_id":"m","request":{"subtype":"mcp_message","server_name":"dialai","message":{"id":{},"method":"x"}}}`,
		`{"type":"system","subtype":"task_started","task_type":"local_agent","task_id":"t"}
{"type":"system","subtype":"api_retry","error":"authentication_failed"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newSession(agent.Spec{ID: "s"}, nil)
		close(s.started)
		defer s.queue.Drop()
		s.send = func(line []byte) error {
			if !json.Valid(line) {
				t.Errorf("it is answered %q", line)
			}
			return nil
		}
		for _, line := range bytes.SplitN(text, []byte("\n"), 50) {
			if len(line) > 0 {
				s.line(line)
			}
		}
		for id := range s.open {
			if err := s.Answer(t.Context(), agent.Reply{To: id, Allow: true, Answers: json.RawMessage(`{"a":"b"}`), Notice: "n"}); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}
