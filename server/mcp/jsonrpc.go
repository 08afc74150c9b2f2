package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
)

// The endpoint of DIAL: JSON-RPC 2.0 in a POST, with tools/list and tools/call alone and neither a
// handshake nor anything of MCP around them. Every answer has status 200, an error too.

// The codes of errors.
const (
	codeNoJSON   = -32700
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeDomain   = -32000
)

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
}

type rpcText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ServeRPC answers a request of JSON-RPC. Its context says who calls.
func (s *Server) ServeRPC(w http.ResponseWriter, r *http.Request) {
	out := rpcAnswer{Version: "2.0", ID: json.RawMessage("null")}
	var in struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(body) {
		out.Error = &rpcError{Code: codeNoJSON, Message: "Parse error"}
	} else {
		_ = json.Unmarshal(body, &in) // what does not fit names no method that there is
		if in.ID != nil {
			out.ID = in.ID
		}
		switch in.Method {
		case "tools/list":
			out.Result = map[string]any{"tools": s.listed(r.Context())}
		case "tools/call":
			out.Result, out.Error = s.rpc(r.Context(), in.Params.Name, in.Params.Arguments)
		default:
			out.Error = &rpcError{Code: codeMethod, Message: "Method not found"}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(out) // whoever has gone does not read it
}

// listed are the tools that a caller is offered.
func (s *Server) listed(ctx context.Context) []rpcTool {
	caller, list := s.config.API.Caller(ctx), []rpcTool{}
	for _, t := range s.tools {
		if t.offered(caller) {
			list = append(list, rpcTool{t.name, t.description, t.input})
		}
	}
	slices.SortFunc(list, func(a, b rpcTool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// rpc calls a tool. A client of JSON-RPC can put nothing to a human.
func (s *Server) rpc(ctx context.Context, name string, arguments json.RawMessage) (any, *rpcError) {
	t := s.tools[name]
	if t == nil {
		return nil, &rpcError{Code: codeParams, Message: "Unknown tool: " + printable(name)}
	}
	o := (&conversation{Server: s, tool: t, raw: arguments}).do(ctx)
	if o.problem != nil {
		return nil, errorOf(o.problem)
	}
	return map[string]any{"content": []rpcText{{"text", indented(o.body)}}}, nil
}

func errorOf(p *api.Error) *rpcError {
	code := codeDomain
	if p.Status >= http.StatusInternalServerError {
		code = codeInternal
	}
	return &rpcError{code, printable(p.Detail), said(p)}
}
