package claude

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/hosttools"
)

// server is the name of the host's server of tools, as which the program sees it.
const server = hosttools.Server

// isOurs reports whether a tool, as the program names it, is one that the host serves.
func isOurs(tool string) bool { return strings.HasPrefix(tool, "mcp__"+server+"__") }

// serve is the host's server of tools.
func (s *session) serve(id string, raw json.RawMessage) {
	var m hosttools.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		s.refuse(id, "not a message of MCP: "+err.Error())
		return
	}
	switch {
	case m.Method == hosttools.Call:
		s.call(id, m)
	case m.ID == nil && m.Method != "initialize" && m.Method != "ping" && m.Method != "tools/list": // a notification
		m.ID = json.RawMessage("0")
		s.carry(id, m.Result(map[string]any{}))
	default:
		s.carry(id, m.Answer(s.spec.Tools))
	}
}

// carry answers with a message of MCP.
func (s *session) carry(id string, answer map[string]any) { _ = s.respond(id, carried(answer)) }

func carried(answer map[string]any) any { return map[string]any{"mcp_response": answer} }

// call has the host serve a tool. That the program asked before whether a subagent may use it
// is not relied on.
func (s *session) call(id string, m hosttools.Message) {
	parent := s.uses[m.Params.Meta.ToolUseID].parent
	if parent != "" {
		s.carry(id, m.Said(agent.Reply{Content: noSubagents, IsError: true}))
		return
	}
	s.ask(id, question{reply: func(a agent.Reply) any { return carried(m.Said(a)) }}, agent.ToolCall{ID: id, Tool: m.Params.Name, Input: m.Params.Arguments, Parent: parent})
}
