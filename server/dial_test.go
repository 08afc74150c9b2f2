package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/control"
)

// TestDIAL: every path that is nobody else's answers JSON-RPC as clients of DIAL expect it, and
// refuses in DIAL's own form.
func TestDIAL(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	d.from = "192.0.2.7"
	call := func(tool, arguments string) string {
		return `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	}
	for _, c := range []struct {
		name, key, method, path, body string
		status                        int
		says                          string
	}{
		{"preflight", "", "OPTIONS", "/", "", 204, ""},
		{"GET", "", "GET", "/", "", 405, `{"error":"Method not allowed"}`},
		{"PUT", localKey, "PUT", "/rpc", "{}", 405, `{"error":"Method not allowed"}`},
		{"no key", "", "POST", "/", `{}`, 401, `{"error":"Missing or invalid Authorization header"}`},
		{"a wrong key", "wrong", "POST", "/any/path", `{}`, 403, `{"error":"Invalid API token"}`},
		{"no JSON", localKey, "POST", "/", `{`, 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{"no method", localKey, "POST", "/rpc", `{"jsonrpc":"2.0","id":7,"method":"initialize"}`, 200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}`},
		{"no request", localKey, "POST", "/", `[]`, 200, `"code":-32601`},
		{"no tool", localKey, "POST", "/", call("rule", "{}"), 200, `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"Unknown tool: rule"}}`},
		{"refused", localKey, "POST", "/", call("get_session", `{"sessionId":"0b9c1d3e-0000-4000-8000-000000000000"}`), 200, `"code":-32000,"message":"Session`},
		{"bad arguments", localKey, "POST", "/", call("get_session", `{}`), 200, `"code":-32000,"message":"get_session needs sessionId"`},
		{"a session", localKey, "POST", "/", call("get_session", `{"sessionId":"`+s.SessionID+`"}`), 200, `{"jsonrpc":"2.0","id":"x","result":{"content":[{"text":"{\n  \"sessionId\"`},
		{"a ruling", localKey, "POST", "/", call("execute_transition", `{"sessionId":"`+s.SessionID+`","transitionName":"pay","toState":"paid","specialistId":"carol"}`), 200, `needs_confirmation`},
		{"too large", localKey, "POST", "/", `"` + strings.Repeat("x", 1<<20) + `"`, 413, `{"error":`},
		{"gates", localKey, "POST", "/gates", `{}`, 501, "not_implemented"},
		{"a gate", localKey, "GET", "/gates/x/status", "", 501, "not_implemented"},
		{"gates without a key", "", "POST", "/gates/x/invoke", `{}`, 401, "unauthenticated"},
		{"nothing below /v1", localKey, "POST", "/v1/nothing", `{}`, 404, "not_found"},
		{"a question", "", "GET", "/desk/q/" + s.Question.QuestionID, "", 200, `<div id="desk">`},
	} {
		r := d.do(c.key, c.method, c.path, c.body)
		got := strings.TrimSpace(string(r.body))
		if c.name == "a session" {
			got = strings.Replace(got, `"type":"text","text"`, `"text"`, 1)
		}
		if r.status != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: %d %s, want %d %s", c.name, r.status, got, c.status, c.says)
		}
	}
	if d.status(s).Status != "needs_human" {
		t.Error("a call has ruled")
	}
	var list struct {
		Result struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
	}
	d.wantAs(d.key(control.Grant{Role: control.Viewer}), 200, "POST", "/", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).into(t, &list)
	if n := len(list.Result.Tools); n < 10 || n >= 29 || list.Result.Tools[0].InputSchema == nil {
		t.Errorf("a viewer is offered %+v", list)
	}
}
