package api

import (
	"encoding/json"
	"math"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What programs say to a server, and what it answers. The tag doc is what the OpenAPI
// document says of a member. A member that a request does not know is refused; answers may
// gain members in later versions.

// A Start begins a session: of the machine of a name, or of a definition that comes along.
type Start struct {
	MachineName   string          `json:"machineName,omitempty" doc:"the machine, in its newest definition"`
	MachineDigest string          `json:"machineDigest,omitempty" doc:"the version of the machine; without it the newest. Of a definition that comes along: refuse unless it has this digest"`
	Machine       json.RawMessage `json:"machine,omitempty" doc:"a definition in place of a name"`
	MetaJSON      json.RawMessage `json:"metaJson,omitempty" doc:"what the session is started with"`
	Seed          string          `json:"seed,omitempty" doc:"a number from 0 to 18446744073709551615 that decides random choices; without it other ones for each session"`
	Mode          string          `json:"mode,omitempty" enum:"all,eager,sequential" doc:"how proposers are asked; without it as the definition says"`
	Defaults      bool            `json:"defaults,omitempty" doc:"let firstAvailable propose and firstProposal arbitrate where the machine has nobody"`
	AllowMissing  []string        `json:"allowMissing,omitempty" doc:"specialists without whom the session may start"`
	Drive         *bool           `json:"drive,omitempty" doc:"carry the session on by itself, as without it; false leaves it to step and run"`
	Human         string          `json:"human,omitempty" doc:"the human as whom the session is started, whom approvals may exclude"`
}

// Cost says what an answer that is handed in has cost.
type Cost struct {
	CostUSD         *exact.Money `json:"costUSD,omitempty" doc:"dollars"`
	LatencyMsec     *int64       `json:"latencyMsec,omitempty" minimum:"0"`
	NumInputTokens  *int64       `json:"numInputTokens,omitempty" minimum:"0"`
	NumOutputTokens *int64       `json:"numOutputTokens,omitempty" minimum:"0"`
}

// CostOf returns a cost of which the engine says what of it was given.
func CostOf(u specialist.Usage) (c Cost) {
	if u.Given&specialist.CostGiven != 0 {
		c.CostUSD = &u.CostUSD
	}
	for _, v := range []struct {
		to   **int64
		from *int64
		bit  specialist.Given
	}{{&c.LatencyMsec, &u.LatencyMsec, specialist.LatencyGiven}, {&c.NumInputTokens, &u.NumInputTokens, specialist.InputGiven}, {&c.NumOutputTokens, &u.NumOutputTokens, specialist.OutputGiven}} {
		if u.Given&v.bit != 0 {
			*v.to = v.from
		}
	}
	return c
}

// Usage returns the cost as the engine takes it.
func (c Cost) Usage() (u specialist.Usage) {
	if c.CostUSD != nil {
		u = u.WithCost(*c.CostUSD)
	}
	for _, v := range []struct {
		given *int64
		to    *int64
		bit   specialist.Given
	}{{c.LatencyMsec, &u.LatencyMsec, specialist.LatencyGiven}, {c.NumInputTokens, &u.NumInputTokens, specialist.InputGiven}, {c.NumOutputTokens, &u.NumOutputTokens, specialist.OutputGiven}} {
		if v.given != nil {
			*v.to, u.Given = *v.given, u.Given|v.bit
		}
	}
	return u
}

// A Proposal is handed in for a specialist. Without a transition the specialist is asked.
type Proposal struct {
	SpecialistID   string                `json:"specialistId,omitempty" doc:"who proposes; without it the only one as whom the caller may"`
	RoundID        string                `json:"roundId,omitempty" doc:"the round it is for; without it the present one. Required of a human"`
	QuestionDigest string                `json:"questionDigest,omitempty" doc:"of the question it answers. Required of a human"`
	TransitionName string                `json:"transitionName,omitempty"`
	ToState        string                `json:"toState,omitempty"`
	Reasoning      string                `json:"reasoning,omitempty"`
	MetaJSON       json.RawMessage       `json:"metaJson,omitempty" doc:"the payload"`
	ToolCalls      []specialist.ToolCall `json:"toolCalls,omitempty"`
	Model          string                `json:"model,omitempty" doc:"the model that has answered"`
	Cost
}

// A LateAnswer is that of a service that has said that it would answer later.
type LateAnswer struct {
	_              struct{}              `additionalProperties:"true"`
	TransitionName string                `json:"transitionName" minLength:"1"`
	ToState        string                `json:"toState,omitempty"`
	Reasoning      string                `json:"reasoning,omitempty"`
	MetaJSON       json.RawMessage       `json:"metaJson,omitempty" doc:"the payload"`
	ToolCalls      []specialist.ToolCall `json:"toolCalls,omitempty"`
	Model          string                `json:"model,omitempty" doc:"the model that has answered"`
	Cost
}

// An Answered says what a late answer has become.
type Answered struct {
	ProposalID string `json:"proposalId"`
	RoundID    string `json:"roundId"`
	Settled    bool   `json:"settled" doc:"nothing of the session goes on by itself"`
	Repeated   bool   `json:"repeated,omitempty" doc:"the same answer had come before"`
}

// A Manner says how a human came to a word, for the record.
type Manner struct {
	Looked float64 `json:"looked,omitempty" minimum:"0" doc:"for how many milliseconds the question was visible; it is rounded, and a day at most"`
	Note   string  `json:"note,omitempty" doc:"of which nobody learns"`
	Bulk   bool    `json:"bulk,omitempty" doc:"others are given with it at once: it is not blind"`
}

// Recorded returns it as the log has it.
func (m Manner) Recorded() session.Manner {
	return session.Manner{Looked: int64(math.Round(min(m.Looked, session.MaxLooked))), Note: m.Note, Bulk: m.Bulk}
}

// MannerOf returns how a word was given, as it is sent.
func MannerOf(m session.Manner) Manner { return Manner{float64(m.Looked), m.Note, m.Bulk} }

// A Ruling is a human's word on an open round, on the question that was seen.
type Ruling struct {
	TransitionName string          `json:"transitionName" minLength:"1"`
	RoundID        string          `json:"roundId,omitempty" doc:"required"`
	QuestionDigest string          `json:"questionDigest,omitempty" doc:"the digest of the question as it was seen; required"`
	SpecialistID   string          `json:"specialistId,omitempty" doc:"the human who rules; without it the only one as whom the caller may"`
	ToState        string          `json:"toState,omitempty"`
	Reasoning      string          `json:"reasoning,omitempty"`
	MetaJSON       json.RawMessage `json:"metaJson,omitempty" doc:"the payload"`
	Manner
	Cost
}

// An Arbitrating has the arbiter decide the present round.
type Arbitrating struct {
	RoundID string `json:"roundId,omitempty" doc:"the round; without it the present one"`
}

// A Resuming takes a session up again.
type Resuming struct {
	Note         string `json:"note,omitempty"`
	SpecialistID string `json:"specialistId,omitempty" doc:"the human as whom it is taken up, for the record"`
	RetryFailed  bool   `json:"retryFailed,omitempty" doc:"ask those again who failed in this round, whatever it waits for"`
	KeepFailed   bool   `json:"keepFailed,omitempty" doc:"ask nobody again who failed in this round"`
	Clear        bool   `json:"clear,omitempty" doc:"let the guards forget what has repeated"`
}

// A Raising lifts limits of the guards for one session.
type Raising struct {
	Raise        []Raise `json:"raise" minItems:"1"`
	Note         string  `json:"note" minLength:"1" doc:"why"`
	SpecialistID string  `json:"specialistId,omitempty" doc:"the human who raises them; without it the only one as whom the caller may"`
}

// A Raise is one limit, and to what it is lifted.
type Raise struct {
	Limit string      `json:"limit" doc:"where a guards section has it, such as budget.hard_limit_usd"`
	To    json.Number `json:"to" doc:"dollars, or a whole number"`
}

// A Note says why something is done, for the record.
type Note struct {
	Note string `json:"note" minLength:"1" doc:"why"`
}

// A Forking makes a session that goes on from where another one stood.
type Forking struct {
	Sequence int64 `json:"sequence,omitempty" minimum:"0" doc:"the last event that comes along, the last of its commit; without it the newest"`
	Drive    bool  `json:"drive,omitempty" doc:"carry the fork on by itself; without it that is left to step and run"`
}

// A Moving moves a session to another definition.
type Moving struct {
	Definition    json.RawMessage   `json:"definition,omitempty"`
	MachineDigest string            `json:"machineDigest,omitempty" doc:"of a version that was published, in place of the definition" maxLength:"100"`
	States        map[string]string `json:"states,omitempty" doc:"names of states that the definition does not have any more, each with the one in its place"`
	Note          string            `json:"note" minLength:"1" doc:"why"`
	DryRun        bool              `json:"dryRun,omitempty" doc:"tell what would come of it, and change nothing"`
}

// A Retracting is a human's word that an executed ruling of their own was a mistake.
type Retracting struct {
	RoundID      string `json:"roundId" minLength:"1" doc:"the round that the ruling has closed"`
	SpecialistID string `json:"specialistId,omitempty" doc:"the human; without it the only one as whom the caller may"`
	Note         string `json:"note" minLength:"1" doc:"why"`
}

// A Reviewing says what should have been decided in a closed round.
type Reviewing struct {
	TransitionName string `json:"transitionName" minLength:"1" doc:"what should have been decided"`
	Reasoning      string `json:"reasoning,omitempty"`
	SpecialistID   string `json:"specialistId,omitempty" doc:"the human; without it the only one as whom the caller may"`
	Seen           bool   `json:"seen,omitempty" doc:"they have seen what was proposed or decided, if only elsewhere"`
	Manner
}

// A Reviewed is the answer to a review.
type Reviewed struct {
	Review         session.ReviewKind `json:"review"`
	Round          int32              `json:"round"`
	SpecialistID   string             `json:"specialistId"`
	TransitionName string             `json:"transitionName"`
	Reasoning      string             `json:"reasoning,omitempty"`
	Agrees         bool               `json:"agrees" doc:"with what was decided: by the engine, or by the human before"`
}

// ReviewedOf returns the answer to a review as it is shown.
func ReviewedOf(v *session.Reviewed) Reviewed {
	return Reviewed{v.Review, v.Round, v.SpecialistID, v.TransitionName, v.Reasoning, v.Agrees()}
}

// Deciders are the humans who may give orders in a state, and review what was decided there.
type Deciders struct {
	Humans   []string `json:"humans" doc:"those who are switched on"`
	Declared bool     `json:"declared" doc:"the machine declares humans, be they switched off"`
}

// A Viewer says as whom something is looked at.
type Viewer struct {
	SpecialistID string `json:"specialistId,omitempty" doc:"the human who looks; without it the only one as whom the caller may"`
}

// An Order is a human's word on how far a state does without humans.
type Order struct {
	Champion     string `json:"champion,omitempty" doc:"whom to promote; required for that, and of no use else"`
	SpecialistID string `json:"specialistId,omitempty" doc:"the human who gives the order; without it the only one as whom the caller may"`
	Reasoning    string `json:"reasoning,omitempty" doc:"why"`
}

// A Claiming says who is at a question, or who is to be.
type Claiming struct {
	SpecialistID string `json:"specialistId,omitempty" doc:"the human as whom; without it the only one as whom the caller may"`
	For          string `json:"for,omitempty" doc:"another human who may rule on the question, whose it is from now on"`
	Note         string `json:"note,omitempty" maxLength:"1000" doc:"for that human"`
}

// A Claim says who is at a question, or who is to be. It is advice to others, and keeps nobody
// from ruling.
type Claim struct {
	Subject      string          `json:"subject" doc:"who has put it, and may take it back"`
	SpecialistID string          `json:"specialistId,omitempty" doc:"the human whose it is"`
	At           specialist.Time `json:"at"`
	ExpiresAt    specialist.Time `json:"expiresAt"`
	For          string          `json:"for,omitempty" doc:"that human, if somebody else has assigned it to them"`
	By           string          `json:"by,omitempty" doc:"who has, then"`
	Note         string          `json:"note,omitempty"`
}

// ClaimOf returns a claim as it is shown.
func ClaimOf(c control.Claim) *Claim {
	shown := &Claim{Subject: c.Subject, SpecialistID: c.SpecialistID, At: c.At, ExpiresAt: c.ExpiresAt, Note: c.Note}
	if c.Assigned {
		shown.For, shown.By = c.SpecialistID, c.Subject
	}
	return shown
}

// An Item is a question of the inbox, with who is at it.
type Item struct {
	runner.Question
	Claim *Claim `json:"claim,omitempty"`
}

// A MachineFile is a machine file as it is written.
type MachineFile struct {
	Name string `json:"name" maxLength:"255" doc:"by its extension the text is JSON or YAML; without one a text that begins with { is JSON"`
	Text string `json:"text"`
}

// A Sketch is a machine file to be drawn.
type Sketch struct {
	MachineFile
	Format string `json:"format,omitempty" enum:"layout,svg,mermaid,dot,text" doc:"layout, the places of everything, without it"`
}

// A Checking has steps of an agent judged by guards, one after the other.
type Checking struct {
	Config  json.RawMessage   `json:"config,omitempty" doc:"guards, as a guards file has them"`
	Guard   string            `json:"guard,omitempty" maxLength:"100" doc:"in place of them the name of guards that the server knows"`
	Profile string            `json:"profile,omitempty" enum:"compat,strict" doc:"of guards that do not say; compat without it"`
	Steps   []json.RawMessage `json:"steps" minItems:"1" maxItems:"1000" doc:"as dialai check reads them"`
}

// A Checked is the answer: a verdict for each step, as dialai check prints it.
type Checked struct {
	Verdicts []json.RawMessage `json:"verdicts"`
}

// A Settled is the answer to what changes a session.
type Settled struct {
	Session Session `json:"session"`
	Settled bool    `json:"settled" doc:"nothing of it goes on by itself: it has ended, or waits for a human, a timer or a late answer"`
}

// A Ruled is the answer to a ruling.
type Ruled struct {
	Arbitration runner.Arbitration `json:"arbitration"`
	Code        string             `json:"code,omitempty" doc:"why nothing was executed yet: approvals, second_human"`
	Repeated    bool               `json:"repeated,omitempty" doc:"the same ruling had been given before"`
	Settled
}

// A Proposed is the answer to a proposal.
type Proposed struct {
	Proposal json.RawMessage `json:"proposal"`
	Settled
}

// A Stepped is the answer to a step.
type Stepped struct {
	Tick runner.TickView `json:"tick"`
	Settled
}

// A Ran is the answer to a run.
type Ran struct {
	Result Result `json:"result"`
	Settled
}

// A List is a page of a list. It may be short, even empty, and still have one behind it.
type List[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor,omitempty" doc:"of the page behind it; absent on the last"`
}

// An Inbox is a page of the questions that wait for a human.
type Inbox struct {
	// Quarantined stand first: each may have a question that nobody gets to see.
	Quarantined []Quarantined `json:"quarantined,omitempty" doc:"on the first page the sessions that no process carries on any more, 20 at most; resume one, or rule in it"`
	List[Item]
}

// A Quarantined is a session that no process carries on any more, for it fails again and again.
type Quarantined struct {
	SessionID   string `json:"sessionId"`
	MachineName string `json:"machineName"`
	Reason      string `json:"reason,omitempty" doc:"for whoever may see payloads"`
	Failures    int    `json:"failures,omitempty" doc:"steps that failed in a row"`
	Crashes     int    `json:"crashes,omitempty" doc:"processes in a row that ended while they carried it on"`
}

// A Caller is who calls, and may do what.
type Caller struct {
	Subject     string   `json:"subject"`
	Name        string   `json:"name,omitempty" doc:"what people call them: the name of a key, or what an issuer says"`
	Method      string   `json:"method" doc:"how that is known: key, local or none"`
	Tenant      string   `json:"tenant"`
	Permissions []string `json:"permissions"`
	Humans      []string `json:"humans" doc:"as whom the caller may rule; * is every human that a machine declares"`
}

// An About is what a server says of itself.
type About struct {
	Version string `json:"version"`
	Drives  bool   `json:"drives" doc:"the server carries sessions on by itself, unless another process does"`
	Caller  Caller `json:"caller"`
	Limits  Limits `json:"limits"`
}

// Limits are those of requests, in bytes and milliseconds.
type Limits struct {
	BodyBytes int64 `json:"bodyBytes"`
	WaitMsec  int64 `json:"waitMsec"`
	PageItems int   `json:"pageItems"`
}

// What the engine says is answered as it is.
type (
	// A Summary is a session in a list.
	Summary = session.Summary
	// A Question is what waits for a human.
	Question = runner.Question
	// A Choice is a transition that a question offers.
	Choice = session.InboxTransition
	// A ReviewItem is a closed round that waits for a human's review.
	ReviewItem = runner.ReviewItem
	// A Consensus is what the arbiter would decide.
	Consensus = runner.Consensus
	// A Registration is a specialist as a definition has one, for all sessions of a machine.
	Registration = machine.Specialist
	// A Trusted is what somebody's word counts for in a state, and where that comes from.
	Trusted = report.Trusted
	// A TrustSeries is what somebody's word in a state has counted for, over human decisions.
	TrustSeries = report.TrustSeries
	// A HistoryQuery says of whom and along what such series are wanted.
	HistoryQuery = report.HistoryQuery
	// Metrics say how far a machine does without humans.
	Metrics = report.Metrics
	// Risks are what a machine promises, beside what came of it.
	Risks = report.Risks
	// A Calibration says how the probabilities that bayes states compare with what humans choose.
	Calibration = report.Calibration
	// Spent is what the sessions of a machine have spent, all of it or a part.
	Spent = report.Spent
	// A SpendQuery says what is wanted of what was spent.
	SpendQuery = report.SpendQuery
	// An Evaluation compares what a specialist proposed with what humans decided.
	Evaluation = report.Evaluation
	// A StateCollapse says how far a state does without humans, and what is missing for more.
	StateCollapse = runner.StateCollapse
	// An Explanation says why a round was decided as it was.
	Explanation = explain.Explanation
	// A LogRecord is an event of a session as guards saw it.
	LogRecord = guard.LogRecord
)

// A Machine is a definition that sessions can be started of.
type Machine struct {
	MachineName   string          `json:"machineName"`
	Version       int64           `json:"version,omitempty" doc:"from 1, of those that were published; absent where sessions alone have it"`
	MachineDigest string          `json:"machineDigest"`
	PublishedBy   string          `json:"publishedBy,omitempty" doc:"the subject"`
	PublishedAt   specialist.Time `json:"publishedAt,omitzero"`
	LiveSessions  *int            `json:"liveSessions,omitempty" doc:"sessions of the name, in any version, that run or need a human; 200 means so many or more"`
	Definition    json.RawMessage `json:"definition,omitempty"`
	Problems      []Problem       `json:"problems,omitzero"`
}

// MachineOf returns a published version as it is shown, without its definition.
func MachineOf(m control.Machine) Machine {
	return Machine{MachineName: m.Name, Version: m.Version, MachineDigest: m.Digest, PublishedBy: m.By, PublishedAt: m.At}
}
