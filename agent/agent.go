// Package agent drives one coding agent, whatever program it is: it opens a session of the
// agent, sends it messages, answers what it asks, and tells as events what it does.
//
// An agent runs as a process of its own and speaks a protocol of its own; the packages below
// this one ([Agent] for Claude Code, Codex, the Agent Client Protocol, and one that follows a
// script) translate. Nothing here knows of machines, sessions of the engine or money rules:
// the host decides, and a host in another language does so over the same events.
//
// All events of a session arrive on one channel in the order in which they happened. Three of
// them wait for the host: [Permission], [ToolCall] and [Hook]; the agent stands still there
// until [Session.Answer]. So a host that keeps all its state in one goroutine answers by what
// it knows then, without a lock.
package agent

import (
	"context"
	"encoding/json"
	"time"
)

// An Agent is a program that works in sessions. It may be used concurrently.
type Agent interface {
	// Check starts the program, shakes hands and ends it again. It takes no turn and costs
	// nothing.
	Check(ctx context.Context) (Info, error)
	// Open starts a session, or goes on with the one that spec.Resume names, and returns once
	// it can be sent messages; [ErrUnknown] says that the agent has no such session any more.
	// Its events are sent on events until [Exited], which is the last; whoever reads them must
	// go on reading until then. Every [TurnStarted] has its [Done] before that. ctx is only for
	// opening; after an error nothing is sent.
	Open(ctx context.Context, spec Spec, events chan<- Event) (Session, error)
}

// A Session is an open session of an agent. It may be used concurrently. Send, Answer and
// Interrupt may be called by whoever reads the events, between two of them; Close waits for
// [Exited] to be read, so somebody else must call it. All but Close return [ErrClosed] once the
// session has ended.
type Session interface {
	// Send hands a message over: the agent's program has it, or gets it before whatever is sent
	// later. What happens with it follows as [Receipt] events.
	Send(ctx context.Context, m Message) error
	// Answer answers the event that r.To names. An answer to what is no longer asked is
	// [ErrStale], and changes nothing.
	Answer(ctx context.Context, r Reply) error
	// Interrupt ends the running turn, if there is one, and no more.
	Interrupt(ctx context.Context) error
	// Close ends the session and returns when no process of it is left, or with an error that
	// names those that are. It may be called again, and while a turn runs.
	Close(ctx context.Context) error
}

// A Meter is a Session that can be asked how full its context is, at any time and at no cost.
type Meter interface {
	Usage(ctx context.Context) (Usage, error)
}

// A Spec says what session to open.
type Spec struct {
	ID           string   // of the session, as the host names it; marks its processes, all of which Close ends, so no other on the machine may have it
	Cwd          string   // absolute; where it works
	Model        string   // "" leaves the choice to the agent
	SystemPrompt string   // appended to the agent's own
	Resume       string   // the agent's own id of a session to go on with; "" opens a new one
	OwnTools     []string // of the agent's own tools, those that it may use; nil means all, an empty list none
	Tools        []Tool   // that the host serves: a use of one is a [ToolCall]
	Env          []string // "NAME=VALUE" beside the environment of the host; never told in an event
	TrustAgent   bool     // open also where the agent cannot ask for permission
	Base         Base     // what the share of the context is measured against

	// As and Taken are for an agent that follows a script: whose session it is, so which turns
	// of the script are for it, and the [Done.Turn] of all turns of the script that have been
	// taken, by whomever.
	As    string
	Taken []int
}

// A Tool is one that the host serves.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"` // JSON Schema of an object
}

// Info says what a program is and can do.
type Info struct {
	Agent        string       `json:"agent"`
	Version      string       `json:"version"`
	Model        string       `json:"model,omitempty"`
	Capabilities Capabilities `json:"capabilities"`
}

// Capabilities are what an agent offers beside messages and turns.
type Capabilities struct {
	Resume          bool `json:"resume"`           // a session can be gone on with
	HookNotice      bool `json:"hook_notice"`      // a notice can be added to a tool's result
	BlockCompaction bool `json:"block_compaction"` // it asks before it compacts its context
	Probe           bool `json:"probe"`            // the session is a [Meter]
	LiveUsage       bool `json:"live_usage"`       // usage is told within a turn
	Cost            bool `json:"cost"`             // it tells what it costs
	SubagentIDs     bool `json:"subagent_ids"`     // what subagents do is told apart
	SpawnLimits     bool `json:"spawn_limits"`     // a subagent can be refused before it starts
	Permission      bool `json:"permission"`       // it asks before it uses a tool
}

// A Delivery says when a message reaches a session whose turn runs.
type Delivery string

// Deliveries.
const (
	Steer Delivery = "steer" // in the running turn, at its next safe point; it starts a turn if none runs
	After Delivery = "after" // as a turn of its own, afterwards
	Now   Delivery = "now"   // as a turn of its own; the running one ends
)

// A Message is what the user of a session says.
type Message struct {
	ID      string   // a UUID; keys the receipts
	Content string   // not empty
	Deliver Delivery // "" is [Steer]
}

// A Reply answers a [Permission], a [ToolCall] or a [Hook].
type Reply struct {
	To string // the id of what is answered
	// Allow permits the use of a tool, once. Without it Reason says what to do instead.
	Allow  bool
	Reason string
	// Answers are those to a question to the user, an object {question: label}; they go with
	// Allow.
	Answers json.RawMessage
	// Content is the result of a tool that the host serves, an error if IsError.
	Content string
	IsError bool
	// Notice is added to what the agent reads next, of a hook after a tool.
	Notice string
}

// An Event is one thing that happened in a session.
type Event struct {
	Session string // Spec.ID
	At      time.Time
	Body    Body
}

// A Body is what an event says: one of the types in events.go, by value.
type Body interface{ Kind() Kind }
