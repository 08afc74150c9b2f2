package claude

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// A line is any that the program prints.
type line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`

	RequestID string          `json:"request_id"`
	Request   request         `json:"request"`
	Response  response        `json:"response"`
	Message   json.RawMessage `json:"message"` // of assistant and user
	Parent    string          `json:"parent_tool_use_id"`
	Sidechain bool            `json:"isSidechain"`
	Failed    bool            `json:"is_api_error_message"`
	Failed2   bool            `json:"isApiErrorMessage"` // as transcripts have it

	CommandID string `json:"command_uuid"` // of command_lifecycle
	State     string `json:"state"`

	TaskID      string `json:"task_id"` // of task_started and task_notification
	TaskType    string `json:"task_type"`
	ToolUseID   string `json:"tool_use_id"`
	Description string `json:"description"`
	Background  bool   `json:"is_backgrounded"`
	Depth       int    `json:"spawn_depth"`
	Status      string `json:"status"`
	Usage       struct {
		TotalTokens int64 `json:"total_tokens"`
		DurationMS  int64 `json:"duration_ms"`
	} `json:"usage"`

	Attempt     int     `json:"attempt"` // of api_retry
	MaxRetries  int     `json:"max_retries"`
	RetryDelay  float64 `json:"retry_delay_ms"`
	ErrorStatus int     `json:"error_status"`
	Error       string  `json:"error"`

	CompactMetadata struct {
		Trigger string `json:"trigger"`
	} `json:"compact_metadata"`
}

// line reads one line of the program. What is not known is left alone.
func (s *session) line(text []byte) {
	<-s.started
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		if !json.Valid(text) || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			s.log("stdout", process.Beginning(string(text)))
			return
		} // a member that we know has another type now: what could be read is used
	}
	switch l.Type {
	case "control_request":
		s.asked(l.RequestID, l.Request)
	case "control_response":
		s.answered(l.Response)
	case "control_cancel_request":
		s.withdraw(l.RequestID)
	case "command_lifecycle":
		s.receipt(l)
	case "system":
		s.system(l)
	case "assistant":
		s.assistant(l)
	case "user":
		s.toolResults(l)
	case "result":
		s.finish(text)
	}
}

func (s *session) withdraw(id string) {
	s.mu.Lock()
	q, open := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if open && q.permission {
		s.queue.Tell(agent.Withdrawn{ID: id})
	}
}

func (s *session) receipt(l line) {
	switch state := agent.ReceiptState(l.State); state {
	case agent.Started:
		s.turn.prompted = true
		s.queue.Tell(agent.Receipt{MessageID: l.CommandID, State: state})
	case agent.Queued, agent.Completed:
		s.queue.Tell(agent.Receipt{MessageID: l.CommandID, State: state})
	}
}

func (s *session) system(l line) {
	switch l.Subtype {
	case "init": // comes again with each turn
		s.begin()
	case "task_started":
		if l.TaskType == "local_agent" {
			s.subs[l.TaskID] = l.ToolUseID
			s.queue.Tell(agent.Subagent{TaskID: l.TaskID, Description: l.Description, Depth: l.Depth, Background: l.Background})
		}
	case "task_notification":
		if _, is := s.subs[l.TaskID]; is {
			s.queue.Tell(agent.Subagent{TaskID: l.TaskID, Description: l.Description, Status: l.Status, Tokens: l.Usage.TotalTokens, Millis: l.Usage.DurationMS})
		}
	case "api_retry":
		s.retry(l)
	case "compact_boundary":
		s.queue.Tell(agent.Compaction{Trigger: l.CompactMetadata.Trigger})
	}
}

// parent is the use of a tool that started a subagent; "" is none.
func (s *session) parent(agentID string) string {
	if use := s.subs[agentID]; use != "" {
		return use
	}
	return agentID
}

func (s *session) begin() {
	s.mu.Lock()
	running := s.quiet != nil
	if !running {
		s.quiet = make(chan struct{})
	}
	s.mu.Unlock()
	if running {
		return
	}
	s.turn = turn{prompted: s.turn.prompted}
	s.queue.Tell(agent.TurnStarted{Unprompted: !s.turn.prompted})
}

// retry tells that the provider failed. Credentials that it refuses are not tried again, as the
// program would.
func (s *session) retry(l line) {
	s.queue.Tell(agent.Retry{Attempt: l.Attempt, Max: l.MaxRetries, DelayMillis: int64(l.RetryDelay), Status: l.ErrorStatus, Reason: l.Error})
	if l.Error == "authentication_failed" && s.turn.fatal == "" {
		s.turn.fatal, s.turn.problem = agent.Auth, "the provider refuses the credentials"
		_ = s.interrupt()
	}
}

// A said is a message of the model, or of the user: what tools gave back.
type said struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Usage   *tokens         `json:"usage"`
	Content json.RawMessage `json:"content"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`

	ID    string          `json:"id"` // of tool_use
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string          `json:"tool_use_id"` // of tool_result
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func read(raw json.RawMessage) (m said, parts []part) {
	_ = json.Unmarshal(raw, &m)           // what cannot be read is empty
	_ = json.Unmarshal(m.Content, &parts) // a text has no parts
	return m, parts
}

func (s *session) assistant(l line) {
	m, parts := read(l.Message)
	failed := l.Failed || l.Failed2 || m.Model == "<synthetic>"
	main := l.Parent == "" && !l.Sidechain
	if main && !failed {
		s.measure(m)
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			if main {
				s.turn.text = p.Text
			}
			s.queue.Tell(agent.Text{Text: p.Text, MessageID: m.ID, Parent: l.Parent})
		case "tool_use":
			s.uses[p.ID] = use{parent: l.Parent, began: time.Now()}
			if !isOurs(p.Name) {
				s.queue.Tell(agent.ToolUse{ID: p.ID, Tool: p.Name, Input: p.Input, MessageID: m.ID, Parent: l.Parent})
			}
		}
	}
}

func (s *session) toolResults(l line) {
	_, parts := read(l.Message)
	for _, p := range parts {
		u, known := s.uses[p.ToolUseID]
		if p.Type != "tool_result" || !known {
			continue
		}
		delete(s.uses, p.ToolUseID)
		s.queue.Tell(agent.ToolDone{ID: p.ToolUseID, OK: !p.IsError, Millis: time.Since(u.began).Milliseconds(), Output: process.Beginning(textOf(p.Content))})
	}
}

// textOf returns the text of a content: it is one, or has parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []part
	_ = json.Unmarshal(content, &parts) // what has none says nothing
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
