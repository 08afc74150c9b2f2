package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// What a service may answer, read strictly but for members that nobody knows. Members
// are found by their exact names, null is absent, a member given twice refuses the
// whole. What an answer has cost is read first and returned even if the rest cannot be
// read, since it was spent.
//
// Most answers are a few plain values: readFlat reads those without a second copy of
// the text, and leaves everything with escapes, nesting or many members to readObject,
// which would read the same. Numbers are read up to 64 characters, money exactly, never
// through a float.

// maxContext is the largest context text, in bytes.
const maxContext = 256 << 10

// An AnswerError says what is wrong with the body of a webhook's answer.
type AnswerError struct{ Problem string }

func (e *AnswerError) Error() string { return "webhook answer: " + e.Problem }

func badAnswer(format string, args ...any) error {
	return &AnswerError{fmt.Sprintf(format, args...)}
}

// An object is a JSON object whose members are read one by one, by their exact
// names. Unknown members are ignored, null counts as absent.
type object []member

// A member is a name, without its quotes, and a value as jsontext.Tidy writes them.
type member struct{ name, value []byte }

// readObject reads one JSON object: no duplicate members at any depth, nothing
// after it.
func readObject(body []byte) (object, error) {
	if o, ok := readFlat(body); ok {
		return o, nil
	}
	tidy, err := jsontext.Tidy(body)
	if err != nil {
		return nil, badAnswer("it is not one JSON value: %v", err)
	}
	if tidy[0] != '{' {
		return nil, badAnswer("it is not a JSON object")
	}
	return members(tidy), nil
}

// maxFlat is how many members readFlat compares with each other.
const maxFlat = 16

// readFlat reads what most answers are, an object of a few plain values, in a
// fraction of the time and the stack. It leaves everything else to readObject,
// and what it reads is what that would.
func readFlat(body []byte) (o object, ok bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' || bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	if o = members(body); len(o) > maxFlat {
		return nil, false
	}
	for i, m := range o {
		twice := func(n member) bool { return bytes.Equal(n.name, m.name) }
		if m.value[0] == '{' || m.value[0] == '[' || slices.ContainsFunc(o[:i], twice) {
			return nil, false
		}
	}
	return o, true
}

// members returns the members of a legal JSON object.
func members(text []byte) object {
	o, c := make(object, 0, 8), jsontext.Cursor{B: text}
	c.Members(func(name []byte) { o = append(o, member{name, c.Raw()}) })
	return o
}

// value returns the value of a member, nil if it is absent. It is part of the
// whole text. The name must be one that JSON has no other way to write tidily.
func (o object) value(name string) []byte {
	for _, m := range o {
		if string(m.name) == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// text reads a string; an absent one leaves into as it is.
func (o object) text(name string, into *string) error {
	v := o.value(name)
	switch {
	case v == nil:
		return nil
	case v[0] != '"':
		return badAnswer("%s is not a string", name)
	case bytes.IndexByte(v, '\\') < 0:
		*into = string(v[1 : len(v)-1])
		return nil
	}
	return json.Unmarshal(v, into)
}

// flag reads true or false, which must not be absent.
func (o object) flag(name string, into *bool) error {
	switch v := o.value(name); string(v) {
	case "true", "false":
		*into = string(v) == "true"
		return nil
	case "":
		return badAnswer("%s is missing", name)
	}
	return badAnswer("%s is not true or false", name)
}

// maxNumber is the longest number that is read, in characters: reading a longer
// one exactly takes long and says nothing more.
const maxNumber = 64

// number returns the digits of a number.
func (o object) number(name string) (text string, ok bool, err error) {
	v := o.value(name)
	switch {
	case v == nil:
		return "", false, nil
	case v[0] != '-' && (v[0] < '0' || v[0] > '9'):
		return "", false, badAnswer("%s is not a number", name)
	case len(v) > maxNumber:
		return "", false, badAnswer("%s is a number of more than %d characters", name, maxNumber)
	}
	return string(v), true, nil
}

// count reads a whole number from 0.
func (o object) count(name string, into *int64) (given bool, err error) {
	text, ok, err := o.number(name)
	if !ok || err != nil {
		return false, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return false, badAnswer("%s is %s, not a whole number from 0", name, text)
	}
	*into = int64(f)
	return true, nil
}

// usage reads the cost members. Those before a bad one are returned with the
// error.
func (o object) usage() (u specialist.Usage, err error) {
	text, ok, err := o.number("costUSD")
	if err != nil {
		return u, err
	}
	if ok {
		m, err := exact.ParseMoney(text)
		if err != nil || m < 0 {
			return u, badAnswer("costUSD is %s, not an amount of dollars from 0 to 9 million", text)
		}
		u = u.WithCost(m)
	}
	latency, ok, err := o.number("latencyMsec")
	if err != nil {
		return u, err
	}
	if ok {
		f, err := strconv.ParseFloat(latency, 64)
		if err != nil || f < 0 || f > 1<<53 {
			return u, badAnswer("latencyMsec is %s, not a time in milliseconds", latency)
		}
		u.LatencyMsec, u.Given = int64(math.Round(f)), u.Given|specialist.LatencyGiven
	}
	for _, c := range []struct {
		name string
		into *int64
		bit  specialist.Given
	}{{"numInputTokens", &u.NumInputTokens, specialist.InputGiven}, {"numOutputTokens", &u.NumOutputTokens, specialist.OutputGiven}} {
		given, err := o.count(c.name, c.into)
		if err != nil {
			return u, err
		}
		if given {
			u.Given |= c.bit
		}
	}
	return u, nil
}

// ReadAnswer reads a ProposerStrategyResult. Whether it is legal is for the
// engine to say. An answer that cannot be read is returned with what it is known
// to have cost.
func ReadAnswer(body []byte) (a specialist.Answer, err error) {
	o, err := readObject(body)
	if err != nil {
		return a, err
	}
	if a.Usage, err = o.usage(); err != nil {
		return a, err
	}
	for _, f := range []struct {
		name string
		into *string
	}{{"transitionName", &a.TransitionName}, {"toState", &a.ToState}, {"reasoning", &a.Reasoning}, {"model", &a.Model}} {
		if err := o.text(f.name, f.into); err != nil {
			return a, err
		}
	}
	if a.TransitionName == "" {
		return a, badAnswer("transitionName is missing")
	}
	a.MetaJSON = bytes.Clone(o.value("metaJson"))
	a.ToolCalls, err = o.toolCalls()
	return a, err
}

func (o object) toolCalls() ([]specialist.ToolCall, error) {
	raw := o.value("toolCalls")
	if raw == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, badAnswer("toolCalls is not an array")
	}
	calls := make([]specialist.ToolCall, len(list))
	for i, item := range list {
		if item[0] != '{' {
			return nil, badAnswer("toolCalls[%d] is not an object", i)
		}
		call := members(item)
		if err := call.text("name", &calls[i].Name); err != nil || calls[i].Name == "" {
			return nil, badAnswer("toolCalls[%d] has no name", i)
		}
		if call.text("id", &calls[i].ID) != nil {
			return nil, badAnswer("toolCalls[%d].id is not a string", i)
		}
		calls[i].Args = bytes.Clone(call.value("args"))
		calls[i].Result = bytes.Clone(call.value("result"))
	}
	return calls, nil
}

// readConsensus reads a ConsensusResult about a round, and what it cost, which is
// returned along with an error. Of its members threshold and scores are not read:
// those of the round are in force.
func readConsensus(body []byte, r *arbiter.Round) (arbiter.Decision, error) {
	none := arbiter.None("")
	o, err := readObject(body)
	if err != nil {
		return none, err
	}
	if none.Expense, err = o.expense(); err != nil {
		return none, err
	}
	var reached bool
	if err := o.flag("consensusReached", &reached); err != nil {
		return none, err
	}
	var winner, reasoning string
	if err := cmp.Or(o.text("winningProposalId", &winner), o.text("reasoning", &reasoning)); err != nil {
		return none, err
	}
	margin, hasMargin, err := o.margin()
	if err != nil {
		return none, err
	}
	d := arbiter.None(reasoning)
	if reached {
		index, err := r.Find(winner)
		if err != nil {
			return none, err
		}
		d = arbiter.Elect(index, reasoning)
	}
	d.Margin, d.HasMargin, d.Expense = margin, hasMargin, none.Expense
	return d, nil
}

// expense reads what an arbiter's answer cost; nil if it does not say.
func (o object) expense() (*arbiter.Expense, error) {
	var e arbiter.Expense
	var err error
	if e.Usage, err = o.usage(); err != nil {
		return nil, err
	}
	if err := o.text("model", &e.Model); err != nil {
		return nil, err
	}
	if e == (arbiter.Expense{}) {
		return nil, nil
	}
	return &e, nil
}

func (o object) margin() (m exact.Billionths, given bool, err error) {
	text, ok, err := o.number("margin")
	if !ok || err != nil {
		return 0, false, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > 1 {
		return 0, false, badAnswer("margin is %s, not a number from -1 to 1", text)
	}
	m, err = exact.FromFloat(f)
	return m, err == nil, err
}

// readContext reads {context: string}.
func readContext(body []byte) (string, error) {
	o, err := readObject(body)
	if err != nil {
		return "", err
	}
	if o.value("context") == nil {
		return "", badAnswer("context is missing")
	}
	var text string
	if err := o.text("context", &text); err != nil {
		return "", err
	}
	if len(text) > maxContext {
		return "", badAnswer("context is larger than %d bytes", maxContext)
	}
	return text, nil
}
