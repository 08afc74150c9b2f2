package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// A message is any that the program sends: a request has an id and a method, a notification no
// id, an answer no method.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type params struct {
	Session  string   `json:"sessionId"`
	Update   update   `json:"update"`
	ToolCall toolCall `json:"toolCall"`
	Options  []option `json:"options"`
}

// An update says what happens in a turn.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"`
	Used    int64           `json:"used"`
	Size    int64           `json:"size"`
	Cost    *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	toolCall
}

// A toolCall is a use of one of the agent's tools.
type toolCall struct {
	ID       string          `json:"toolCallId"`
	Title    string          `json:"title"`
	ToolKind string          `json:"kind"`
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"rawInput"`
	Output   json.RawMessage `json:"rawOutput"`
}

// A use is one that runs.
type use struct {
	toolCall
	began time.Time
	told  bool
	asked bool // for permission
}

// line reads one line of the program. What is not known is left alone.
func (s *session) line(text []byte) {
	<-s.started
	var m message
	if err := json.Unmarshal(text, &m); err != nil && (!json.Valid(text) || text[0] != '{') {
		s.log(process.Beginning(string(text)))
		return
	} // else a member that we know has another type now: what could be read is used
	switch {
	case m.Method == "" && m.ID != nil:
		s.peer.Answered(m.ID, m.Result, m.Error)
	case m.ID != nil:
		s.request(string(m.ID), m.Method, m.Params)
	case m.Method == "session/update" && s.mine(m.Params.Session):
		s.updated(m.Params.Update)
	case m.Method == "session/update" && m.Params.Update.Cost != nil && s.replaying(m.Params.Session):
		s.before = m.Params.Update.Cost.Amount
	}
}

// replaying reports whether something is about what was before this session was gone on with.
func (s *session) replaying(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id == s.session && s.replays
}

// log tells what is no message.
func (s *session) log(text string) {
	if s.process != nil {
		text = s.process.Masked(text)
	}
	s.queue.Tell(agent.Log{Stream: "stdout", Text: text})
}

// mine reports whether something is about this session, and not of what was before it was gone on
// with.
func (s *session) mine(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id == s.session && !s.replays
}

func (s *session) updated(u update) {
	if u.Kind == "agent_message_chunk" {
		var c struct{ Text string }
		_ = json.Unmarshal(u.Content, &c) // a picture has no text
		s.text += c.Text
		return
	}
	switch u.Kind {
	case "tool_call":
		s.endText()
		s.used(u.toolCall)
	case "tool_call_update":
		s.used(u.toolCall)
	case "usage_update":
		s.measure(u)
	}
}

// endText tells the message that was being said, now that something else follows.
func (s *session) endText() {
	if strings.TrimSpace(s.text) == "" {
		s.text = ""
		return
	}
	s.spoken++
	s.last = s.text
	s.queue.Tell(agent.Text{Text: s.text, MessageID: fmt.Sprintf("%s-%d", s.session, s.spoken)})
	s.text = ""
}

// used tells that a tool is used, once it runs, since its input comes piece by piece before, and
// that it has ended.
func (s *session) used(c toolCall) {
	s.mu.Lock()
	u, known := s.uses[c.ID]
	if !known {
		u = use{toolCall: c, began: time.Now()}
	}
	u.merge(c)
	ended := u.Status == "completed" || u.Status == "failed"
	tell := !u.told && (u.Status == "in_progress" || ended)
	u.told = u.told || tell
	if s.uses[c.ID] = u; ended {
		delete(s.uses, c.ID)
	}
	unasked := ended && !u.asked && !s.spec.TrustAgent && (u.ToolKind == "execute" || u.ToolKind == "edit" || u.ToolKind == "delete" || u.ToolKind == "move") && u.Status == "completed"
	s.mu.Unlock()
	if u.own(s.spec.Tools) {
		return // a tool of the host, which it hears of itself
	}
	if unasked {
		s.unasked(u)
	}
	if tell {
		tool, input := u.what()
		s.queue.Tell(agent.ToolUse{ID: u.ID, Tool: tool, Input: input})
	}
	if ended {
		s.queue.Tell(agent.ToolDone{ID: u.ID, OK: u.Status == "completed", Millis: time.Since(u.began).Milliseconds(), Output: process.Beginning(textOf(u.Output))})
	}
}

// unasked ends the turn of an agent that has run or changed something without asking: it is not
// configured to ask, and what it does next cannot be governed either.
func (s *session) unasked(u use) {
	s.queue.Tell(agent.Failed{Code: "unasked", Message: fmt.Sprintf("the agent has used a tool of the kind %s without asking: have it configured to ask, or open it as one that is trusted", u.ToolKind)})
	_ = s.Interrupt(context.Background()) // an error says that it has ended
}

// merge takes over what is new.
func (u *use) merge(c toolCall) {
	if c.Title != "" {
		u.Title = c.Title
	}
	if c.ToolKind != "" {
		u.ToolKind = c.ToolKind
	}
	if c.Status != "" {
		u.Status = c.Status
	}
	if len(c.Input) > 2 {
		u.Input = c.Input
	}
	if len(c.Output) > 0 {
		u.Output = c.Output
	}
}

// kinds are the names of tools by what the protocol says they do, of those whose input is looked at
// by that name. All others have names of their own, of which nothing is known.
var kinds = map[string]string{"execute": "Bash", "edit": "Edit", "fetch": "WebFetch"}

// what returns what is used, and with which input.
func (c toolCall) what() (tool string, input json.RawMessage) {
	if tool = kinds[c.ToolKind]; tool == "" {
		tool = "acp__" + cmp.Or(c.ToolKind, "other")
	}
	if input = c.Input; len(input) == 0 {
		input, _ = json.Marshal(map[string]string{"title": c.Title}) // a text
	}
	return tool, input
}

// own reports whether a use is that of a tool that the host serves: by its title, and since that may
// be anybody's words, by its input, which has no member that the tool does not have.
func (c toolCall) own(tools []agent.Tool) bool {
	if c.ToolKind != "" && c.ToolKind != "other" {
		return false
	}
	for _, t := range tools {
		if c.Title == "dialai_"+t.Name || c.Title == "mcp__dialai__"+t.Name {
			return takes(t, c.Input)
		}
	}
	return false
}

// takes reports whether all members of an input are those of a tool.
func takes(t agent.Tool, input json.RawMessage) bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(t.InputSchema, &schema) // one that cannot be read has no members
	if len(input) > 0 && json.Unmarshal(input, &members) != nil {
		return false
	}
	for name := range members {
		if _, known := schema.Properties[name]; !known {
			return false
		}
	}
	return true
}

// may reports whether the host lets the agent have a tool at all.
func (s *session) may(tool string) bool {
	own := s.spec.OwnTools
	switch tool {
	case "Edit":
		return own == nil || slices.Contains(own, "Edit") || slices.Contains(own, "Write")
	case "Bash", "WebFetch":
		return own == nil || slices.Contains(own, tool)
	}
	return own == nil || len(own) > 0
}

// measure tells how full the context is, if that was said. Each is taken for a request of its own
// where the agent does not count. What the session had cost before it was gone on with is no cost of this process.
func (s *session) measure(u update) {
	if u.Used > 0 {
		s.usage.Used = u.Used
		if !s.counted {
			s.usage.Tokens.In += u.Used
		}
	}
	s.usage.Window, s.usage.Ceiling, s.usage.Stale = u.Size, u.Size, u.Used <= 0
	if u.Cost != nil && u.Cost.Amount > 0 && (u.Cost.Currency == "" || u.Cost.Currency == "USD") { // 0 is what a model without a price costs
		cost := max(0, u.Cost.Amount-s.before)
		s.usage.CostUSD = &cost
	}
	s.queue.Tell(s.usage)
}

// A bill is what a turn used, if the agent counts it.
type bill struct {
	Input     int64 `json:"inputTokens"`
	Output    int64 `json:"outputTokens"`
	CacheRead int64 `json:"cachedReadTokens"`
}

// count takes what a turn used by the agent's own count, which goes before ours.
func (s *session) count(b *bill) {
	if b == nil {
		return
	}
	if !s.counted {
		s.counted, s.usage.Tokens = true, agent.Tokens{}
	}
	s.usage.Tokens.In += max(0, b.Input)
	s.usage.Tokens.Out += max(0, b.Output)
	s.usage.Tokens.CacheRead += max(0, b.CacheRead)
	s.queue.Tell(s.usage)
}

func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
