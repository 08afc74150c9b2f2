package session

import (
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// The agent_log is a second stream of a session, beside its log: what a coding agent did
// about the session, and what was done with what the session came to. Nothing that the
// engine decides follows from it, so it is no part of the fold; but who acts on a session
// but once (a permission that holds for one tool call) has to know whether that was done,
// after a crash too. So it is append-only, each append names the entry that it follows, and
// its entries are chained by hashes like the records of the log.

// An AgentEvent is one entry of a session's agent_log.
type AgentEvent struct {
	Seq  int64           `json:"seq"` // in the agent_log of its session, from 1, without a gap
	At   specialist.Time `json:"at"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"` // a JSON object; nothing secret
	Hash Hash            `json:"-"`    // of it and of those before it; what a store yields has it
}

// AgentStream is the name under which the agent_log of a session is chained.
func AgentStream(id string) string { return id + " agent_log" }

// AppendAgentEvent appends the stored form of e: one JSON object, compact.
func AppendAgentEvent(dst []byte, e AgentEvent) ([]byte, error) {
	raw, err := jsontext.Marshal(e)
	return append(dst, raw...), err
}

// DecodeAgentEvent reads what [AppendAgentEvent] wrote.
func DecodeAgentEvent(stored []byte) (e AgentEvent, err error) {
	if err := json.Unmarshal(stored, &e); err != nil {
		return e, err
	}
	if e.Seq < 1 || e.Kind == "" {
		return e, fmt.Errorf("an entry of an agent_log has a seq from 1 and a kind, and not %d and %q", e.Seq, e.Kind)
	}
	return e, nil
}
