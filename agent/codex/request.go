package codex

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/hosttools"
)

// A question is what the host is to answer.
type question struct {
	permission bool
	reply      func(agent.Reply)
}

// put puts a question to the host.
func (s *session) put(id string, q question, event agent.Body) {
	s.mu.Lock()
	s.open[id] = q
	s.mu.Unlock()
	s.queue.Tell(event)
}

// Answer answers what was asked.
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
	q.reply(r)
	return nil
}

// request is what the program asks; id is its own, as JSON.
func (s *session) request(id, method string, p params) {
	switch method {
	case "item/tool/call":
		s.put(id, question{reply: func(a agent.Reply) {
			s.peer.Respond(id, map[string]any{"success": !a.IsError, "contentItems": []any{map[string]any{"type": "inputText", "text": hosttools.Text(a)}}})
		}}, agent.ToolCall{ID: id, Tool: p.Tool, Input: p.Arguments})
	case "item/commandExecution/requestApproval":
		s.approve(id, p, "exec_command", map[string]any{"command": p.Command, "cwd": p.Cwd}, decision)
	case "item/fileChange/requestApproval":
		s.approve(id, p, "apply_patch", map[string]any{"changes": s.items[p.ItemID].Changes}, decision)
	case "item/permissions/requestApproval":
		s.approve(id, p, "request_permissions", map[string]any{"permissions": p.Permissions, "reason": p.Reason, "cwd": p.Cwd}, func(a agent.Reply) any {
			if !a.Allow {
				return map[string]any{"permissions": map[string]any{}}
			}
			return map[string]any{"permissions": p.Permissions, "scope": "turn"}
		})
	case "item/tool/requestUserInput":
		s.approve(id, p, "request_user_input", map[string]any{"questions": p.Questions}, func(a agent.Reply) any { return answers(p.Questions, a.Answers) })
	default:
		s.peer.Unsupported(id, method)
	}
}

// approve has the host say whether something may be done. Why not reaches the model as a
// message, since the program does not tell it.
func (s *session) approve(id string, p params, tool string, input any, answer func(agent.Reply) any) {
	text, err := json.Marshal(input)
	if err != nil {
		text = nil
	}
	s.put(id, question{permission: true, reply: func(a agent.Reply) {
		s.peer.Respond(id, answer(a))
		if !a.Allow && a.Reason != "" {
			s.tellLater(a.Reason)
		}
	}}, agent.Permission{ID: id, Tool: tool, Input: text, ToolUseID: p.ItemID, Question: tool == "request_user_input"})
}

func decision(a agent.Reply) any {
	if a.Allow {
		return map[string]any{"decision": "accept"} // once
	}
	return map[string]any{"decision": "decline"}
}

// answers are those to questions, by their ids; the host gives them by their texts.
func answers(questions, given json.RawMessage) any {
	var asked []struct {
		ID       string `json:"id"`
		Question string `json:"question"`
	}
	var labels map[string]string
	_ = json.Unmarshal(questions, &asked) // what cannot be read is not answered
	_ = json.Unmarshal(given, &labels)
	byID := map[string]any{}
	for _, q := range asked {
		if label, ok := labels[q.Question]; ok {
			byID[q.ID] = map[string]any{"answers": []string{label}}
		}
	}
	return map[string]any{"answers": byID}
}
