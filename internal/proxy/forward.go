package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Forwarding: every message of an agent goes to a server elsewhere as it is, and every one of the
// server back, requests for a human's word too. Only the name is another: who speaks is a proxy.
// A server that has no MCP at /mcp is spoken to in DIAL's JSON-RPC (dial).

// forwarder is the name by which a client knows who speaks.
const forwarder = "dialai-proxy"

// A Forwarding says between whom messages go.
type Forwarding struct {
	Agent   Side
	Base    string // the address of the server, without a path
	Token   string // is sent as a bearer token; "" sends none
	Through http.RoundTripper
	Version string
}

// Run passes messages until the agent leaves or ctx ends; the error is that of the server.
func (f Forwarding) Run(ctx context.Context) error {
	f.Base = strings.TrimSuffix(f.Base, "/")
	status, _, err := f.post(ctx, "/mcp", []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrServerEnded, err)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return f.dial(ctx)
	}
	side := URL(f.Base+"/mcp", f.Token, f.Through)
	server, err := side.transport.Connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrServerEnded, err)
	}
	defer server.Close()
	agent, err := f.Agent.transport.Connect(ctx)
	if err != nil {
		return err
	}
	defer agent.Close()
	ctx, stop := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	work.Go(func() { stop(forth(ctx, agent, server)) })
	work.Go(func() { stop(back(ctx, server, agent, side)) })
	<-ctx.Done()
	agent.Close()
	server.Close()
	work.Wait()
	if why := context.Cause(ctx); errors.Is(why, ErrServerEnded) {
		return why
	}
	return nil
}

// forth passes what the agent sends. A request that does not reach the server is answered so.
func forth(ctx context.Context, agent, server mcp.Connection) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		m, err := agent.Read(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errAgentEnded, err)
		}
		send := func() {
			err := server.Write(ctx, m)
			if req, ok := m.(*jsonrpc.Request); ok && err != nil && req.IsCall() {
				_ = agent.Write(ctx, &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server was not reached: " + err.Error()}})
			}
		}
		if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() { // which may wait for its answer
			calls.Go(send)
			continue
		}
		send()
	}
}

// back passes what the server sends, under the name of a proxy.
func back(ctx context.Context, server, agent mcp.Connection, side Side) error {
	for {
		m, err := server.Read(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrServerEnded, err)
		}
		if r, ok := m.(*jsonrpc.Response); ok {
			if at, is := side.transport.(*remote); is {
				at.agreed(r.Result)
			}
			r.Result = renamed(r.Result)
		}
		if err := agent.Write(ctx, m); err != nil {
			return fmt.Errorf("%w: %w", errAgentEnded, err)
		}
	}
}

// renamed returns a result in which the server goes by the name of a proxy.
func renamed(result json.RawMessage) json.RawMessage {
	var members, meta map[string]json.RawMessage
	if !bytes.Contains(result, []byte(`erverInfo"`)) || json.Unmarshal(result, &members) != nil {
		return result
	}
	rename := func(in map[string]json.RawMessage, member string) {
		var info map[string]json.RawMessage
		if json.Unmarshal(in[member], &info) == nil && info != nil {
			info["name"] = json.RawMessage(`"` + forwarder + `"`)
			in[member], _ = json.Marshal(info) // what was JSON
		}
	}
	rename(members, "serverInfo")
	if json.Unmarshal(members["_meta"], &meta) == nil && meta != nil {
		rename(meta, mcp.MetaKeyServerInfo)
		members["_meta"], _ = json.Marshal(meta)
	}
	out, err := json.Marshal(members)
	if err != nil {
		return result
	}
	return out
}

// dial serves the agent with the tools of a server that speaks DIAL's JSON-RPC.
func (f Forwarding) dial(ctx context.Context) error {
	s := mcp.NewServer(&mcp.Implementation{Name: forwarder, Version: f.Version}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "tools/list":
				out := &mcp.ListToolsResult{}
				return out, f.rpc(ctx, method, map[string]any{}, out)
			case "tools/call":
				out, call := &mcp.CallToolResult{}, req.(*mcp.CallToolRequest).Params
				err := f.rpc(ctx, method, map[string]any{"name": call.Name, "arguments": call.Arguments}, out)
				if failed, ok := errors.AsType[*jsonrpc.Error](err); ok && failed.Code == dialDomain {
					out.IsError, out.Content, err = true, []mcp.Content{&mcp.TextContent{Text: "Error: " + failed.Message}}, nil
				}
				return out, err
			}
			return next(ctx, method, req)
		}
	})
	err := s.Run(ctx, f.Agent.transport)
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// dialDomain is the code of what DIAL refuses, and not the protocol.
const dialDomain = -32000

// rpc calls a method of DIAL's JSON-RPC. What the server says of an error is returned as it is.
func (f Forwarding) rpc(ctx context.Context, method string, params any, into any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	status, text, err := f.post(ctx, "/", body)
	if err != nil {
		return err
	}
	var said struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Errorf("the server answered with %d and no JSON", status)
	}
	var failed jsonrpc.Error
	var plain string
	switch {
	case json.Unmarshal(said.Error, &plain) == nil && plain != "":
		return errors.New(plain) // such as that the token is invalid
	case json.Unmarshal(said.Error, &failed) == nil && failed.Code != 0:
		return &failed
	case said.Result == nil:
		return fmt.Errorf("the server answered with %d and no result", status)
	}
	return json.Unmarshal(said.Result, into)
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 16 << 20

// post sends a body to a path of the server.
func (f Forwarding) post(ctx context.Context, path string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.Base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if f.Token != "" {
		r.Header.Set("Authorization", "Bearer "+f.Token)
	}
	answer, err := f.Through.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, text, err
}
