package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// The event log of guards: one JSON object a line, written by gates and by the engine,
// read by replay and analysis. A record says what was spent, measured or judged; a
// check record also holds its step, in full, or with digests in the place of texts, or
// not at all. A digest stands for its text in comparisons: equal texts have equal
// digests.
//
// Logs come from other programs and other versions, so unknown members are ignored; but
// a line that is no object of a known type, or whose numbers cannot be, is refused,
// since everything that is counted from it would be wrong.

// A LogRecord is one line of an event log of guards: what was spent, what was
// measured, what was judged and how. Members that do not apply are left out.
type LogRecord struct {
	V           int             `json:"v,omitempty"`  // 1
	TS          json.RawMessage `json:"ts,omitempty"` // see Time
	Seq         int64           `json:"seq,omitempty"`
	Session     string          `json:"session,omitempty"`
	TaskID      string          `json:"task_id,omitempty"`
	Round       int64           `json:"round,omitempty"`
	CandidateID string          `json:"candidate_id,omitempty"`
	Type        LogType         `json:"type"`
	Stage       string          `json:"stage,omitempty"` // of a probe or an error
	Value       *float64        `json:"value,omitempty"` // of a probe, from 0 to 1
	Tokens      *LogTokens      `json:"tokens,omitempty"`
	USD         *exact.Money    `json:"usd,omitempty"`
	Ledger      *LogLedger      `json:"ledger,omitempty"` // afterwards
	Verdict     string          `json:"verdict,omitempty"`
	Reason      string          `json:"reason,omitempty"` // the code of the first
	Message     string          `json:"message,omitempty"`
	Payload     LogPayload      `json:"payload,omitempty"` // of a check: what Input holds
	Input       *LogInput       `json:"input,omitempty"`   // of a check
	Meta        *LogMeta        `json:"meta,omitempty"`
}

// A LogType says what a [LogRecord] is about.
type LogType string

// The types. A gate writes the first five, an engine the others too.
const (
	LogSpend    LogType = "record" // a call that was made
	LogSoftWarn LogType = "soft_warn"
	LogProbe    LogType = "probe"
	LogVerdict  LogType = "verdict"
	LogError    LogType = "error"
	LogConfig   LogType = "config" // the guards in force
	LogCheck    LogType = "check"  // a step that was judged
	LogReserve  LogType = "reserve"
	LogSettle   LogType = "settle"
	LogRelease  LogType = "release"
	LogNotice   LogType = "notice"  // what proposers were told
	LogCleared  LogType = "cleared" // a human let a stopped task go on
	LogRaised   LogType = "raised"  // a human raised limits of the task
)

var logTypes = []LogType{
	LogSpend, LogSoftWarn, LogProbe, LogVerdict, LogError, LogConfig, LogCheck, LogReserve, LogSettle, LogRelease, LogNotice, LogCleared, LogRaised,
}

// LogTokens are the tokens of one record, from 0.
type LogTokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// Total returns both together; nil is none.
func (t *LogTokens) Total() int64 {
	if t == nil {
		return 0
	}
	return exact.AddSat(t.Input, t.Output)
}

// A LogLedger is what a task had spent after a record.
type LogLedger struct {
	Tokens   int64       `json:"tokens"`
	Calls    int64       `json:"calls"`
	USD      exact.Money `json:"usd"`
	Reserved int64       `json:"reserved,omitempty"`
}

// A LogPayload says how much of its input a check record holds.
type LogPayload string

// The payloads: all of it, or texts as digests, or only that there was a step.
const (
	PayloadFull   LogPayload = "full"
	PayloadDigest LogPayload = "digest"
	PayloadNone   LogPayload = "none"
)

// A LogInput is the step that a check record is about: the members of a
// [CheckInput], and what an engine knows beside them.
type LogInput struct {
	TaskID       string          `json:"task_id,omitempty"` // of the record, if that has none
	Step         int64           `json:"step,omitempty"`
	FromState    string          `json:"from_state,omitempty"`
	Transition   string          `json:"transition,omitempty"`
	State        string          `json:"state,omitempty"`
	Output       *string         `json:"output,omitempty"`
	OutputDigest string          `json:"output_digest,omitempty"` // SHA-256, in hex, instead of the output
	ToolCalls    []LogCall       `json:"tool_calls,omitempty"`
	Model        string          `json:"model,omitempty"`
	TokensIn     int64           `json:"tokens_in,omitempty"`
	TokensOut    int64           `json:"tokens_out,omitempty"`
	USD          *exact.Money    `json:"usd,omitempty"` // if no price is needed
	Attempt      int64           `json:"attempt,omitempty"`
	Context      json.RawMessage `json:"context,omitempty"`
	MetaJSON     json.RawMessage `json:"meta_json,omitempty"`    // of the transition
	SessionMeta  json.RawMessage `json:"session_meta,omitempty"` // of the session
	Human        bool            `json:"human,omitempty"`
	Canned       bool            `json:"canned,omitempty"`
	// Charged says that what the step spent stands in records of its own.
	Charged bool `json:"charged,omitempty"`
}

// A LogCall is one tool call of a [LogInput].
type LogCall struct {
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args,omitempty"`
	ArgsDigest   string          `json:"args_digest,omitempty"` // SHA-256, in hex, instead of the arguments
	Result       json.RawMessage `json:"result,omitempty"`
	ResultDigest string          `json:"result_digest,omitempty"`
}

// LogMeta is what else there is to say of a record.
type LogMeta struct {
	Reasons    []LogReason     `json:"reasons,omitempty"` // of a check, all of them
	Model      string          `json:"model,omitempty"`   // that is charged for
	Asked      string          `json:"asked,omitempty"`   // the model that was asked, if another answered
	Specialist string          `json:"specialist,omitempty"`
	Calls      *int64          `json:"calls,omitempty"`      // nil is one; 0 corrects an earlier record
	Correction bool            `json:"correction,omitempty"` // of an earlier record: numbers may be negative
	Unpriced   int64           `json:"unpriced,omitempty"`
	Estimated  int64           `json:"estimated,omitempty"` // how many of the calls are
	Prices     string          `json:"prices,omitempty"`    // version of the price table
	Machine    string          `json:"machine,omitempty"`
	Digest     string          `json:"digest,omitempty"` // of the machine's definition
	Profile    Profile         `json:"profile,omitempty"`
	Guards     json.RawMessage `json:"guards,omitempty"` // the machine's section
	States     []LogState      `json:"states,omitempty"` // those with a section of their own
	Actor      string          `json:"actor,omitempty"`
	Executed   bool            `json:"executed,omitempty"` // the step of a check was, though it was stopped: somebody allowed it, or only its result was stopped
	Raised     []Raise         `json:"raised,omitempty"`   // limits that Actor has raised
}

// A LogState is a state with guards of its own.
type LogState struct {
	State  string          `json:"state"`
	Guards json.RawMessage `json:"guards"`
}

// A LogReason is one reason of a verdict in a log.
type LogReason struct {
	Code  string `json:"code"`
	Guard string `json:"guard,omitempty"`
	Class string `json:"class,omitempty"`
}

// logVerdicts are the verdicts of step checks and of truth gates.
var logVerdicts = []string{
	"ok", "warn", "retry", "escalate", "abort", string(truth.Pass), string(truth.Refuse), string(truth.BudgetExceed),
}

// ParseLog reads one line of an event log. Members it does not know are ignored;
// a line that is not one JSON object with a known type, or whose numbers cannot
// be, is an error.
func ParseLog(line []byte) (rec LogRecord, err error) {
	tidy, err := tidyInput(line)
	if err != nil {
		return rec, err
	}
	if len(tidy) == 0 || tidy[0] != '{' {
		return rec, fmt.Errorf("%w: a line must be one JSON object", verdict.ErrInput)
	}
	if err := jsontext.Unmarshal(tidy, &rec); err != nil {
		return rec, fmt.Errorf("%w: %w", verdict.ErrInput, err)
	}
	return rec, rec.check()
}

func (rec *LogRecord) check() error {
	switch tokens := rec.Tokens; {
	case rec.Type == "":
		return fmt.Errorf("%w: type is missing", verdict.ErrInput)
	case !slices.Contains(logTypes, rec.Type):
		return fmt.Errorf("%w: unknown type %q", verdict.ErrInput, section.Shorten([]byte(rec.Type)))
	case tokens != nil && (tokens.Input < 0 || tokens.Output < 0) && !rec.corrects():
		return fmt.Errorf("%w: a negative number of tokens", verdict.ErrInput)
	case rec.Value != nil && !(*rec.Value >= 0 && *rec.Value <= 1):
		return fmt.Errorf("%w: value is %v, not a number from 0 to 1", verdict.ErrInput, *rec.Value)
	case rec.Verdict != "" && !slices.Contains(logVerdicts, rec.Verdict):
		return fmt.Errorf("%w: unknown verdict %q", verdict.ErrInput, section.Shorten([]byte(rec.Verdict)))
	case rec.Type == LogVerdict && rec.Verdict == "":
		return fmt.Errorf("%w: verdict is missing", verdict.ErrInput)
	case rec.Type == LogProbe && rec.Stage == "":
		return fmt.Errorf("%w: stage is missing", verdict.ErrInput)
	case rec.USD != nil && *rec.USD < 0 && !rec.corrects():
		return fmt.Errorf("%w: a negative cost", verdict.ErrInput)
	case rec.Meta != nil && (rec.Meta.Calls != nil && *rec.Meta.Calls < 0 && !rec.corrects() || rec.Meta.Unpriced < 0 || rec.Meta.Estimated < 0):
		return fmt.Errorf("%w: a negative number of calls", verdict.ErrInput)
	case rec.Type == LogCheck:
		return rec.Input.check()
	case rec.Type == LogRaised && (rec.Meta == nil || len(rec.Meta.Raised) == 0):
		return fmt.Errorf("%w: meta.raised is missing", verdict.ErrInput)
	case rec.Type == LogRaised:
		_, err := (*Config)(nil).Lift(nil, rec.Meta.Raised)
		return err
	}
	return nil
}

// corrects reports whether the record says what an earlier one cost after all.
func (rec *LogRecord) corrects() bool {
	return rec.Type == LogSpend && rec.Meta != nil && (rec.Meta.Correction || rec.Meta.Calls != nil && *rec.Meta.Calls == 0)
}

// check refuses what a [CheckInput] refuses.
func (in *LogInput) check() error {
	if in == nil {
		return nil // it is told apart when it is judged
	}
	if in.TokensIn < 0 || in.TokensOut < 0 || in.Attempt < 0 || in.Step < 0 || in.USD != nil && *in.USD < 0 {
		return fmt.Errorf("%w: a negative number of tokens, dollars, attempts or steps", verdict.ErrInput)
	}
	for i, c := range in.ToolCalls {
		if c.Name == "" {
			return fmt.Errorf("%w: tool call %d has no name", verdict.ErrInput, i+1)
		}
	}
	return nil
}

// Task returns what the record is about: its session, or its task.
func (rec *LogRecord) Task() string {
	switch {
	case rec.Session != "":
		return rec.Session
	case rec.TaskID != "" || rec.Input == nil:
		return rec.TaskID
	}
	return rec.Input.TaskID
}

// Time returns when it happened: TS is a time as RFC 3339 writes it, or a number
// of milliseconds. ok is false if it is neither.
func (rec *LogRecord) Time() (at time.Time, ok bool) {
	var text string
	if bytes.HasPrefix(rec.TS, []byte(`"`)) && json.Unmarshal(rec.TS, &text) == nil {
		at, err := time.Parse(time.RFC3339Nano, text)
		return at, err == nil
	}
	var msec int64
	if len(rec.TS) == 0 || string(rec.TS) == "null" || json.Unmarshal(rec.TS, &msec) != nil {
		return at, false
	}
	return time.UnixMilli(msec), true
}

// LogInputOf returns a step as a log holds it: in full.
func LogInputOf(s verdict.Step) *LogInput {
	in := &LogInput{
		Step: s.Number, FromState: s.FromState, Transition: s.Transition, State: s.State, Model: s.Model,
		TokensIn: s.TokensIn, TokensOut: s.TokensOut, Attempt: s.Attempt, Context: s.Context,
		MetaJSON: s.MetaJSON, SessionMeta: s.SessionMeta, Human: s.Human, Canned: s.Canned,
	}
	if s.HasOutput {
		in.Output = &s.Output
	}
	if s.CostGiven {
		in.USD = &s.Cost
	}
	for _, c := range s.ToolCalls {
		in.ToolCalls = append(in.ToolCalls, LogCall{Name: c.Name, Args: c.Args, Result: c.Result})
	}
	return in
}

// Digested returns the input with digests in the place of texts. Equal texts have
// equal digests, and so have arguments that are written in another order.
func (in *LogInput) Digested() *LogInput {
	d := *in
	if in.Output != nil {
		d.Output, d.OutputDigest = nil, digestOf([]byte(*in.Output))
	}
	d.ToolCalls = slices.Clone(in.ToolCalls)
	for i := range d.ToolCalls {
		c := &d.ToolCalls[i]
		c.ArgsDigest, c.Args = digestOf(text.Canonical(c.Args)), nil
		if c.Result != nil {
			c.ResultDigest, c.Result = digestOf(text.Canonical(c.Result)), nil
		}
	}
	for _, raw := range []*json.RawMessage{&d.Context, &d.MetaJSON, &d.SessionMeta} {
		if *raw != nil {
			*raw = fmt.Appendf(nil, "%q", digestOf(text.Canonical(*raw)))
		}
	}
	return &d
}

// step returns the input as the checks see it. Where there is a digest it stands
// for the text: it is equal when the text is.
func (in *LogInput) step(c *Config, task string) verdict.Step {
	s := verdict.Step{
		Task: task, Number: in.Step, FromState: in.FromState, Transition: in.Transition, State: in.State,
		MetaJSON: in.MetaJSON, Model: in.Model, TokensIn: in.TokensIn, TokensOut: in.TokensOut, Attempt: in.Attempt,
		Human: in.Human, Canned: in.Canned, SessionMeta: in.SessionMeta, Context: in.Context,
	}
	if in.Output != nil {
		s.Output, s.HasOutput = *in.Output, true
	} else if in.OutputDigest != "" {
		s.Output, s.HasOutput = in.OutputDigest, true
	}
	for _, call := range in.ToolCalls {
		if call.ArgsDigest != "" {
			call.Args = fmt.Appendf(nil, "%q", call.ArgsDigest)
		}
		if call.ResultDigest != "" {
			call.Result = fmt.Appendf(nil, "%q", call.ResultDigest)
		}
		s.ToolCalls = append(s.ToolCalls, verdict.ToolCall{Name: call.Name, Args: call.Args, Result: call.Result})
	}
	u := specialist.Usage{NumInputTokens: in.TokensIn, NumOutputTokens: in.TokensOut}
	if in.USD != nil {
		u = u.WithCost(*in.USD)
	}
	u = c.Price(u, in.Model)
	s.Cost, s.CostGiven = u.CostUSD, u.Has(specialist.CostGiven)
	return s
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
