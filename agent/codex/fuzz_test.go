package codex

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
		`{"method":"turn/started","params":{"turn":{"id":"1"}}}
{"method":"item/started","params":{"item":{"type":"fileChange","id":"f","changes":[]}}}
{"id":1,"method":"item/fileChange/requestApproval","params":{"itemId":"f"}}
{"method":"item/completed","params":{"item":{"type":"fileChange","id":"f","status":"declined"}}}
{"method":"turn/completed","params":{"turn":{"id":"1","status":"failed","error":{"codexErrorInfo":"other"}}}}`,
		`{"id":{},"method":"item/tool/call","params":{"arguments":[]}}`,
		`{"id":"x","method":"item/tool/requestUserInput","params":{"questions":[{"id":"q","question":"a"}]}}`,
		`{"id":1,"method":"item/permissions/requestApproval"}`,
		`{"id":1,"error":null}`,
		`{"id":1,"method":"novel"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newSession(agent.Spec{ID: "s"}, nil)
		close(s.started)
		defer s.queue.Drop()
		s.peer.Send = func(line []byte) error {
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
