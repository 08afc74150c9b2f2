// Package hosttools is the host's tools as a server of the Model Context Protocol, for agents that
// reach them so: all that is said but the calls, which the host answers.
package hosttools

import (
	"encoding/json"

	"github.com/dialai/dialai/agent"
)

// Server is its name, as which the program of an agent sees it.
const Server = "dialai"

// A Message is one of the protocol; one without an id wants no answer.
type Message struct {
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

// Call is the method of a use of a tool, which Answer does not answer.
const Call = "tools/call"

// Answer returns the answer to a message that is no call.
func (m Message) Answer(tools []agent.Tool) map[string]any {
	switch m.Method {
	case "initialize":
		return m.Result(map[string]any{"protocolVersion": m.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": Server, "version": "1"}})
	case "ping":
		return m.Result(map[string]any{})
	case "tools/list":
		list := []any{}
		for _, t := range tools {
			list = append(list, map[string]any{"name": t.Name, "description": t.Description, "inputSchema": Schema(t)})
		}
		return m.Result(map[string]any{"tools": list})
	}
	return m.Refuse(-32601, "unsupported: "+m.Method)
}

// Result returns an answer.
func (m Message) Result(result any) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
}

// Refuse returns an answer that is an error of the protocol.
func (m Message) Refuse(code int, why string) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": code, "message": why}}
}

// Said returns the answer to a call by what the host has answered, its notice with it.
func (m Message) Said(r agent.Reply) map[string]any {
	return m.Result(map[string]any{"content": []any{map[string]any{"type": "text", "text": Text(r)}}, "isError": r.IsError})
}

// Text is what the host has answered to a call, its notice with it.
func Text(r agent.Reply) string {
	if r.Notice == "" {
		return r.Content
	}
	return r.Content + "\n\n" + r.Notice
}

// Schema is that of a tool's input; one that has none takes any object.
func Schema(t agent.Tool) json.RawMessage {
	if t.InputSchema == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.InputSchema
}
