package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/agent"
)

// stamp is how the time of an event is written: RFC 3339, in UTC, to the millisecond.
const stamp = "2006-01-02T15:04:05.000Z"

// A head begins every event.
type head struct {
	Event string `json:"event"`
	Seq   uint64 `json:"seq"` // from 1, without a gap
	TS    string `json:"ts"`
	ID    string `json:"id,omitempty"` // of the session that it is about
}

// An event is what follows the head.
type event interface{ event() string }

type sessionEvent struct {
	SessionID    string   `json:"session_id"` // the agent's own, for resume
	Agent        string   `json:"agent"`
	Version      string   `json:"version"`
	Model        string   `json:"model"`
	Window       int64    `json:"window"`
	Ceiling      int64    `json:"ceiling"`
	Resumed      bool     `json:"resumed"`
	Capabilities []string `json:"capabilities"`
}

type assistantEvent struct {
	Text       string `json:"text"`
	ContextPct int    `json:"context_pct"`
	MessageID  string `json:"message_id"`
	Parent     string `json:"parent,omitempty"`
}

type toolCallEvent struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
	Call  string          `json:"call"`
	Orch  string          `json:"orch,omitempty"`
}

type toolUseEvent struct {
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Parent    string          `json:"parent,omitempty"`
}

type toolDoneEvent struct {
	ToolUseID string `json:"tool_use_id"`
	OK        bool   `json:"ok"`
	Millis    int64  `json:"ms"`
}

type subagentStartEvent struct {
	Description string `json:"description"`
	TaskID      string `json:"task_id"`
	Depth       int    `json:"depth"`
	Background  bool   `json:"background"`
}

type subagentStopEvent struct {
	Description string `json:"description"`
	TaskID      string `json:"task_id"`
	Status      string `json:"status"`
	Tokens      int64  `json:"tokens"`
	Millis      int64  `json:"ms"`
}

type contextWarningEvent struct {
	Pct     int         `json:"pct"`
	Level   agent.Level `json:"level"`
	Used    int64       `json:"used"`
	Ceiling int64       `json:"ceiling"`
}

// A usageEvent is also what the command usage is answered.
type usageEvent struct {
	Used       int64        `json:"used"`
	Window     int64        `json:"window"`
	Ceiling    int64        `json:"ceiling"`
	ContextPct int          `json:"context_pct"`
	Tokens     agent.Tokens `json:"tokens"`
	CostUSD    *float64     `json:"cost_usd,omitempty"`
}

type permissionEvent struct {
	Ask    string          `json:"ask"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Parent string          `json:"parent,omitempty"`
}

type receiptEvent agent.Receipt

type retryEvent struct {
	Attempt int    `json:"attempt"`
	Max     int    `json:"max"`
	DelayMS int64  `json:"delay_ms"`
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
}

type compactionEvent agent.Compaction

type doneEvent struct {
	SessionID  string          `json:"session_id"`
	Outcome    agent.Outcome   `json:"outcome"`
	CostUSD    *float64        `json:"cost_usd"` // of the session so far; null: not told
	Decision   json.RawMessage `json:"decision,omitempty"`
	Unprompted bool            `json:"unprompted"`
}

type errorEvent struct {
	Message   string          `json:"message"`
	Code      code            `json:"code"`
	Retryable bool            `json:"retryable"`
	Attempt   int             `json:"attempt,omitempty"`
	Req       json.RawMessage `json:"req,omitempty"`
}

type exitEvent struct {
	Code   int    `json:"code"`
	Signal string `json:"signal"`
	Left   []int  `json:"left"`
}

type logEvent agent.Log

type okEvent struct {
	Req    json.RawMessage `json:"req,omitempty"`
	result any             // whose members follow; nil: none
}

func (sessionEvent) event() string        { return "session" }
func (assistantEvent) event() string      { return "assistant" }
func (toolCallEvent) event() string       { return "tool_call" }
func (toolUseEvent) event() string        { return "tool_use" }
func (toolDoneEvent) event() string       { return "tool_done" }
func (subagentStartEvent) event() string  { return "subagent_start" }
func (subagentStopEvent) event() string   { return "subagent_stop" }
func (contextWarningEvent) event() string { return "context_warning" }
func (usageEvent) event() string          { return "usage" }
func (permissionEvent) event() string     { return "permission" }
func (receiptEvent) event() string        { return "receipt" }
func (retryEvent) event() string          { return "retry" }
func (compactionEvent) event() string     { return "compaction" }
func (doneEvent) event() string           { return "done" }
func (errorEvent) event() string          { return "error" }
func (exitEvent) event() string           { return "exit" }
func (logEvent) event() string            { return "log" }
func (okEvent) event() string             { return "ok" }

// encode returns the line of an event.
func encode(h head, body event) []byte {
	parts := []any{h, body}
	if o, is := body.(okEvent); is && o.result != nil {
		parts = append(parts, o.result)
	}
	line := []byte("{")
	for _, p := range parts {
		if inner := inside(p); len(inner) > 0 {
			if len(line) > 1 {
				line = append(line, ',')
			}
			line = append(line, inner...)
		}
	}
	return append(line, "}\n"...)
}

// inside returns the members of a value of ours, which always has JSON.
func inside(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("bridge: %T: %v", v, err))
	}
	text := bytes.TrimSpace(b.Bytes())
	return text[1 : len(text)-1]
}

// sound returns what an agent gives as JSON, or null where it is none.
func sound(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage("null")
	}
	return raw
}
