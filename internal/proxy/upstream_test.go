package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/internal/proxy"
)

// TestAServerAtAnAddress: calls go there with the token, and name the revision that agent and
// server have agreed on.
func TestAServerAtAnAddress(t *testing.T) {
	var mu sync.Mutex
	revisions := map[string]int{}
	r := &rig{t: t, server: mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)}
	r.tool("write", "notes: write")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return r.server }, nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		mu.Lock()
		revisions[req.Header.Get("Mcp-Protocol-Version")]++
		mu.Unlock()
		handler.ServeHTTP(w, req)
	}))
	defer ts.Close()
	for _, token := range []string{"secret", "wrong"} {
		proxyAgent, agentSide := mcp.NewInMemoryTransports()
		end := make(chan error, 1)
		go func() {
			end <- proxy.Run(t.Context(), proxy.Config{Guards: parse(t, `{"tool_calls":{"blast_radius":{"write":1}}}`), Task: "t1", Agent: proxy.Over(proxyAgent), Server: proxy.URL(ts.URL, token, ts.Client().Transport)})
		}()
		agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), agentSide, nil)
		if token == "wrong" {
			if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
				t.Errorf("with a wrong token the agent is told %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r.agent, r.end = agent, end
		r.gives("write", "a")
		r.refuses("write", "b", "blast_radius")
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	agreed := 0
	for v, n := range revisions {
		if v != "" {
			agreed += n
		}
	}
	if agreed == 0 {
		t.Errorf("no request named the revision: %v", revisions)
	}
}

// TestMain is also the server of TestAServerThatIsAProgram.
func TestMain(m *testing.M) {
	switch os.Getenv("PROXY_TEST_SERVER") {
	case "":
		os.Exit(m.Run())
	case "exits":
		os.Exit(3)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "end"}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until it is called, or nobody is there
}

func TestAServerThatIsAProgram(t *testing.T) {
	for _, kind := range []string{"exits", "ends with a call"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PROXY_TEST_SERVER="+kind)
		proxyAgent, agentSide := mcp.NewInMemoryTransports()
		end := make(chan error, 1)
		go func() {
			end <- proxy.Run(t.Context(), proxy.Config{Guards: parse(t, `{}`), Task: "t1", Agent: proxy.Over(proxyAgent), Server: proxy.Command(cmd)})
		}()
		agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil).Connect(t.Context(), agentSide, nil)
		if kind != "exits" {
			if err != nil {
				t.Fatal(err)
			}
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "end"})
			if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "server ended") {
				t.Errorf("the call was answered with %v, %v", result, err)
			}
		} else if err == nil {
			t.Error("a server that is gone was connected to")
		}
		var exit *exec.ExitError
		if err := <-end; !errors.Is(err, proxy.ErrServerEnded) || !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("%s: Run = %v", kind, err)
		}
	}
}

// FuzzReadCall: what is judged is what a reader of exact names reads of the bytes that are sent.
func FuzzReadCall(f *testing.F) {
	for _, s := range []string{`{"name":"read","arguments":{"a":1}}`, `{"name":"read"}`, `{"name":"read","NAME":"x"}`, `{"name":"a","name":"b"}`, `[]`, `{"name":7}`, `{"name":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		tool, args, err := proxy.ReadCall(params)
		if err != nil {
			return
		}
		if tool == "" || !json.Valid(args) {
			t.Fatalf("%q was read as %q, %q", params, tool, args)
		}
		var members map[string]any
		if json.Unmarshal(params, &members) != nil || members["name"] != tool {
			t.Fatalf("%q was read as a call of %q, and says %v", params, tool, members["name"])
		}
	})
}
