package e2e_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestForwarding: dialai --mcp with DIALAI_BASE_URL passes everything on to that server, by MCP or,
// where it has none, by DIAL's JSON-RPC; only its name is that of a proxy.
func TestForwarding(t *testing.T) {
	d := newDesk(t)
	s := d.serve()
	dial := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/mcp":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer "+s.key:
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"error":"Invalid API token"}`)
		default:
			req, err := http.NewRequestWithContext(r.Context(), r.Method, s.url+"/", r.Body)
			if err != nil {
				panic(err)
			}
			req.Header = r.Header.Clone()
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				panic(err)
			}
			defer answer.Body.Close()
			io.Copy(w, answer.Body)
		}
	}))
	defer dial.Close()
	for name, base := range map[string]string{"MCP": s.url, "JSON-RPC": dial.URL} {
		for _, era := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+era, func(t *testing.T) {
				cmd := d.command("--mcp")
				cmd.Env = append(cmd.Environ(), "DIALAI_BASE_URL="+base, "DIALAI_API_TOKEN="+s.key)
				errs := &lines{}
				cmd.Stderr = errs
				c, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Fatalf("%v\n%s", err, errs)
				}
				defer c.Close()
				if got := c.InitializeResult(); got.ServerInfo == nil || got.ServerInfo.Name != "dialai-proxy" {
					t.Errorf("the server is %+v", got.ServerInfo)
				}
				if list, err := c.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 29 {
					t.Errorf("it offers %+v, %v", list, err)
				}
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_session", Arguments: map[string]any{"machine": json.RawMessage(asking)}})
				if err != nil || r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, `"needs_human"`) {
					t.Errorf("a session: %+v, %v", r, err)
				}
				if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_session", Arguments: map[string]any{"sessionId": "none"}}); err != nil || !r.IsError || r.Content[0].(*mcp.TextContent).Text != "Error: Session not found: none" {
					t.Errorf("a session that is none: %+v, %v", r, err)
				}
				if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "rule"}); err == nil {
					t.Error("there is a tool that is none")
				}
				if said := errs.String(); !strings.HasPrefix(said, "Starting in proxy mode...\nForwarding to: "+base+"\n") {
					t.Errorf("it says %s", said)
				}
			})
		}
	}
}

// TestDIALOverHTTP: dialai --mcp with DIALAI_PORT serves, without a key where none is set, and says
// on stderr what DIAL says and that arguments rule; so they do, for a human whom the machine names.
func TestDIALOverHTTP(t *testing.T) {
	d := newDesk(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	d.must(err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	d.must(err)
	d.must(free.Close())
	cmd, errs := d.command("--mcp"), &lines{}
	cmd.Env, cmd.Stderr = append(cmd.Environ(), "DIALAI_PORT="+port), errs
	d.must(cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	for end := time.Now().Add(time.Minute); !strings.Contains(errs.String(), "DIAL AI HTTP server listening on port "+port+"\n"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not listen:\n%s", errs)
		}
	}
	s := &served{desk: d, cmd: cmd, url: "http://127.0.0.1:" + port, logs: errs}
	call := func(tool string, arguments any, into any) {
		t.Helper()
		var said struct {
			Result struct{ Content []struct{ Text string } }
			Error  *struct{ Message string }
		}
		s.call(200, "POST", "/", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}}, &said)
		if said.Error != nil || len(said.Result.Content) == 0 {
			t.Fatalf("%s: %+v", tool, said)
		}
		d.must(json.Unmarshal([]byte(said.Result.Content[0].Text), into))
	}
	var ran shown
	if call("run_session", map[string]any{"machine": json.RawMessage(asking)}, &ran); ran.Session.Status != "needs_human" {
		t.Fatalf("the session: %+v", ran)
	}
	var ruled struct{ Executed bool }
	rules := func(who string) bool {
		t.Helper()
		call("execute_transition", map[string]any{"sessionId": ran.Session.SessionID, "transitionName": "pay", "toState": "paid", "specialistId": who}, &ruled)
		return ruled.Executed
	}
	if rules("mallory") || !rules("carol") {
		t.Error("the word of a human counts whom the machine does not name, or that of one whom it names does not")
	}
	s.end(syscall.SIGTERM, 0)
	if said := errs.String(); !strings.HasPrefix(said, "Starting HTTP server on port "+port+"...\n") || !strings.Contains(said, "count as the word of the human") {
		t.Errorf("it says %s", said)
	}
}
