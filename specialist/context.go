package specialist

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// The question as a service, a function or an exemplar has it: DIAL's ProposerContext,
// member by member in one order. It is bounded: the newest exemplars that fit are
// shown, and if there is no room for any, the newest history; the state, the options
// and metaJson are never cut.

// AppendContext appends the question as DIAL's ProposerContext: exactly
// sessionId, currentState, prompt, transitions, history, metaJson, exemplars
// and, after a guard's warning, notices; data only of a machine that keeps any. withExemplars false leaves the
// exemplars empty, as inside an exemplar. With them the context keeps to
// [MaxContext]: it shows the newest exemplars that fit, and if there is no room for
// any, the newest history.
func (q Question) AppendContext(dst []byte, withExemplars bool) []byte {
	history, start := q.Past.History(), len(dst)
	dst = q.appendContext(dst, history, nil)
	if !withExemplars {
		return dst
	}
	room := MaxContext - (len(dst) - start)
	if room < 0 {
		return q.appendContext(dst[:start], NewestHistory(history, -room), nil)
	}
	if exemplars := newestExemplars(q.Past.Exemplars(), room); len(exemplars) > 0 {
		return q.appendContext(dst[:start], history, exemplars)
	}
	return dst
}

// MaxContext is how large a context is, in bytes, if leaving out exemplars or
// history makes it so.
const MaxContext = 1 << 20

// NewestHistory drops the oldest transitions until the history is shorter by at
// least excess bytes, or empty.
func NewestHistory(history []TransitionRecord, excess int) []TransitionRecord {
	for len(history) > 0 && excess > 0 {
		excess -= len(history[0].append(nil)) + len(",")
		history = history[1:]
	}
	return history
}

// newestExemplars returns the newest exemplars that fit into room.
func newestExemplars(exemplars []Exemplar, room int) []Exemplar {
	room++ // the first has no comma before it
	for i := range slices.Backward(exemplars) {
		if room -= len(exemplars[i].Append(nil)) + len(","); room < 0 {
			return exemplars[i+1:]
		}
	}
	return exemplars
}

func (q Question) appendContext(dst []byte, history []TransitionRecord, exemplars []Exemplar) []byte {
	dst = append(dst, `{"sessionId":"`...)
	dst = append(dst, q.Key.Session.String()...)
	dst = append(dst, `","currentState":`...)
	dst = jsontext.AppendString(dst, q.State.Name)
	dst = append(dst, `,"prompt":`...)
	dst = jsontext.AppendString(dst, q.State.Prompt)
	dst = append(dst, `,"transitions":`...)
	dst = appendTransitions(dst, q.State)
	dst = AppendHistory(append(dst, `,"history":`...), history)
	if q.Meta != nil {
		dst = append(append(dst, `,"metaJson":`...), q.Meta...)
	}
	if q.Machine.KeepsData() {
		dst = q.Data.Append(append(dst, `,"data":`...))
	}
	dst = append(dst, `,"exemplars":[`...)
	for i := range exemplars {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = exemplars[i].Append(dst)
	}
	dst = append(dst, ']')
	if len(q.Notices) > 0 {
		dst = append(dst, `,"notices":[`...)
		for i, n := range q.Notices {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsontext.AppendString(dst, n)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// MaxExemplarContext is the largest context an exemplar keeps, in bytes.
const MaxExemplarContext = 16 << 10

// ExemplarContext returns the question as the context of an exemplar. If it is
// too large it loses its oldest history, and truncated is true.
func (q Question) ExemplarContext() (context []byte, truncated bool) {
	q.Notices = nil
	history := q.Past.History()
	context = q.appendContext(nil, history, nil)
	if len(context) <= MaxExemplarContext || len(history) == 0 {
		return context, false
	}
	keep := sort.Search(len(history), func(dropped int) bool {
		context = q.appendContext(context[:0], history[dropped:], nil)
		return len(context) <= MaxExemplarContext
	})
	return q.appendContext(context[:0], history[keep:], nil), true
}

func appendTransitions(dst []byte, s *machine.State) []byte {
	dst = append(dst, '{')
	for i, t := range s.Transitions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendString(dst, t.Name), `:{"target":`...)
		dst = jsontext.AppendString(dst, t.Target)
		if t.Description != "" {
			dst = jsontext.AppendString(append(dst, `,"description":`...), t.Description)
		}
		if t.Parameters != nil {
			dst = append(append(dst, `,"parameters":`...), t.Parameters.String()...)
		}
		if t.NeedsPayload {
			dst = append(dst, `,"metaJsonRequired":true`...)
		}
		if t.Irreversible {
			dst = append(dst, `,"irreversible":true`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (r *TransitionRecord) append(dst []byte) []byte {
	dst = jsontext.AppendString(append(dst, `{"transitionName":`...), r.TransitionName)
	dst = jsontext.AppendString(append(dst, `,"reasoning":`...), r.Reasoning)
	dst = append(r.ExecutionTimestamp.Append(append(dst, `,"executionTimestamp":"`...)), '"')
	if r.MetaJSON != nil {
		dst = append(append(dst, `,"metaJson":`...), r.MetaJSON...)
	}
	return append(dst, '}')
}

// Append appends e as one JSON object.
func (e *Exemplar) Append(dst []byte) []byte {
	str := func(name, value string) {
		if value != "" {
			dst = append(append(append(dst, ',', '"'), name...), '"', ':')
			dst = jsontext.AppendString(dst, value)
		}
	}
	dst = jsontext.AppendString(append(dst, `{"exemplarId":`...), e.ExemplarID)
	str("machineName", e.MachineName)
	str("state", e.State)
	dst = append(append(dst, `,"context":`...), e.Context...)
	str("humanTransitionName", e.HumanTransitionName)
	str("humanToState", e.HumanToState)
	dst = append(append(dst, `,"proposals":`...), e.Proposals...)
	dst = append(e.CreatedAt.Append(append(dst, `,"createdAt":"`...)), '"')
	str("reasoning", e.Reasoning)
	str("specialistId", e.SpecialistID)
	str("sessionId", e.SessionID)
	if e.Truncated {
		dst = append(dst, `,"truncated":true`...)
	}
	return append(dst, '}')
}

// AppendUsage appends the known members of u, each with a comma before it.
func AppendUsage(dst []byte, u Usage) []byte {
	number := func(name string, v int64) {
		dst = append(append(append(dst, ',', '"'), name...), '"', ':')
		dst = strconv.AppendInt(dst, v, 10)
	}
	if u.Has(CostGiven) {
		dst = u.CostUSD.Append(append(dst, `,"costUSD":`...))
	}
	if u.Has(LatencyGiven) {
		number("latencyMsec", u.LatencyMsec)
	}
	if u.Has(InputGiven) {
		number("numInputTokens", u.NumInputTokens)
	}
	if u.Has(OutputGiven) {
		number("numOutputTokens", u.NumOutputTokens)
	}
	if u.Made() != 1 {
		number("calls", u.Made())
	}
	if u.Unbilled > 0 {
		number("unbilledCalls", u.Unbilled)
	}
	if u.Estimated {
		dst = append(dst, `,"estimated":true`...)
	}
	if u.Detail != nil {
		dst = u.Detail.Append(append(dst, `,"tokenDetail":`...))
	}
	return dst
}

// ReadUsage reads what [AppendUsage] has appended to an object; member returns the value
// of a member, nil if there is none or if it is null.
func ReadUsage(member func(name string) []byte) (u Usage, err error) {
	if raw := member("costUSD"); raw != nil {
		var cost exact.Money
		err = cost.UnmarshalJSON(raw)
		u = u.WithCost(cost)
	}
	number := func(name string, into *int64, given Given) {
		raw := member(name)
		if raw == nil || err != nil {
			return
		}
		c := jsontext.Cursor{B: raw}
		if *into, u.Given = c.Int(), u.Given|given; c.Err != nil {
			err = fmt.Errorf("%s: %w", name, c.Err)
		}
	}
	number("latencyMsec", &u.LatencyMsec, LatencyGiven)
	number("numInputTokens", &u.NumInputTokens, InputGiven)
	number("numOutputTokens", &u.NumOutputTokens, OutputGiven)
	number("calls", &u.Calls, CallsGiven)
	number("unbilledCalls", &u.Unbilled, 0)
	u.Estimated = string(member("estimated")) == "true"
	if raw := member("tokenDetail"); raw != nil && err == nil {
		u.Detail = &UsageDetail{}
		err = json.Unmarshal(raw, u.Detail)
	}
	return u, err
}

// Append appends d as a JSON object of the members that are not 0.
func (d UsageDetail) Append(dst []byte) []byte {
	start := len(dst)
	for _, m := range [...]struct {
		name   string
		tokens int64
	}{
		{"cacheRead", d.CacheReadTokens}, {"cacheWrite5m", d.CacheWrite5mTokens}, {"cacheWrite1h", d.CacheWrite1hTokens},
		{"reasoning", d.ReasoningTokens}, {"audioInput", d.AudioInputTokens}, {"audioOutput", d.AudioOutputTokens},
	} {
		if m.tokens != 0 {
			dst = append(append(append(dst, ',', '"'), m.name...), '"', ':')
			dst = strconv.AppendInt(dst, m.tokens, 10)
		}
	}
	if len(dst) == start {
		return append(dst, '{', '}')
	}
	dst[start] = '{'
	return append(dst, '}')
}

// ParseExemplar reads what Append wrote.
func ParseExemplar(data []byte) (e Exemplar, err error) {
	err = json.Unmarshal(data, &e)
	return e, err
}
