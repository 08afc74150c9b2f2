package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
