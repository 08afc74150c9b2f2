package truth

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// From three scores to a verdict. The tests stand in one table, in the order in which
// they are asked: uncertainty above tau_u refuses (ask again), sensitivity below tau_s
// refuses, adherence below tau_a escalates (ask a human). The first that fails is the
// verdict, and a score that equals its threshold passes.
//
// Nothing passes by accident: a score or a threshold that is no number from 0 to 1
// escalates, because NaN compares false with everything; so does every error and panic
// on the way (run.go). Crossing a hard limit of the budget is no failure of the gate
// and has a verdict of its own.

// A Kind is the verdict of a truth gate in one word.
type Kind string

// The kinds: use the answer, ask again, ask a human, stop.
const (
	Pass         Kind = "pass"
	Refuse       Kind = "refuse"
	Escalate     Kind = "escalate"
	BudgetExceed Kind = "budget_exceed"
)

// The codes a truth gate gives as reasons.
const (
	CodeHighUncertainty = "high_uncertainty"
	CodeLowSensitivity  = "low_sensitivity"
	CodeLowAdherence    = "low_adherence"
	CodeInternalError   = "internal_error"
)

// The stages of a truth gate, in their order, as Meta.Stage names them.
const (
	StageConfig      = "config"
	StageRecord      = "record"
	StageBudget      = "budget"
	StageUncertainty = "uncertainty"
	StageSensitivity = "sensitivity"
	StageAdherence   = "adherence"
	StagePass        = "pass"
	StageEvent       = "event"
)

// Scores are what the three probes measured, from 0 to 1.
type Scores struct {
	Uncertainty, Sensitivity, Adherence float64
}

// A Decision is what follows from scores alone.
type Decision struct {
	Kind  Kind
	Code  string // why; "" if the answer passes
	Stage string // that decided
}

// A test is one question of the decision, asked in order.
type test struct {
	tau   string // its threshold, in thresholds
	fails func(score, tau float64) bool
	then  Decision
}

func above(score, tau float64) bool { return score > tau }
func below(score, tau float64) bool { return score < tau }

var tests = [3]test{
	{"tau_u", above, Decision{Refuse, CodeHighUncertainty, StageUncertainty}},
	{"tau_s", below, Decision{Refuse, CodeLowSensitivity, StageSensitivity}},
	{"tau_a", below, Decision{Escalate, CodeLowAdherence, StageAdherence}},
}

// Decide decides from scores alone; the first test that fails is named, and a score
// that equals its threshold passes. A score or threshold that is no number from 0
// to 1 escalates as internal_error: NaN compares false with everything and would
// pass.
func Decide(s Scores, t Thresholds) Decision {
	if t.Check() != nil {
		return Decision{Escalate, CodeInternalError, StageConfig}
	}
	scores, thresholds := [...]float64{s.Uncertainty, s.Sensitivity, s.Adherence}, t.list()
	for i, score := range scores {
		if !isShare(score) {
			return Decision{Escalate, CodeInternalError, tests[i].then.Stage}
		}
	}
	for i, score := range scores {
		if tests[i].fails(score, thresholds[i]) {
			return tests[i].then
		}
	}
	return Decision{Kind: Pass, Stage: StagePass}
}

// A Result is the verdict of a truth gate.
type Result struct {
	Kind    Kind     `json:"kind"`
	Reasons []string `json:"reasons"` // codes; never nil, empty for pass and budget_exceed
	Meta    Meta     `json:"meta"`
	// Err is what went wrong if the reason is internal_error, else nil. It may
	// quote the answer, so it is not part of the JSON.
	Err error `json:"-"`
}

// Meta says how a verdict came about. Nil and zero members do not apply.
type Meta struct {
	CandidateID   string       `json:"candidate_id,omitempty"`
	Stage         string       `json:"stage"`             // that decided, or where it failed
	Tripped       string       `json:"tripped,omitempty"` // the code of the hard limit crossed
	SoftWarned    bool         `json:"soft_warned,omitempty"`
	ProbesRun     []string     `json:"probes_run,omitempty"`
	Uncertainty   *float64     `json:"uncertainty,omitempty"` // only if it is a number from 0 to 1, as the next two
	Sensitivity   *float64     `json:"sensitivity,omitempty"`
	Adherence     *float64     `json:"adherence,omitempty"`
	Limit         *float64     `json:"limit,omitempty"`    // the threshold that decided
	Observed      *float64     `json:"observed,omitempty"` // the score that failed it
	StepsTotal    int          `json:"steps_total,omitempty"`
	StepsVerified int          `json:"steps_verified,omitempty"`
	Ledger        *TokenTotals `json:"ledger,omitempty"` // afterwards
}

// An Event is one thing that happened in a gate.
type Event struct {
	Type        string       `json:"type"` // record, soft_warn, probe, verdict or error
	CandidateID string       `json:"candidate_id,omitempty"`
	Stage       string       `json:"stage,omitempty"`
	Value       *float64     `json:"value,omitempty"` // of a probe, if it is a number from 0 to 1
	Tokens      *TokenUsage  `json:"tokens,omitempty"`
	Ledger      *TokenTotals `json:"ledger,omitempty"`
	Verdict     Kind         `json:"verdict,omitempty"`
	Reason      string       `json:"reason,omitempty"`
}

// Failure returns the verdict of a gate that failed in a stage: escalate,
// internal_error.
func Failure(stage string, err error) Result {
	return Result{Escalate, []string{CodeInternalError}, Meta{Stage: stage}, err}
}

var classes = map[Kind]verdict.Status{Pass: verdict.OK, Refuse: verdict.Retry, Escalate: verdict.Escalate, BudgetExceed: verdict.Abort}

var messages = map[string]string{
	CodeHighUncertainty: "the answer is too uncertain",
	CodeLowSensitivity:  "the answer would be the same if it were false",
	CodeLowAdherence:    "the answer changes although nothing that matters does",
	CodeInternalError:   "the truth gate failed in stage ",
	spend.CodeTokens:    "the tokens spent are more than the budget allows",
	spend.CodeCalls:     "the recorded calls are more than the budget allows",
	spend.CodeSoft:      "the tokens spent are more than the soft limit",
}

// Verdict returns r as a verdict: pass, refuse, escalate and budget_exceed are ok,
// retry, escalate and abort. Crossing the soft limit, or a hard one that is only
// observed, adds a warning.
func (r Result) Verdict() verdict.Verdict {
	var reasons []verdict.Reason
	for _, code := range r.Reasons {
		reason := verdict.Reason{Code: code, Guard: "truth", Class: classes[r.Kind], Message: messages[code]}
		if code == CodeInternalError {
			reason.Message += r.Meta.Stage
		}
		if errors.Is(r.Err, ErrNoLogProbs) {
			reason.Message += ": " + ErrNoLogProbs.Error()
		}
		if r.Meta.Limit != nil && r.Meta.Observed != nil {
			reason.Limit, reason.Seen = fmt.Sprint(*r.Meta.Limit), fmt.Sprint(*r.Meta.Observed)
		}
		reasons = append(reasons, reason)
	}
	add := func(code string, class verdict.Status) {
		reasons = append(reasons, verdict.Reason{Code: code, Guard: "budget", Class: class, Message: messages[code]})
	}
	switch {
	case r.Kind == BudgetExceed:
		add(r.Meta.Tripped, verdict.Abort)
	case r.Meta.Tripped != "":
		add(r.Meta.Tripped, verdict.Warn)
	}
	var notices []string
	if r.Meta.SoftWarned {
		add(spend.CodeSoft, verdict.Warn)
		notices = append(notices, "The soft limit of the token budget has been crossed: be brief.")
	}
	v := verdict.Of(reasons)
	v.Notices = notices
	return v
}

// Gate judges one candidate. It records the candidate's tokens whatever the
// verdict, makes no call if the ledger is over a hard limit, runs the probes one
// after another, and looks at the ledger after each. Whatever fails on the way, a
// panic included, escalates as internal_error. Gate starts no goroutine, and waits
// as long as the completer does; ctx bounds that.
func Gate(ctx context.Context, c Candidate, cfg Config) Result {
	r := &run{cfg: cfg, candidate: c, stage: StageConfig}
	r.meta.CandidateID = c.ID
	var d Decision
	err := protect(func() (err error) { d, err = r.judge(ctx); return err })
	if errors.Is(err, ErrOverBudget) {
		d, err = Decision{Kind: BudgetExceed, Stage: StageBudget}, protect(func() error { r.tripped(); return nil })
	}
	if unread := protect(r.readLedger); err == nil {
		err = unread
	}
	return r.announce(r.result(d, err))
}
