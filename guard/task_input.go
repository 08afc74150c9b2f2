package guard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// One step as JSON in the form of the published step guard, and the result in that
// form. Reading is strict in what could be misread (a member twice, a second value, a
// count that is no whole number) and lenient in what could be newer: unknown members
// are ignored, and listed for lint (UnknownMembers). Absent is not empty: an output
// that is absent is not judged, an empty one is.
//
// In the profile compat a result has the published members and task_age_ms; in strict
// it also has the family and class of each reason, notices, and what was spent by
// rejected attempts.

// A CheckInput is one step as the published step guard describes it. Members
// that are absent are not judged.
type CheckInput struct {
	TaskID    string
	Step      int64   // its number, from 1; 0 if the caller does not count
	State     string  // "" if there is none
	Output    *string // nil if there is none; an empty one is judged
	ToolCalls []verdict.ToolCall
	Model     string
	TokensIn  int64
	TokensOut int64
	Attempt   int64 // from 0
	// Context is what the task knows, one JSON value: repeating something with
	// another context is progress. The published format does not have it.
	Context json.RawMessage
}

// inputJSON is the format of a CheckInput.
type inputJSON struct {
	TaskID    *string         `json:"task_id"`
	Step      json.RawMessage `json:"step"`
	State     *string         `json:"state"`
	Output    *string         `json:"output"`
	ToolCalls []toolCallJSON  `json:"tool_calls"`
	Model     *string         `json:"model"`
	TokensIn  json.RawMessage `json:"tokens_in"`
	TokensOut json.RawMessage `json:"tokens_out"`
	Attempt   json.RawMessage `json:"attempt"`
	Context   json.RawMessage `json:"context"`
}

type toolCallJSON struct {
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
}

// ParseCheckInput reads one JSON object. Unknown members are ignored, as the
// published guard does; members given twice, a second value and counts that are
// negative or no integers are errors.
func ParseCheckInput(data []byte) (in CheckInput, err error) {
	tidy, err := tidyInput(data)
	if err != nil {
		return in, err
	}
	dec := json.NewDecoder(bytes.NewReader(tidy))
	dec.UseNumber()
	var v inputJSON
	if err := dec.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
		return in, fmt.Errorf("%w: %w", verdict.ErrInput, wrongType(err))
	}
	if v.TaskID == nil || *v.TaskID == "" {
		return in, fmt.Errorf("%w: task_id is missing", verdict.ErrInput)
	}
	in = CheckInput{TaskID: *v.TaskID, Output: v.Output, Context: v.Context}
	if v.State != nil {
		in.State = *v.State
	}
	if v.Model != nil {
		in.Model = *v.Model
	}
	for _, c := range v.ToolCalls {
		in.ToolCalls = append(in.ToolCalls, verdict.ToolCall{Name: c.Name, Args: c.Args, Result: c.Result})
	}
	for _, n := range []struct {
		name string
		from json.RawMessage
		into *int64
	}{{"step", v.Step, &in.Step}, {"tokens_in", v.TokensIn, &in.TokensIn}, {"tokens_out", v.TokensOut, &in.TokensOut}, {"attempt", v.Attempt, &in.Attempt}} {
		if n.from == nil || string(n.from) == "null" {
			continue
		}
		if *n.into, err = wholeNumber(n.name, n.from); err != nil {
			return in, fmt.Errorf("%w: %w", verdict.ErrInput, err)
		}
	}
	return in, in.check()
}

// UnknownMembers returns the members of a step, and of its tool calls, that
// [ParseCheckInput] ignores because it knows none of that name, each with its path
// and, where one of a similar name exists, a hint. Names that begin with x- are for
// others to use. It returns nothing for what is no step.
func UnknownMembers(data []byte) (problems []machine.Problem) {
	var in map[string]json.RawMessage
	if json.Unmarshal(data, &in) != nil {
		return nil
	}
	problems = unknown("", in, namesOf[inputJSON]())
	var calls []map[string]json.RawMessage
	if json.Unmarshal(in["tool_calls"], &calls) == nil {
		for i, call := range calls {
			problems = append(problems, unknown(fmt.Sprintf("/tool_calls/%d", i), call, namesOf[toolCallJSON]())...)
		}
	}
	return problems
}

// unknown returns the members at a path whose names are none of those known.
func unknown(path string, in map[string]json.RawMessage, known []string) (problems []machine.Problem) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "x-") {
			problems = append(problems, machine.Problem{
				Path: path + "/" + name, Code: "unknown-field", Message: fmt.Sprintf("nothing reads %q", name), Hint: machine.DidYouMean(name, known),
			})
		}
	}
	return problems
}

// namesOf returns the names of the members of T in JSON.
func namesOf[T any]() (names []string) {
	for f := range reflect.TypeFor[T]().Fields() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// tidyInput reads one JSON value that comes from outside.
func tidyInput(data []byte) ([]byte, error) {
	tidy, err := jsontext.Tidy(data)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: the JSON ends too early", verdict.ErrInput)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", verdict.ErrInput, err)
	}
	return tidy, nil
}

// wrongType says of a value of the wrong type where it is and what it should be,
// in the words of JSON.
func wrongType(err error) error {
	var bad *json.UnmarshalTypeError
	if !errors.As(err, &bad) {
		return err
	}
	place := cmp.Or(bad.Field, "the value")
	if bad.Field != "" && bad.Type.Kind() == reflect.Struct {
		place = "each of " + place
	}
	want := map[reflect.Kind]string{reflect.Struct: "an object", reflect.Slice: "a list", reflect.String: "a string"}[bad.Type.Kind()]
	if want == "" {
		return fmt.Errorf("%s is of the wrong type", place)
	}
	return fmt.Errorf("%s must be %s", place, want)
}

// wholeNumber reads a count from 0, written in any way.
func wholeNumber(name string, n json.RawMessage) (v int64, err error) {
	r := &section.Reader{}
	if r.Count(&v, 0)("/"+name, n); len(r.Problems) > 0 {
		return 0, errors.New(r.Problems[0].Message)
	}
	return v, nil
}

func (in *CheckInput) check() error {
	switch {
	case in.TaskID == "":
		return fmt.Errorf("%w: task_id is missing", verdict.ErrInput)
	case in.TokensIn < 0 || in.TokensOut < 0 || in.Attempt < 0 || in.Step < 0:
		return fmt.Errorf("%w: a negative number of tokens, attempts or steps", verdict.ErrInput)
	case len(in.Context) > 0 && !json.Valid(in.Context):
		return fmt.Errorf("%w: context is not one JSON value", verdict.ErrInput)
	}
	for i := range in.ToolCalls {
		if in.ToolCalls[i].Name == "" {
			return fmt.Errorf("%w: tool call %d has no name", verdict.ErrInput, i+1)
		}
	}
	return nil
}

// step returns the input as the checks see it.
func (in *CheckInput) step(c *Config) (s verdict.Step) {
	in.fill(&s, c)
	return s
}

// fill makes s, which is zero, the input as the checks see it.
func (in *CheckInput) fill(s *verdict.Step, c *Config) {
	s.Task, s.Number, s.State, s.ToolCalls, s.Model = in.TaskID, in.Step, in.State, in.ToolCalls, in.Model
	s.TokensIn, s.TokensOut, s.Attempt, s.Context = in.TokensIn, in.TokensOut, in.Attempt, in.Context
	if in.Output != nil {
		s.Output, s.HasOutput = *in.Output, true
	}
	u := c.Price(specialist.Usage{NumInputTokens: in.TokensIn, NumOutputTokens: in.TokensOut}, in.Model)
	s.Cost, s.CostGiven = u.CostUSD, u.Has(specialist.CostGiven)
}

// Metrics is what a task has used, as of its last committed step.
type Metrics struct {
	Steps     int64
	TokensIn  int64
	TokensOut int64
	Dollars   exact.Money
	Elapsed   time.Duration // what the check took
	TaskAge   time.Duration // since the task's first step
	Spent     spend.Book    // all calls, rejected ones included
	Truncated bool          // n-grams are of the two ends of the output only

	task *task
}

// ToolCounts calls f with every tool the task has called, and how often, as of
// now.
func (m Metrics) ToolCounts(f func(tool string, calls int64)) {
	if m.task == nil {
		return
	}
	m.task.mu.Lock()
	tools := append([]toolCount(nil), m.task.memory.tools...)
	m.task.mu.Unlock()
	for _, t := range tools {
		f(t.Name, t.Calls)
	}
}

// AppendResult appends a CheckResult: the published members and task_age_ms in the
// profile compat, and what else there is in strict.
func AppendResult(dst []byte, v verdict.Verdict, m Metrics, profile Profile) []byte {
	type reason struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Guard   string         `json:"guard,omitempty"`
		Class   string         `json:"class,omitempty"`
		Meta    map[string]any `json:"meta,omitempty"`
	}
	type metrics struct {
		Steps     int64            `json:"steps"`
		TokensIn  int64            `json:"total_tokens_in"`
		TokensOut int64            `json:"total_tokens_out"`
		Dollars   exact.Money      `json:"total_dollars"`
		Tools     map[string]int64 `json:"tool_counts"`
		Elapsed   int64            `json:"elapsed_ms"`
		TaskAge   int64            `json:"task_age_ms"`
		Spent     *exact.Money     `json:"spent_dollars,omitempty"`
		Truncated bool             `json:"ngram_truncated,omitempty"`
	}
	out := struct {
		Status  string   `json:"status"`
		Reasons []reason `json:"reasons"`
		Notices []string `json:"notices,omitempty"`
		Metrics metrics  `json:"metrics"`
	}{Status: v.Status.String(), Reasons: []reason{}}
	for _, r := range v.Reasons {
		shown := reason{Code: r.Code, Message: r.Message, Meta: r.Meta()}
		if profile == Strict {
			shown.Guard, shown.Class = r.Guard, r.Class.String()
		}
		out.Reasons = append(out.Reasons, shown)
	}
	out.Metrics = metrics{Steps: m.Steps, TokensIn: m.TokensIn, TokensOut: m.TokensOut, Dollars: m.Dollars, Tools: map[string]int64{}, Elapsed: m.Elapsed.Milliseconds(), TaskAge: m.TaskAge.Milliseconds()}
	m.ToolCounts(func(tool string, calls int64) { out.Metrics.Tools[tool] = calls })
	if profile == Strict {
		out.Notices, out.Metrics.Spent, out.Metrics.Truncated = v.Notices, &m.Spent.Money, m.Truncated
	}
	b, err := json.Marshal(out)
	if err != nil { // there is nothing in it that cannot be written
		panic(err)
	}
	return append(dst, b...)
}
