package claude

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/agent"
)

// server is the name of the host's server of tools, as which the program sees it.
const server = "dialai"

// isOurs reports whether a tool, as the program names it, is one that the host serves.
func isOurs(tool string) bool { return strings.HasPrefix(tool, "mcp__"+server+"__") }

// A message is one of the Model Context Protocol; one without an id wants no answer.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            struct {
			ToolUseID string `json:"claudecode/toolUseId"`
		} `json:"_meta"`
	} `json:"params"`
}

// serve is the host's server of tools.
func (s *session) serve(id string, raw json.RawMessage) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		s.refuse(id, "not a message of MCP: "+err.Error())
		return
	}
	switch m.Method {
	case "initialize":
		s.result(id, m, map[string]any{"protocolVersion": m.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": server, "version": "1"}})
	case "tools/list":
		s.result(id, m, map[string]any{"tools": s.tools()})
	case "tools/call":
		s.call(id, m)
	case "ping":
		s.result(id, m, map[string]any{})
	default:
		if m.ID == nil { // a notification
			_ = s.respond(id, map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": 0, "result": map[string]any{}}})
			return
		}
		_ = s.respond(id, map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": m.ID,
			"error": map[string]any{"code": -32601, "message": "no method " + m.Method}}})
	}
}

func (s *session) result(id string, m message, result any) {
	_ = s.respond(id, map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}})
}

func (s *session) tools() []any {
	list := []any{}
	for _, t := range s.spec.Tools {
		schema := t.InputSchema
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		list = append(list, map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema})
	}
	return list
}

// call has the host serve a tool. That the program asked before whether a subagent may use it
// is not relied on.
func (s *session) call(id string, m message) {
	parent := s.uses[m.Params.Meta.ToolUseID].parent
	if parent != "" {
		s.result(id, m, content(noSubagents, true))
		return
	}
	s.ask(id, question{reply: func(a agent.Reply) any {
		text := a.Content
		if a.Notice != "" {
			text += "\n\n" + a.Notice
		}
		return map[string]any{"mcp_response": map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": content(text, a.IsError)}}
	}}, agent.ToolCall{ID: id, Tool: m.Params.Name, Input: m.Params.Arguments, Parent: parent})
}

func content(text string, isError bool) any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": isError}
}
