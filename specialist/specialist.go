// Package specialist names who takes part in a session, what they are asked,
// what they say and what it cost.
//
// A [Proposer] gets a [Question] and gives an [Answer]; checked against the
// state, an answer becomes a [Proposal] of the round. A [Context] gathers text
// for a model. The package holds values and interfaces only.
package specialist

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// A Proposer proposes one of the legal transitions of a state.
//
// Propose may be called concurrently, for different sessions and for the same
// one. It must return soon after ctx is done. It must not keep or change q after
// it returned. An answer that is not legal in the state, an error and a panic
// count as a failed ask: they are recorded, and the round goes on without it.
// A function that ends its goroutine, as a test's FailNow does, ends the step
// that asked it; nothing stays locked, and the next step asks again.
type Proposer interface {
	Propose(ctx context.Context, q Question) (Answer, error)
}

// ProposerFunc makes a Proposer of a function.
type ProposerFunc func(ctx context.Context, q Question) (Answer, error)

// Propose calls f.
func (f ProposerFunc) Propose(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// A Context gathers the text that a model is shown about a session. The rules
// of [Proposer] hold for it too.
type Context interface {
	Gather(ctx context.Context, q Question) (string, error)
}

// ContextFunc makes a Context of a function.
type ContextFunc func(ctx context.Context, q Question) (string, error)

// Gather calls f.
func (f ContextFunc) Gather(ctx context.Context, q Question) (string, error) { return f(ctx, q) }

// ErrUncounted is wrapped by the error of a Proposer or an arbiter that was answered,
// but in a way that does not say what the answer cost. The ask is charged as it was
// estimated.
var ErrUncounted = errors.New("the answer does not say what it cost")

// ErrAccepted is returned by a Proposer that was reached but will answer later,
// as a webhook does with status 202. The ask then stays open.
var ErrAccepted = errors.New("accepted, the answer comes later")

// ErrDecided is why the context of an ask ends, as context.Cause tells it, if the round
// is decided without it.
var ErrDecided = errors.New("the round is decided")

// A Question is what every proposer of a round is asked: the same for all of
// them, so that none learns of another's proposal. It is valid during the call
// and must not be changed.
type Question struct {
	Key     RoundKey
	Machine *machine.Machine
	State   *machine.State
	Meta    json.RawMessage // the session's metaJson; nil if it has none
	Data    jsontext.Object // the session's data
	Notices []string        // what guards want the proposers to know
	Past    Past            // never nil
	Ask     *Ask            // nil for asks inside this process
	Self    string          // id of the specialist that is asked; never sent
	Seed    uint64          // of the session's random choices; 0 if none was given
	Encoded []byte          // what AppendContext appends, if that has been made already
}

// Transitions returns the legal transitions in the order they were written.
func (q Question) Transitions() []*machine.Transition { return q.State.Transitions }

// Choose returns the answer that proposes t.
func (q Question) Choose(t *machine.Transition, reasoning string) Answer {
	return Answer{TransitionName: t.Name, Reasoning: reasoning}
}

// Stream returns the seed of a PCG generator for one purpose of this ask: the
// first 16 bytes of SHA-256 over the session's seed (or else its id), the round,
// the attempt, the specialist and the purpose. The same ask draws the same
// numbers, however often it is repeated.
func (q Question) Stream(purpose string) (hi, lo uint64) {
	b := make([]byte, 0, 128)
	if q.Seed != 0 {
		b = binary.BigEndian.AppendUint64(b, q.Seed)
	} else {
		b = append(b, q.Key.Session[:]...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(q.Key.Round))
	b = binary.BigEndian.AppendUint32(b, uint32(q.Key.Attempt))
	b = append(append(append(b, q.Self...), 0), purpose...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])
}

// An Ask identifies one asking of one specialist outside this process. The id
// is the same when the ask is repeated, after a failed attempt or a restart.
type Ask struct {
	ID            string // idempotency key
	CallbackURL   string // where a later answer is to be sent; may be ""
	CallbackToken string // the secret that goes with it
	Nth           int32  // how often the specialist was asked before in the round, repeated asks aside
}

// Past is what a session remembers. It is read only when somebody asks for it,
// and may be used concurrently by everybody who was asked.
type Past interface {
	// Steps returns the number of executed transitions.
	Steps() int
	// Visits returns how often the session has entered the state, its present
	// stay included.
	Visits(s *machine.State) int
	// Last returns the transition executed last, or nil.
	Last() *machine.Transition
	// History returns every executed transition, the oldest first. The caller
	// must not change it.
	History() []TransitionRecord
	// Exemplars returns earlier human decisions in this state, the oldest
	// first. The caller must not change it.
	Exemplars() []Exemplar
}

// A TransitionRecord is one executed transition as proposers and arbiters see
// it.
type TransitionRecord struct {
	TransitionName     string          `json:"transitionName"`
	Reasoning          string          `json:"reasoning"`
	ExecutionTimestamp Time            `json:"executionTimestamp"`
	MetaJSON           json.RawMessage `json:"metaJson,omitempty"`
}

// An Answer is what a proposer says: DIAL's ProposerStrategyResult.
type Answer struct {
	TransitionName string
	ToState        string // may be empty; if not, it must be the transition's target
	Reasoning      string
	MetaJSON       json.RawMessage // one JSON value, or nil
	Usage          Usage
	Model          string // which model is charged for, if one answered
	Asked          string // the model that was asked, if Model is another one
	Answered       string // how its provider calls the model that answered; "" if that is Model
	ToolCalls      []ToolCall
	OptionOrder    []string // the transitions in the order in which they were shown, if that was drawn
}

// An Estimator is a Proposer that can say what an ask is likely to need, so that
// a budget can hold that much for it. The rules of [Proposer] hold, and Estimate
// waits for nothing.
type Estimator interface {
	Estimate(q Question) Estimate
}

// An Estimate is what one call of a model is likely to need at most, and how many
// more an ask may take.
type Estimate struct {
	Model                     string // which is asked
	InputTokens, OutputTokens int64

	Repairs     int64 // calls more, if answers cannot be used
	RepairInput int64 // tokens that each of them reads beyond InputTokens
	Retries     int64 // calls more that cost nothing, because the provider refuses them
}

// A ToolCall is one call of a tool that an answer declares.
type ToolCall struct {
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`   // one JSON value; empty means null
	ID     string          `json:"id,omitempty"`     // no part of what the call is
	Result json.RawMessage `json:"result,omitempty"` // what it returned, if that is known
}

// A Proposal is an answer that was checked and belongs to a round. It never
// changes.
type Proposal struct {
	SpecialistID string
	Transition   *machine.Transition
	Reasoning    string
	MetaJSON     json.RawMessage
	Usage        Usage
	CreatedAt    Time
	Arrival      int32 // within the round, from 1
	Replaces     int32 // arrival of the same specialist's earlier proposal; 0 if none
	IsHuman      bool
	Mode         Source
	Detail       *Detail // nil for most
}

// LacksPayload reports whether the parameters of the proposed transition ask for more
// than p gives: then p is a vote, and its payload has to come from somebody else.
func (p *Proposal) LacksPayload() bool { return p.Transition.NeedsPayload && len(p.MetaJSON) == 0 }

// Detail is what only some proposals carry.
type Detail struct {
	Model       string
	Asked       string // see Answer
	ToolCalls   []ToolCall
	OptionOrder []string
	AskID       string // of asks outside this process
}

// Source says how a proposal came about.
type Source uint8

// The sources of a proposal: handed in from outside, or asked from a function,
// a webhook, a model or a coding agent.
const (
	Submitted Source = iota
	Function
	Builtin
	Expression
	Webhook
	Model
	Agent
)

var sourceNames = [...]string{"submitted", "function", "builtin", "expression", "webhook", "model", "agent"}

// String returns the name used in logs.
func (s Source) String() string { return sourceNames[s] }

// VotesOnly reports whether proposals of that source never have a payload: rules and
// built-in strategies have none to give.
func (s Source) VotesOnly() bool { return s == Builtin || s == Expression }

// SourceNamed is the reverse of String; unknown names are Submitted.
func SourceNamed(name string) Source {
	for i, n := range sourceNames {
		if n == name {
			return Source(i)
		}
	}
	return Submitted
}

// An Exemplar is one human decision, kept as an example. It is flat: its
// context holds no exemplars.
type Exemplar struct {
	ExemplarID          string          `json:"exemplarId"`
	MachineName         string          `json:"machineName"`
	State               string          `json:"state"`
	Context             json.RawMessage `json:"context"` // a ProposerContext without exemplars
	HumanTransitionName string          `json:"humanTransitionName"`
	HumanToState        string          `json:"humanToState"`
	Proposals           json.RawMessage `json:"proposals"`
	CreatedAt           Time            `json:"createdAt"`
	Reasoning           string          `json:"reasoning,omitempty"`
	SpecialistID        string          `json:"specialistId,omitempty"`
	SessionID           string          `json:"sessionId,omitempty"`
	Truncated           bool            `json:"truncated,omitempty"`
}
