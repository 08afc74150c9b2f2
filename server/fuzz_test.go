package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/api"
)

// shared is a desk for all inputs of a fuzz target, made with the first.
func shared(make func(t *testing.T) *desk) func(t *testing.T) *desk {
	var d *desk
	var once sync.Once
	return func(t *testing.T) *desk {
		once.Do(func() { d = make(t) })
		own := *d
		own.T = t
		return &own
	}
}

// fits has an answer be one that programs know: no fault, and a code where something is refused.
func (r *reply) fits(t *testing.T, what string) {
	t.Helper()
	if r.status >= 500 && r.status != 501 || r.status >= 400 && r.code() == "" {
		t.Fatalf("%s is answered %d %s", what, r.status, r.body)
	}
}

// FuzzDigest: no text executes but the digest of the question, or its beginning.
func FuzzDigest(f *testing.F) {
	var s api.Session
	at := shared(func(t *testing.T) *desk {
		d := newDesk(t, deskOptions{})
		var started api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`).into(t, &started)
		d.want(200, "POST", "/v1/sessions/"+started.Session.SessionID+"/run", "")
		d.want(200, "GET", "/v1/sessions/"+started.Session.SessionID, "").into(t, &s)
		return d
	})
	for _, text := range []string{"", "sha256:", "0", strings.Repeat("0", 64), "%00", "\u202e", "abcdefabcdef"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, digest, round string) {
		d := at(t)
		if round == "" {
			round = s.Question.RoundID
		}
		if strings.HasPrefix(s.Question.Digest, strings.ToLower(digest)) {
			t.Skip("it may be that of the question")
		}
		body, err := json.Marshal(map[string]string{"transitionName": "pay", "roundId": round, "questionDigest": digest, "specialistId": "carol"})
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"decisions", "executions"} {
			r := d.do(localKey, "POST", "/v1/sessions/"+s.SessionID+"/"+way, string(body))
			if r.fits(t, string(body)); r.status < 400 {
				t.Fatalf("%s is answered %d %s", body, r.status, r.body)
			}
		}
	})
}

// FuzzJSONRPC: whatever comes as JSON-RPC, for DIAL's clients or MCP's, is answered as such or
// refused, and rules nothing.
func FuzzJSONRPC(f *testing.F) {
	var s api.Session
	at := shared(func(t *testing.T) *desk {
		d := newDesk(t, deskOptions{})
		var started api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`,"drive":false}`).into(t, &started)
		s = started.Session
		return d
	})
	for _, text := range []string{
		`{}`, `[]`, `null`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":{},"method":7}`, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"get_session","arguments":{"sessionId":"SESSION"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_transition","arguments":{"sessionId":"SESSION","transitionName":"pay","toState":"paid","specialistId":"carol"},"requestState":"x","inputResponses":{"answer":{"action":"accept","content":{"choice":"pay","confirm":"pay"}}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := at(t)
		body := strings.ReplaceAll(text, "SESSION", s.SessionID)
		r := d.do(localKey, "POST", "/", body)
		var said struct{ JSONRPC string }
		if r.status != 200 && r.status != 413 || json.Unmarshal(r.body, &said) != nil || r.status == 200 && said.JSONRPC != "2.0" {
			t.Fatalf("%q is answered %d %s", body, r.status, r.body)
		}
		if r := d.do(localKey, "POST", "/mcp", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"); r.status >= 500 {
			t.Fatalf("MCP: %q is answered %d %s", body, r.status, r.body)
		}
		var now api.Session
		if d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").into(t, &now); now.CurrentState != "review" {
			t.Fatalf("%q has ruled: %s", body, now.CurrentState)
		}
	})
}

// FuzzCallback: no path, token, signature or answer is a fault, and none without the right token
// is taken.
func FuzzCallback(f *testing.F) {
	var path, token string
	at := shared(func(t *testing.T) *desk {
		d, where, with, _ := lateDesk(t, "", nil)
		path, token = where, with
		return d
	})
	for _, text := range []string{"", "x", ".", "a.b", "{}", `{"transitionName":"go"}`, "%2e%2e", strings.Repeat("9", 300)} {
		f.Add(text, text, text)
		f.Add("PATH", text, `{"transitionName":"go"}`)
		f.Add("PATH", "TOKEN", text)
	}
	n := 0
	f.Fuzz(func(t *testing.T, callback, bearer, body string) {
		d := at(t)
		n++
		d.from = fmt.Sprintf("2001:db8::%x:%x", n>>16, n&0xffff) // guesses are bounded by their address
		target, right := path, bearer == "TOKEN"
		if callback != "PATH" {
			target, right = "/v1/callbacks/"+escape(callback), false
		}
		if right {
			bearer = token
		}
		if strings.ContainsAny(bearer, "\r\n\x00") {
			t.Skip("no header")
		}
		r := d.do(bearer, "POST", target, body)
		if r.fits(t, target); !right && bearer != token && r.status < 400 {
			t.Fatalf("%s with %q is answered %d %s", target, bearer, r.status, r.body)
		}
	})
}
