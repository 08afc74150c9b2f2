package agent

import "encoding/json"

// A Kind names a type of event, as in the agent_log of a session and in the bridge.
type Kind string

// Kinds.
const (
	KindOpened     Kind = "opened"
	KindTurn       Kind = "turn_started"
	KindText       Kind = "text"
	KindToolCall   Kind = "tool_call"
	KindToolUse    Kind = "tool"
	KindToolDone   Kind = "tool_done"
	KindSubagent   Kind = "subagent"
	KindUsage      Kind = "usage"
	KindReceipt    Kind = "receipt"
	KindRetry      Kind = "retry"
	KindPermission Kind = "permission"
	KindWithdrawn  Kind = "withdrawn"
	KindHook       Kind = "hook"
	KindCompaction Kind = "compaction"
	KindDone       Kind = "turn_done"
	KindError      Kind = "error"
	KindLog        Kind = "log"
	KindExited     Kind = "exited"
)

// Opened is the first event of a session.
type Opened struct {
	Info
	AgentSession string `json:"session_id"` // the agent's own id, for Spec.Resume
	Window       int64  `json:"window"`     // tokens; 0 if not yet known
	Ceiling      int64  `json:"ceiling"`    // tokens up to which the context can be used; 0 if not yet known
	Resumed      bool   `json:"resumed"`
}

// TurnStarted says that a turn began; Unprompted, that no message led to it.
type TurnStarted struct {
	Unprompted bool `json:"unprompted,omitempty"`
}

// Text is one finished message of the agent.
type Text struct {
	Text      string `json:"text"`
	MessageID string `json:"message_id"`
	Parent    string `json:"parent,omitempty"` // the tool use that started the subagent whose words they are
}

// ToolCall is a use of a tool that the host serves. The host must answer it.
type ToolCall struct {
	ID     string          `json:"call"`
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Parent string          `json:"parent,omitempty"`
}

// ToolUse is a use of a tool of the agent's own, and ToolDone its end.
type ToolUse struct {
	ID        string          `json:"tool_use_id"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
	MessageID string          `json:"message_id,omitempty"` // uses of one message are one batch
	Parent    string          `json:"parent,omitempty"`
}

// ToolDone is the end of a [ToolUse].
type ToolDone struct {
	ID     string `json:"tool_use_id"`
	OK     bool   `json:"ok"`
	Millis int64  `json:"ms"`
	Output string `json:"output,omitempty"` // at most 2 KiB of it
}

// Subagent says that a subagent started or, with Status, ended.
type Subagent struct {
	TaskID      string `json:"task_id"`
	Description string `json:"description"`
	Depth       int    `json:"depth,omitempty"` // 1 of those that the session itself started
	Background  bool   `json:"background,omitempty"`
	Status      string `json:"status,omitempty"` // "" while it runs; else completed, failed, stopped
	Tokens      int64  `json:"tokens,omitempty"`
	Millis      int64  `json:"ms,omitempty"`
}

// Usage says how full the context of a session is and what the session has cost. Counts are
// tokens.
type Usage struct {
	Used    int64  `json:"used"` // of the newest request that counts: input, cache reads and cache writes
	Window  int64  `json:"window"`
	Ceiling int64  `json:"ceiling"`
	Stale   bool   `json:"stale,omitempty"` // the newest request told nothing, and Used is of an earlier one
	Tokens  Tokens `json:"tokens"`          // of the whole session, in this process
	// CostUSD is what the session has cost in this process, subagents included; nil if the
	// agent does not say.
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// Tokens are sums over the requests of a session.
type Tokens struct {
	In         int64 `json:"in"`
	Out        int64 `json:"out"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// ReceiptState says how far a message is.
type ReceiptState string

// States of a message.
const (
	Queued    ReceiptState = "queued"
	Started   ReceiptState = "started"
	Completed ReceiptState = "completed"
)

// Receipt says how far a message is.
type Receipt struct {
	MessageID string       `json:"msg_id"` // Message.ID
	State     ReceiptState `json:"state"`
}

// Retry says that the agent's provider failed and that the agent tries again.
type Retry struct {
	Attempt     int    `json:"attempt"`
	Max         int    `json:"max"`
	DelayMillis int64  `json:"delay_ms"`
	Status      int    `json:"status,omitempty"` // of HTTP
	Reason      string `json:"reason"`
}

// Permission asks whether a tool may be used. The host must answer it, or the agent waits.
type Permission struct {
	ID          string          `json:"ask"`
	Tool        string          `json:"tool"`
	Input       json.RawMessage `json:"input"`
	ToolUseID   string          `json:"tool_use_id,omitempty"`
	BlockedPath string          `json:"blocked_path,omitempty"`
	Suggestions json.RawMessage `json:"suggestions,omitempty"`
	Question    bool            `json:"question,omitempty"` // the tool asks the user; Reply.Answers are the answers
	Parent      string          `json:"parent,omitempty"`   // of a subagent
}

// Withdrawn says that an open [Permission] is no longer asked.
type Withdrawn struct {
	ID string `json:"ask"`
}

// HookPoint says where the agent stands when it asks a [Hook].
type HookPoint string

// Points at which an agent asks.
const (
	BeforeTool       HookPoint = "before_tool"
	AfterTool        HookPoint = "after_tool"
	BeforeCompaction HookPoint = "before_compaction"
)

// Hook asks what to do at a point of the turn. The host must answer it: before a tool or a
// compaction with Allow or with the Reason why not, after a tool with a Notice or nothing.
type Hook struct {
	ID      string          `json:"hook"`
	Point   HookPoint       `json:"point"`
	Tool    string          `json:"tool,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Trigger string          `json:"trigger,omitempty"` // of a compaction: auto or manual
	Parent  string          `json:"parent,omitempty"`  // of a subagent
}

// Compaction says that the context was compacted, or would have been.
type Compaction struct {
	Trigger string `json:"trigger"`
	Blocked bool   `json:"blocked"`
}

// Outcome says how a turn ended.
type Outcome string

// Outcomes.
const (
	Finished  Outcome = "done"
	Cancelled Outcome = "cancelled" // by [Session.Interrupt] or a message that came first
	Crashed   Outcome = "crashed"   // the program ended before the turn did
	Full      Outcome = "full"      // the context is full; the session can take no further turn
	Limit     Outcome = "limit"     // a limit of the agent's own
	Auth      Outcome = "auth"      // the provider refuses the credentials
	Provider  Outcome = "provider"  // the provider failed
)

// Done says that a turn ended.
type Done struct {
	Outcome      Outcome `json:"outcome"`
	Text         string  `json:"text,omitempty"` // the last message of the agent in the turn
	Problem      string  `json:"problem,omitempty"`
	AgentSession string  `json:"session_id"`
	Unprompted   bool    `json:"unprompted,omitempty"`
	// Turn is which turn of its script it was, of an agent that follows one, for [Spec.Taken];
	// 0 is none that has been taken.
	Turn int `json:"turn,omitempty"`
}

// Failed says that something went wrong. Before [Done] it says why the turn failed.
type Failed struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Log is a line of the program that is no part of its protocol.
type Log struct {
	Stream string `json:"stream"` // stdout or stderr
	Text   string `json:"text"`
}

// Exited is the last event of a session.
type Exited struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	Left   []int  `json:"left,omitempty"` // processes that could not be ended
}

// Kind and its like name the events.
func (Opened) Kind() Kind      { return KindOpened }
func (TurnStarted) Kind() Kind { return KindTurn }
func (Text) Kind() Kind        { return KindText }
func (ToolCall) Kind() Kind    { return KindToolCall }
func (ToolUse) Kind() Kind     { return KindToolUse }
func (ToolDone) Kind() Kind    { return KindToolDone }
func (Subagent) Kind() Kind    { return KindSubagent }
func (Usage) Kind() Kind       { return KindUsage }
func (Receipt) Kind() Kind     { return KindReceipt }
func (Retry) Kind() Kind       { return KindRetry }
func (Permission) Kind() Kind  { return KindPermission }
func (Withdrawn) Kind() Kind   { return KindWithdrawn }
func (Hook) Kind() Kind        { return KindHook }
func (Compaction) Kind() Kind  { return KindCompaction }
func (Done) Kind() Kind        { return KindDone }
func (Failed) Kind() Kind      { return KindError }
func (Log) Kind() Kind         { return KindLog }
func (Exited) Kind() Kind      { return KindExited }
