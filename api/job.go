package api

import (
	"encoding/json"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// A NewJob asks for work that takes longer than a request may. What belongs to another kind of
// job than Kind is refused.
type NewJob struct {
	Kind string `json:"kind" enum:"backtest,verify,rebuild,simulate" doc:"backtest and simulate: as these commands; verify and rebuild: as dialai store"`
	BacktestJob
	VerifyJob
	RebuildJob
	SimulateJob
}

// A BacktestJob says what is decided again, and how.
type BacktestJob struct {
	MachineName  string          `json:"machineName,omitempty" maxLength:"300" doc:"of a back-test: the machine; without it all of them"`
	Arbiter      json.RawMessage `json:"arbiter,omitempty" doc:"of a back-test: who decides: the name of a built-in strategy, an expression that begins with =, or an arbiter as a definition has one"`
	Threshold    *float64        `json:"threshold,omitempty" doc:"of a back-test: the threshold everywhere, in place of every threshold and risk"`
	Risk         *PromisedRisk   `json:"risk,omitempty" doc:"of a back-test: the promise everywhere, in place of every threshold and risk"`
	Roster       []string        `json:"roster,omitzero" maxItems:"1000" doc:"of a back-test: the ids of those who alone propose, besides humans"`
	Drop         []string        `json:"drop,omitempty" maxItems:"1000" doc:"of a back-test: the ids of proposers who are left out"`
	Guards       json.RawMessage `json:"guards,omitempty" doc:"of a back-test: guards, or a definition with guards, by which the steps are judged again"`
	Since        string          `json:"since,omitempty" maxLength:"100" doc:"of a back-test: only rounds since a date, or since how long before the newest record, such as 30d"`
	Cold         bool            `json:"cold,omitempty" doc:"of a back-test: begin with nothing learned"`
	HumanMinutes float64         `json:"humanMinutes,omitempty" minimum:"0" maximum:"1000000" doc:"of a back-test: how long a human decision takes; 2 without it"`
	MaxFlips     *int            `json:"maxFlips,omitempty" minimum:"0" doc:"of a back-test: the exit code is 1 if more rounds are decided otherwise"`
	MaxError     *float64        `json:"maxError,omitempty" minimum:"0" maximum:"1" doc:"of a back-test: the exit code is 1 if a larger share of automatic decisions is contradicted by humans"`
}

// A PromisedRisk is a promise: that at most so large a share of automatic decisions is wrong.
type PromisedRisk struct {
	MaxError   float64  `json:"maxError" doc:"above 0 and below 1"`
	Confidence *float64 `json:"confidence,omitempty" doc:"above 0 and below 1; 0.9 without it"`
}

// A VerifyJob says what the store is held against.
type VerifyJob struct {
	Head string `json:"head,omitempty" maxLength:"300" doc:"of verify: what dialai store head printed earlier"`
}

// A RebuildJob says how the store is written anew.
type RebuildJob struct {
	AcceptCut bool `json:"acceptCut,omitempty" doc:"of rebuild: take logs as they are even if their end was cut off"`
	Repack    bool `json:"repack,omitempty" doc:"of rebuild: pack the events that stand in the logs as JSON"`
}

// A SimulateJob says what is played.
type SimulateJob struct {
	Machine  json.RawMessage `json:"machine,omitempty" doc:"of simulate: a definition; without it one is made of the panel"`
	Spec     json.RawMessage `json:"spec,omitempty" doc:"of simulate: the panel; without it one is made of the definition"`
	Rounds   int             `json:"rounds,omitempty" minimum:"0" maximum:"1000000" doc:"of simulate: rounds of a run; 1000 without it. All runs together have at most a million"`
	Runs     int             `json:"runs,omitempty" minimum:"0" maximum:"10000" doc:"of simulate: runs, each with other draws; 1 without it"`
	Seed     string          `json:"seed,omitempty" maxLength:"20" doc:"of simulate: a number from 0 to 18446744073709551615 that all draws come from; 1 without it"`
	MetaJSON json.RawMessage `json:"metaJson,omitempty" doc:"of simulate: what every session is about"`
}

// A Job is work that a server does, and how far it is.
type Job struct {
	JobID       string            `json:"jobId"`
	Kind        string            `json:"kind"`
	Status      control.JobStatus `json:"status" enum:"queued,running,done,failed,cancelled"`
	MachineName string            `json:"machineName,omitempty" doc:"the machine that it is about, if it is about one"`
	Progress    *JobProgress      `json:"progress,omitempty" doc:"absent while nothing is known of it"`
	CreatedBy   string            `json:"createdBy" doc:"the subject"`
	CreatedAt   specialist.Time   `json:"createdAt"`
	StartedAt   *specialist.Time  `json:"startedAt,omitempty"`
	EndedAt     *specialist.Time  `json:"endedAt,omitempty"`
	ExpiresAt   *specialist.Time  `json:"expiresAt,omitempty" doc:"when it is forgotten, with its result"`
	ExitCode    *int              `json:"exitCode,omitempty" doc:"of one that is done or has failed: with which the command ends"`
	Code        string            `json:"code,omitempty" doc:"why that is not 0; lost: the process that worked at it is gone"`
	Detail      string            `json:"detail,omitempty"`
	Hint        string            `json:"hint,omitempty"`
	ResultBytes int64             `json:"resultBytes,omitempty" doc:"how large the result is"`
	Request     json.RawMessage   `json:"request,omitempty" doc:"what was asked for; not in lists"`
}

// JobProgress says that so much of so much is done: records of the logs that were read, or rounds
// that were played.
type JobProgress struct {
	Done int64 `json:"done"`
	Of   int64 `json:"of"`
}

// JobOf returns a job as it is shown.
func JobOf(j control.Job) Job {
	out := Job{
		JobID: j.ID, Kind: j.Kind, Status: j.Status, MachineName: j.Machine, CreatedBy: j.CreatedBy, CreatedAt: j.CreatedAt,
		StartedAt: given(j.StartedAt), EndedAt: given(j.EndedAt), Code: j.Outcome.Code, Detail: j.Outcome.Detail, Hint: j.Outcome.Hint, ResultBytes: j.ResultSize, Request: j.Request,
	}
	if j.Of > 0 {
		out.Progress = &JobProgress{j.Done, j.Of}
	}
	if j.EndedAt != 0 {
		out.ExpiresAt = given(j.EndedAt + control.JobLifetime)
	}
	if j.Status == control.JobDone || j.Status == control.JobFailed {
		out.ExitCode = &j.Outcome.ExitCode
	}
	return out
}

// An Adopting is a human's word that the live test of what a policy promises begins with what a
// back-test of it has found.
type Adopting struct {
	JobID        string `json:"jobId" minLength:"1" maxLength:"100" doc:"of the back-test"`
	Reasoning    string `json:"reasoning,omitempty" doc:"why"`
	SpecialistID string `json:"specialistId,omitempty" doc:"the human who adopts; without it the only one as whom the caller may"`
}

// An AdoptedPromise is one promise whose test begins with what a back-test found.
type AdoptedPromise struct {
	Kind         string        `json:"kind"` // adopted
	Machine      string        `json:"machine"`
	State        string        `json:"state,omitempty"`
	Promise      trust.Promise `json:"promise"`
	PolicyDigest string        `json:"policyDigest"`
	Pairs        int           `json:"pairs"`
	Tried        int64         `json:"tried"`
	SpecialistID string        `json:"specialistId"`
}

// An Adopted is the answer to an adoption: a line for each promise, as the command prints it.
type Adopted struct {
	Adopted []AdoptedPromise `json:"adopted"`
}
