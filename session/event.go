package session

import (
	"encoding/json"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// The kinds of events: all that can happen in a session, as plain data. A kind is a
// type here, with its stored name and the members of its stored form (form_events.go,
// form_verdict.go); what it does to a session says Apply (fold.go). An event is a fact:
// it is never changed and never refused when it is read back, so whatever must be
// decided is decided before it is made, and what a random draw or a clock said is part
// of it.
//
// A new kind needs a type here, its form (form_events.go), a case in applyEvent (fold.go), in
// the decoder (folder.go) and, if a fork inherits it, in fork.go, a line in the golden logs and a
// row in docs/json.md. Who may have to know it: the projection of stores, back-tests
// (internal/lab/backtest/read.go), the printer (cli/print.go), the metrics
// (internal/telemetry/prom), streams (server/stream_entry.go) and logs of guards (internal/guardlog).
// Older programs refuse logs that have it; a new member of an old kind they pass over.

// An Event is one thing that happened in a session. Events of one commit follow
// each other without a gap; the first has the sequence number of its record.
type Event struct {
	At   specialist.Time
	Data Data // never nil, never changed
}

// Data is what an event says. The kinds of events are the types in this file.
type Data interface {
	Kind() string
	// form declares the members of the stored form.
	form(f *form)
}

// Created opens a session's log.
type Created struct {
	Program *Program
	Options Options

	snapshot *snapshot // of a fork; nil for others
	forked   *Folder   // at the end of the snapshot
}

// Forked reports whether the session began as a fork of another, with what that had spent.
func (d *Created) Forked() bool { return d.snapshot != nil }

// RoundOpened begins a round, or a further attempt at one.
type RoundOpened struct {
	Round, Attempt int32
	State          *machine.State
	Notices        []string
	Closed         []ClosedTransition // by their conditions; of a first attempt
	Due            *Due               // by when the state is to be left; nil if it is not, or this is a further attempt
}

// Proposed records a proposal.
type Proposed struct {
	specialist.Proposal
	Ask   int32  // the ask it answers; 0 if it was submitted unasked
	Actor *Actor // who handed it in; nil if that is not said
	// QuestionDigest is that of the question it answers; "" if nobody said.
	QuestionDigest string
}

// AskFailed records that an ask ended without a proposal.
type AskFailed struct {
	SpecialistID string
	Ask          int32
	Role         machine.Role
	Code         string
	Message      string
	Usage        specialist.Usage
	Model        string
	Asked        string // the model that was asked, if another answered
}

// Discarded records an answer that came too late to count, with its cost.
type Discarded struct {
	SpecialistID   string
	Round, Attempt int32 // of the ask
	Ask            int32
	TransitionName string
	Code           string
	Usage          specialist.Usage
	Model          string
	Asked          string      // the model that was asked, if another answered
	Charged        exact.Money // what the session was already charged for it; to be read, not to be believed
	ChargedIn      int64       // likewise, in tokens
	ChargedOut     int64
	Repeat         int32 // of the request that it answers: RemoteAsk.Repeat as it was sent
}

// Probed records what came of a question of the guards' own, or what they have
// measured with several.
type Probed struct {
	Guard    string   // whose question it was: "__truth" or "__classifier"
	Ask      int32    // under which it was reserved; 0 for a measurement
	Stage    string   // what it was for
	Question string   // a digest of it
	Reply    string   // "" if there is none
	Value    *float64 // of a measurement, from 0 to 1; nil for questions
	Code     string   // why there is no reply; "" if there is one
	Message  string
	Usage    specialist.Usage
	Model    string
	Asked    string // the model that was asked, if another answered
	Free     bool   // it is not paid from the session's budget
}

// Judged records a verdict of the arbiter, with all that it depended on.
type Judged struct {
	Index     int32 // within the round, from 1
	Ask       int32 // of an arbiter outside this process; 0 otherwise
	ArbiterID string
	Strategy  string
	Decision  arbiter.Decision
	Order     []int32            // arrivals of the proposals, in the round's order
	Weights   []exact.Billionths // of their authors, at this time
	Threshold *machine.Threshold // in force; nil if nobody set one
	Margin    exact.Billionths   // by weight, whatever the strategy
	Usage     specialist.Usage   // what the verdict cost
	Model     string             // that was asked for it; "" if none was
	Evidence  *JudgedBy          // what bayes decided by; nil for others
}

// JudgedBy is what a verdict of bayes depended on, besides the votes and the
// definition.
type JudgedBy struct {
	Place        int64    `json:"place"` // Lesson.Seq of the newest lesson in the ledger
	PolicyDigest string   `json:"policyDigest"`
	Versions     []string `json:"versions"` // of the authors, by place in Order
	// Partial says that somebody who takes part had not been asked, and Stop why
	// nobody else was; it is "" if everyone was, or nothing was decided about that.
	Partial bool       `json:"partial,omitempty"`
	Stop    trust.Stop `json:"stop,omitempty"`
}

// Gated records what the guards said of a step that was about to be executed.
type Gated struct {
	Transition *machine.Transition
	Verdict    verdict.Verdict
	IsHuman    bool
}

// A DecisionKind says how a transition came to be executed.
type DecisionKind uint8

// The kinds of decisions.
const (
	ByConsensus DecisionKind = iota
	Forced
	Direct  // executeTransition: teaches nothing
	ByTimer // the state was due: nobody decided
)

var decisionKinds = [...]string{"consensus", "forced", "executed", "timer"}

// Ruling reports whether a human decided.
func (k DecisionKind) Ruling() bool { return k == Forced || k == Direct }

// TimerID is in the place of a specialist's id where the timer of a state has executed its
// transition.
const TimerID = "__timer"

// String returns the name used in JSON.
func (k DecisionKind) String() string { return decisionKinds[k] }

// Ruled records a human's ruling that waits for others: nothing is executed by it.
// A later one of the same human takes its place.
type Ruled struct {
	SpecialistID   string
	Transition     *machine.Transition // nil: the human takes the ruling back
	MetaJSON       json.RawMessage
	Reasoning      string
	QuestionDigest string // of what the human was asked; "" if nobody said
	Blind          bool   // the human had not seen what was proposed
	Direct         bool   // it was executeTransition, which teaches nothing
	Draws          *Draws // why others are asked; nil but for the first of a round
	Actor          *Actor // who ruled; nil if that is not said
	Manner
}

// Executed records a transition. The Executed events of a session form its
// history.
type Executed struct {
	Transition   *machine.Transition
	How          DecisionKind
	IsHuman      bool
	SpecialistID string // the winner, or the human
	Arrival      int32  // of the winning proposal; 0 if there is none
	Reasoning    string // the human's, or the winner's
	MetaJSON     json.RawMessage
	At           specialist.Time
	Standing     *Standing // the round as a human found it; nil for consensus
	Draws        *Draws    // who else is to look at it; nil if nobody could be drawn
	Authors      []string  // the humans who agreed, by when they ruled; nil if SpecialistID alone decided
	// Data are the members of the session's data that it has written, an object; nil if it
	// sets none. Subject is then what the session is about from now on.
	Data    json.RawMessage
	Subject string
	Actor   *Actor // who ruled, of several who agreed the last; nil for consensus, and if that is not said
	// QuestionDigest is that of the question on which the last of them ruled; "" if nobody said.
	QuestionDigest string
	Manner         // of the last of them; zero for consensus
	Round          int32
	Attempt        int32

	Previous *Executed
	Visits   int32 // of the target state, this one included
}

// A Standing is what a decision record shows of the round that a human closed.
type Standing struct {
	Order     []int32            `json:"order"` // arrivals of the proposals, in the round's order
	Weights   []exact.Billionths `json:"weights"`
	Threshold *machine.Threshold `json:"threshold"` // in force; nil if nobody set one
}

// Learned records what a human's decision taught, or a round that no human has decided.
type Learned struct {
	Comparisons []trust.Comparison
	Exemplar    *specialist.Exemplar
	Outcome     *trust.Outcome // for the ledger; nil if there is none, or not yet
	// Held is the outcome of a round that another human is to decide too: it
	// counts only when they agree, or a third has settled it.
	Held *trust.Outcome
	// Second is what two humans made of the round before it was executed; nil if no
	// second one was asked then.
	Second *trust.SecondLook
	// Unruled is what was proposed in a round that the engine decided, or that waits for a
	// human, where the machine learns from such rounds, too; it stands alone. nil otherwise.
	Unruled *trust.Unruled
}

// AwaitsHuman records that a human must decide.
type AwaitsHuman struct {
	Code, Reason string
	Draws        *Draws // of an audit before execution; nil for other reasons
	Timer        bool   // the timer's transition could not be executed: it is not tried again in this round
}

// Reminded records that somebody is to be reminded of a question before it is due.
type Reminded struct {
	Due    specialist.Time
	Before machine.Duration // how long before it the reminder came up
}

// Resumed records that a session that waited or had stopped goes on.
type Resumed struct {
	Actor        *Actor // who takes it up; nil if that is not said
	SpecialistID string // the human of the machine as whom that was done; "" if as none
	Note         string
	RetryFailed  bool
	Cleared      bool          // the guards have forgotten what repeated
	Raised       []guard.Raise // limits that were raised

	Program *Program // of the session from now on; nil if no limit was raised
}

// Ended records that a session completed, stopped or failed.
type Ended struct {
	Status       Status
	Code, Reason string
	Actor        *Actor // who cancelled it; nil if the engine ended it
}

// The names of the kinds.
const (
	KindCreated     = "session_created"
	KindRoundOpened = "round_opened"
	KindAsked       = "asked"
	KindProposed    = "proposed"
	KindAskFailed   = "ask_failed"
	KindDiscarded   = "discarded"
	KindProbed      = "probed"
	KindJudged      = "judged"
	KindGated       = "gated"
	KindRuled       = "ruled"
	KindExecuted    = "executed"
	KindLearned     = "learned"
	KindReviewed    = "reviewed"
	KindRetracted   = "retracted"
	KindMoved       = "moved"
	KindAdopted     = "policy_adopted"
	KindNeedsHuman  = "needs_human"
	KindReminded    = "reminded"
	KindRevealed    = "revealed"
	KindResumed     = "resumed"
	KindEnded       = "ended"
	KindErased      = "erased"
	KindDriver      = "driver_changed"
)

func (*Created) Kind() string       { return KindCreated }
func (*RoundOpened) Kind() string   { return KindRoundOpened }
func (*Asked) Kind() string         { return KindAsked }
func (*Proposed) Kind() string      { return KindProposed }
func (*AskFailed) Kind() string     { return KindAskFailed }
func (*Discarded) Kind() string     { return KindDiscarded }
func (*Probed) Kind() string        { return KindProbed }
func (*Judged) Kind() string        { return KindJudged }
func (*Gated) Kind() string         { return KindGated }
func (*Ruled) Kind() string         { return KindRuled }
func (*Executed) Kind() string      { return KindExecuted }
func (*Learned) Kind() string       { return KindLearned }
func (*Reviewed) Kind() string      { return KindReviewed }
func (*Retracted) Kind() string     { return KindRetracted }
func (*Moved) Kind() string         { return KindMoved }
func (*Adopted) Kind() string       { return KindAdopted }
func (*AwaitsHuman) Kind() string   { return KindNeedsHuman }
func (*Reminded) Kind() string      { return KindReminded }
func (*Revealed) Kind() string      { return KindRevealed }
func (*Resumed) Kind() string       { return KindResumed }
func (*Ended) Kind() string         { return KindEnded }
func (*Erased) Kind() string        { return KindErased }
func (*DriverChanged) Kind() string { return KindDriver }

// Codes that events and results carry beside those of arbiters and guards.
const (
	CodeIllegal       = "illegal_answer" // the answer is not legal in the state
	CodeTimeout       = "timeout"
	CodeCancelled     = "cancelled" // the round was decided without it
	CodeAskError      = "ask_error" // the specialist returned an error
	CodePanic         = "panic"
	CodeLate          = "late" // the round was over
	CodeSuperseded    = "superseded"
	CodeTakenOver     = "taken_over" // another process asks, or has asked, in the place of this one
	CodeLost          = "lost"       // the process that asked is gone
	CodeArbiterFailed = "arbiter_failed"
	CodeUnknownWinner = "unknown_winner" // the arbiter elected what is not in the round
	CodeNoArbiter     = "no_arbiter"
	CodeAudit         = "audit"            // a human decides what the engine would have
	CodeSecondHuman   = "second_human"     // another human is asked before a ruling is executed
	CodeApprovals     = "approvals"        // the transition takes the approval of more humans
	CodeTooFew        = "too_few_deciders" // nobody may rule on anything
	CodeStepLimit     = "step_limit"
	CodeTimeLimit     = "time_limit"
	CodeDeadEnd       = "dead_end"
	CodeNoProposals   = "no_proposals"
	CodeNoQuorum      = "no_quorum"     // too few have answered to decide without a human
	CodeNoPayload     = "no_payload"    // nobody who proposed the winner gave what its parameters ask for
	CodeSetFailed     = "set_failed"    // the transition could not write the data that it is to write
	CodeNotEligible   = "not_eligible"  // the approvals of the transition exclude who ruled
	CodeClosed        = "closed"        // the transition's condition does not hold in this round
	CodeInvalidInput  = "invalid_input" // the metaJson of a session is not what its machine wants
	CodeTimer         = "timer"         // nothing happens before the state is due
	CodeDueFailed     = "due_failed"    // nobody knows when the wait is over: its due could not be worked out
	CodeGoal          = "goal"
	codeFinal         = "final"
	// BadRaise is the code of an [Error] about a limit that cannot be raised as asked.
	BadRaise = "bad_raise"
)
