package acp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/agent"
)

// FuzzLine: whatever the program says, and whatever its relay does, reading it never panics, a
// request is answered or put to the host, and all that is written is JSON.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}
{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","rawInput":{}}}}
{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"o","kind":"allow_once"}]}}
{"id":1,"result":{"stopReason":"end_turn"}}`,
		`{"id":{},"method":"tools/call","params":{"name":"submit","arguments":[]}}`,
		`{"id":1,"method":"session/request_permission"}`,
		`{"id":1,"error":null}`,
		`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":-1,"cost":{}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newSession(agent.Spec{ID: "s", Tools: []agent.Tool{{Name: "submit"}}}, nil)
		close(s.started)
		defer s.queue.Drop()
		s.session, s.process = "s", nil
		s.peer.Send = func(line []byte) error {
			if !json.Valid(line) {
				t.Errorf("it is answered %q", line)
			}
			return nil
		}
		s.begin(agent.Message{ID: "m", Content: "c"})
		var out bytes.Buffer
		v := &server{s: s}
		for _, line := range bytes.SplitN(text, []byte("\n"), 50) {
			if len(line) > 0 {
				s.line(line)
				v.line(&answers{to: &out}, line)
			}
		}
		for id := range s.open {
			if err := s.Answer(t.Context(), agent.Reply{To: id, Allow: true, Reason: "r", Notice: "n"}); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("the relay is answered %q", line)
			}
		}
	})
}
