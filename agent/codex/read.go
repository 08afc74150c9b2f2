package codex

import (
	"encoding/json"
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

// params are those of every method that is known.
type params struct {
	Turn struct {
		ID     string     `json:"id"`
		Status string     `json:"status"`
		Error  *turnError `json:"error"`
	} `json:"turn"`
	Item       item `json:"item"`
	TokenUsage struct {
		Last   tokens `json:"last"`
		Total  tokens `json:"total"`
		Window int64  `json:"modelContextWindow"`
	} `json:"tokenUsage"`
	Error     *turnError `json:"error"`
	WillRetry bool       `json:"willRetry"`

	ItemID      string          `json:"itemId"` // of what is asked
	Command     string          `json:"command"`
	Cwd         string          `json:"cwd"`
	Reason      string          `json:"reason"`
	Permissions json.RawMessage `json:"permissions"`
	Questions   json.RawMessage `json:"questions"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"`
}

type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

type tokens struct {
	Input      int64 `json:"inputTokens"` // cached ones included
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
}

// An item is a part of a turn.
type item struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Text    string          `json:"text"`
	Command string          `json:"command"`
	Cwd     string          `json:"cwd"`
	Output  string          `json:"aggregatedOutput"`
	Status  string          `json:"status"`
	Changes json.RawMessage `json:"changes"`

	began time.Time
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
	default:
		s.notified(m.Method, m.Params)
	}
}

// log tells what is no message.
func (s *session) log(text string) {
	if s.process != nil {
		text = s.process.Masked(text)
	}
	s.queue.Tell(agent.Log{Stream: "stdout", Text: text})
}

func (s *session) notified(method string, p params) {
	switch method {
	case "turn/started":
		s.begun(p.Turn.ID)
	case "turn/completed":
		s.finish(p)
	case "item/started":
		s.itemStarted(p.Item)
	case "item/completed":
		s.itemDone(p.Item)
	case "thread/tokenUsage/updated":
		s.measure(p)
	case "error":
		if p.WillRetry && p.Error != nil {
			s.queue.Tell(agent.Retry{Reason: p.Error.Message})
		}
	}
}

func (s *session) begun(turn string) {
	s.mu.Lock()
	prompted := s.starting
	s.turn, s.starting, s.text = turn, false, ""
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	s.queue.Add(agent.TurnStarted{Unprompted: !prompted})
	for _, id := range s.inside {
		s.queue.Add(agent.Receipt{MessageID: id, State: agent.Started})
	}
	for _, m := range s.early {
		s.steer(m)
	}
	s.early = nil
	s.mu.Unlock()
}

func (s *session) finish(p params) {
	done := agent.Done{Outcome: outcome(p.Turn.Status, p.Turn.Error), Text: s.text, AgentSession: s.thread}
	if e := p.Turn.Error; e != nil {
		done.Problem = e.Message
		s.queue.Tell(agent.Failed{Code: string(done.Outcome), Message: e.Message, Retryable: done.Outcome == agent.Provider})
	}
	s.withdraw()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.inside {
		s.queue.Add(agent.Receipt{MessageID: id, State: agent.Completed})
	}
	s.queue.Add(done)
	s.turn, s.inside = "", nil
	quiet := s.quiet
	s.quiet = nil
	if len(s.later) > 0 && !s.closing {
		m := s.later[0]
		s.later = s.later[1:]
		s.begin(m)
	}
	if quiet != nil {
		close(quiet)
	}
}

// outcome says how a turn ended.
func outcome(status string, e *turnError) agent.Outcome {
	switch {
	case status == "completed":
		return agent.Finished
	case status == "interrupted":
		return agent.Cancelled
	case e == nil:
		return agent.Provider
	}
	var info string
	var connection map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.Info, &info) != nil {
		_ = json.Unmarshal(e.Info, &connection) // what is neither is not known
	}
	for _, c := range connection {
		if c.Status == 401 || c.Status == 403 {
			return agent.Auth
		}
	}
	switch info {
	case "contextWindowExceeded":
		return agent.Full
	case "unauthorized":
		return agent.Auth
	case "usageLimitExceeded", "sessionBudgetExceeded", "rateLimitExceeded":
		return agent.Limit
	}
	return agent.Provider
}

// measure tells what the newest request used. Its input is all that is in the context.
func (s *session) measure(p params) {
	u, total := agent.Usage{Used: p.TokenUsage.Last.Input, Window: p.TokenUsage.Window, Ceiling: ceiling(p.TokenUsage.Window)}, p.TokenUsage.Total
	u.Tokens = agent.Tokens{In: total.Input - total.Cached - total.CacheWrite, Out: total.Output, CacheRead: total.Cached, CacheWrite: total.CacheWrite}
	if u.Used > 0 { // else it is not known
		s.queue.Tell(u)
	}
}

// ceiling is where the program compacts: it does so at nine tenths of its model's window, of
// which it tells as its own 95 per cent.
func ceiling(window int64) int64 { return window * 90 / 95 }

func (s *session) itemStarted(i item) {
	i.began = time.Now()
	s.items[i.ID] = i
	if tool, input, ok := i.use(); ok {
		s.queue.Tell(agent.ToolUse{ID: i.ID, Tool: tool, Input: input})
	}
}

// use is what an item is as a use of a tool of the agent's own.
func (i item) use() (tool string, input json.RawMessage, ok bool) {
	var members any
	switch i.Type {
	case "commandExecution":
		tool, members = "exec_command", map[string]any{"command": i.Command, "cwd": i.Cwd}
	case "fileChange":
		tool, members = "apply_patch", map[string]any{"changes": i.Changes}
	default:
		return "", nil, false
	}
	input, err := json.Marshal(members)
	return tool, input, err == nil
}

func (s *session) itemDone(i item) {
	began, known := s.items[i.ID]
	delete(s.items, i.ID)
	switch i.Type {
	case "agentMessage":
		s.text = i.Text
		s.queue.Tell(agent.Text{Text: i.Text, MessageID: i.ID})
		return
	case "contextCompaction":
		s.queue.Tell(agent.Compaction{Trigger: "auto"})
		return
	}
	tool, input, ok := i.use()
	if !ok || !known {
		return
	}
	s.queue.Tell(agent.ToolDone{ID: i.ID, OK: i.Status == "completed", Millis: time.Since(began.began).Milliseconds(), Output: process.Beginning(i.Output)})
	s.put("after-"+i.ID, question{reply: func(a agent.Reply) {
		if a.Notice != "" {
			s.tellLater(a.Notice)
		}
	}}, agent.Hook{ID: "after-" + i.ID, Point: agent.AfterTool, Tool: tool, Input: input})
}
