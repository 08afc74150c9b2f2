package claude

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/agent"
)

// A response is the answer to a request of ours.
type response struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response"`
	Error     string          `json:"error"`
}

// request asks the program and reads the answer into out. It waits for what the program says,
// so it must not be called by whoever reads the events.
func (s *session) request(ctx context.Context, what map[string]any, out any) error {
	id, answer := newUUID(), make(chan response, 1)
	s.mu.Lock()
	s.requests[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.requests, id)
	}()
	if err := s.write(map[string]any{"type": "control_request", "request_id": id, "request": what}); err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.Subtype != "success" {
			return fmt.Errorf("%s: the program says: %s", what["subtype"], r.Error)
		}
		return json.Unmarshal(r.Response, out)
	case <-s.process.Gone():
		return agent.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what["subtype"], ctx.Err())
	}
}

func (s *session) answered(r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.requests[r.RequestID]; c != nil {
		delete(s.requests, r.RequestID)
		c <- r // has room for one
	}
}

// A question is a request of the program that the host is to answer.
type question struct {
	permission bool
	reply      func(agent.Reply) any // what the program is answered
}

// ask puts a question to the host; the request's id is the event's.
func (s *session) ask(id string, q question, event agent.Body) {
	s.mu.Lock()
	s.open[id] = q
	s.mu.Unlock()
	s.queue.Tell(event)
}

// Answer answers what the program has asked.
func (s *session) Answer(_ context.Context, r agent.Reply) error {
	s.mu.Lock()
	q, open := s.open[r.To]
	delete(s.open, r.To)
	s.mu.Unlock()
	if !open {
		if err := s.alive(); err != nil {
			return err
		}
		return fmt.Errorf("answer %s: %w", r.To, agent.ErrStale)
	}
	return s.respond(r.To, q.reply(r))
}

func (s *session) respond(id string, with any) error {
	return s.write(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": id, "response": with}})
}

func (s *session) refuse(id, why string) {
	_ = s.write(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": id, "error": why}})
}

// A request is one of the program's, of any subtype.
type request struct {
	Subtype string `json:"subtype"`

	ToolName    string          `json:"tool_name"` // of can_use_tool
	Input       json.RawMessage `json:"input"`
	ToolUseID   string          `json:"tool_use_id"`
	AgentID     string          `json:"agent_id"`
	BlockedPath string          `json:"blocked_path"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
	Interaction bool            `json:"requires_user_interaction"`

	CallbackID string `json:"callback_id"` // of hook_callback, whose input is a hookInput

	ServerName string          `json:"server_name"` // of mcp_message
	Message    json.RawMessage `json:"message"`
}

// asked answers a request of the program, or has the host do so.
func (s *session) asked(id string, r request) {
	switch {
	case r.Subtype == "can_use_tool":
		s.mayUse(id, r)
	case r.Subtype == "hook_callback":
		s.hook(id, r)
	case r.Subtype == "mcp_message" && r.ServerName == server:
		s.serve(id, r.Message)
	default:
		s.refuse(id, "unsupported: "+r.Subtype)
	}
}

// noSubagents is what a subagent is told that uses a tool of the host.
const noSubagents = "Only the main agent uses this tool. Report what you have found to it; it decides."

func (s *session) mayUse(id string, r request) {
	deny := func(why string) any { return map[string]any{"behavior": "deny", "message": why} }
	allow := func(input json.RawMessage) any { return map[string]any{"behavior": "allow", "updatedInput": input} }
	if isOurs(r.ToolName) {
		verdict := allow(r.Input)
		if r.AgentID != "" {
			verdict = deny(noSubagents)
		}
		_ = s.respond(id, verdict)
		return
	}
	s.ask(id, question{permission: true, reply: func(a agent.Reply) any {
		switch {
		case !a.Allow && a.Reason == "":
			return deny("Not permitted. Go on without it.")
		case !a.Allow:
			return deny(a.Reason)
		case a.Answers != nil:
			return allow(withAnswers(r.Input, a.Answers))
		}
		return allow(r.Input)
	}}, agent.Permission{
		ID: id, Tool: r.ToolName, Input: r.Input, ToolUseID: r.ToolUseID, BlockedPath: r.BlockedPath, Suggestions: r.Suggestions,
		Question: r.Interaction, Parent: s.parent(r.AgentID),
	})
}

// withAnswers adds the answers to the input of a question.
func withAnswers(input, answers json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || members == nil {
		return input
	}
	members["answers"] = answers
	return encode(members)
}

// Hooks are told apart by the ids that they were given.
const (
	hookBefore  = "before"
	hookAfter   = "after"
	hookCompact = "compact"
)

// A hookInput says where the program stands.
type hookInput struct {
	Event     string          `json:"hook_event_name"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	AgentID   string          `json:"agent_id"`
	Trigger   string          `json:"trigger"`
}

func (s *session) hook(id string, r request) {
	var in hookInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		s.refuse(id, "not the input of a hook: "+err.Error())
		return
	}
	event := agent.Hook{ID: id, Tool: in.ToolName, Input: in.ToolInput, Trigger: in.Trigger, Parent: s.parent(in.AgentID)}
	q := question{}
	switch {
	case isOurs(in.ToolName): // the host serves it, and says then what it has to say
		_ = s.respond(id, map[string]any{})
		return
	case r.CallbackID == hookBefore:
		event.Point, q.reply = agent.BeforeTool, beforeTool
	case r.CallbackID == hookAfter:
		event.Point, q.reply = agent.AfterTool, afterTool
	case r.CallbackID == hookCompact:
		event.Point, q.reply = agent.BeforeCompaction, func(a agent.Reply) any { return s.beforeCompaction(in.Trigger, a) }
	default:
		s.refuse(id, "no such hook: "+r.CallbackID)
		return
	}
	s.ask(id, q, event)
}

func beforeTool(a agent.Reply) any {
	if a.Allow { // it is not yet permitted: that is asked for in its own way
		return map[string]any{}
	}
	return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": a.Reason}}
}

func afterTool(a agent.Reply) any {
	if a.Notice == "" {
		return map[string]any{}
	}
	return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PostToolUse", "additionalContext": a.Notice}}
}

func (s *session) beforeCompaction(trigger string, a agent.Reply) any {
	if a.Allow { // the program tells when it has
		return map[string]any{}
	}
	s.queue.Add(agent.Compaction{Trigger: trigger, Blocked: true})
	return map[string]any{"decision": "block", "reason": a.Reason}
}
