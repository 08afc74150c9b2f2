package specialist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

var desk = func() *machine.Machine {
	m, err := machine.Parse("desk.json", []byte(`{ "machineName": "desk", "initialState": "open", "goalState": "done",
		"states": { "open": { "prompt": "Which \"way\"?", "transitions": {
			"z": { "target": "done", "description": "for good", "irreversible": true, "parameters": {"type": "object", "required": ["why"]} }, "a": "open" } },
			"done": {} } }`), machine.Checks{})
	if err != nil {
		panic(err)
	}
	return m
}()

type past struct {
	specialist.Past
	history   []specialist.TransitionRecord
	exemplars []specialist.Exemplar
}

func (p past) History() []specialist.TransitionRecord { return p.history }
func (p past) Exemplars() []specialist.Exemplar       { return p.exemplars }

var record = specialist.TransitionRecord{TransitionName: "a", Reasoning: "not\nyet", ExecutionTimestamp: 1767225600123, MetaJSON: json.RawMessage(`{"n":1.50}`)}

var exemplar = specialist.Exemplar{ExemplarID: "e1", MachineName: "desk", State: "open", Context: json.RawMessage(`{"prompt":"p"}`), HumanTransitionName: "a", HumanToState: "open",
	Proposals: json.RawMessage(`[]`), CreatedAt: 1000, Reasoning: "said \"so\"", SpecialistID: "hum", SessionID: "s1", Truncated: true}

const exemplarJSON = `{"exemplarId":"e1","machineName":"desk","state":"open","context":{"prompt":"p"},"humanTransitionName":"a","humanToState":"open","proposals":[],` +
	`"createdAt":"1970-01-01T00:00:01.000Z","reasoning":"said \"so\"","specialistId":"hum","sessionId":"s1","truncated":true}`

func question(p past) specialist.Question {
	return specialist.Question{Key: specialist.RoundKey{Session: session, Round: 1}, Machine: desk, State: desk.Initial(), Past: p}
}

const start = `{"sessionId":"f81d4fae-7dec-41d0-a765-00a0c91e6bf6","currentState":"open","prompt":"Which \"way\"?","transitions":{` +
	`"z":{"target":"done","description":"for good","parameters":{"type":"object","required":["why"]},"metaJsonRequired":true,"irreversible":true},"a":{"target":"open"}},"history":[`

// TestContext: exactly the members that proposers are to see, and nothing of the
// others, their scores or their proposals.
func TestContext(t *testing.T) {
	q := question(past{})
	if got, want := string(q.AppendContext([]byte("x"), true)), "x"+start+`],"exemplars":[]}`; got != want {
		t.Errorf("the least context is\n%s, want\n%s", got, want)
	}
	q = question(past{history: []specialist.TransitionRecord{record, {TransitionName: "a"}}, exemplars: []specialist.Exemplar{exemplar, exemplar}})
	q.Meta, q.Notices = json.RawMessage(`{"amount":80}`), []string{"mind \"it\"", "twice"}
	q.Self, q.Seed, q.Ask = "me", 7, &specialist.Ask{ID: "ask", CallbackToken: "secret"}
	history := `{"transitionName":"a","reasoning":"not\nyet","executionTimestamp":"2026-01-01T00:00:00.123Z","metaJson":{"n":1.50}},{"transitionName":"a","reasoning":"","executionTimestamp":"1970-01-01T00:00:00.000Z"}`
	for with, exemplars := range map[bool]string{true: exemplarJSON + "," + exemplarJSON, false: ""} {
		want := start + history + `],"metaJson":{"amount":80},"exemplars":[` + exemplars + `],"notices":["mind \"it\"","twice"]}`
		got := q.AppendContext(nil, with)
		if string(got) != want || !json.Valid(got) {
			t.Errorf("with exemplars %t the context is\n%s, want\n%s", with, got, want)
		}
	}
}

// TestExemplarContext: the oldest history goes first, as little of it as will do,
// and notices are not kept.
func TestExemplarContext(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	q := question(past{})
	q.Notices = []string{"gone"}
	if got, truncated := q.ExemplarContext(); string(got) != start+`],"exemplars":[]}` || truncated {
		t.Errorf("the least context of an exemplar is %s, %t", got, truncated)
	}
	for range 300 {
		history := make([]specialist.TransitionRecord, rng.IntN(40))
		for i := range history {
			history[i] = specialist.TransitionRecord{TransitionName: fmt.Sprint("t", i), Reasoning: strings.Repeat("x", rng.IntN(2000))}
		}
		q.Past = past{history: history, exemplars: []specialist.Exemplar{exemplar}}
		got, truncated := q.ExemplarContext()
		var kept struct{ History []specialist.TransitionRecord }
		if err := json.Unmarshal(got, &kept); err != nil || len(got) > specialist.MaxExemplarContext {
			t.Fatalf("seed %d: %d bytes (%v)", seed, len(got), err)
		}
		dropped := len(history) - len(kept.History)
		if dropped < 0 || truncated != (dropped > 0) || dropped < len(history) && kept.History[0].TransitionName != history[dropped].TransitionName {
			t.Fatalf("seed %d: %d of %d transitions are kept, truncated %t", seed, len(kept.History), len(history), truncated)
		}
		if truncated {
			more := q
			more.Notices, more.Past = nil, past{history: history[dropped-1:]}
			if len(more.AppendContext(nil, false)) <= specialist.MaxExemplarContext {
				t.Fatalf("seed %d: one more transition would have fitted", seed)
			}
		}
	}
	// What is too large by itself loses all of its history and stays too large.
	q.Meta, q.Past = json.RawMessage(`"`+strings.Repeat("x", specialist.MaxExemplarContext)+`"`), past{history: []specialist.TransitionRecord{record}}
	if got, truncated := q.ExemplarContext(); !truncated || !strings.Contains(string(got), `"history":[]`) {
		t.Errorf("a large session keeps %d bytes, truncated %t", len(got), truncated)
	}
}

// TestContextIsBounded: a request stays within 1 MiB while exemplars or history can
// be left out, and shows as much of the newest as fits.
func TestContextIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 4))
	text := func(most int) string { return strings.Repeat("\"é", rng.IntN(most)) }
	for range 20 {
		var p past
		for range 1000 {
			e := exemplar
			e.Reasoning = text(2000)
			p.exemplars = append(p.exemplars, e)
		}
		for range rng.IntN(200) {
			r := record
			r.Reasoning = text(8000)
			p.history = append(p.history, r)
		}
		q := question(p)
		whole := q.AppendContext(nil, true)
		var shown struct {
			History, Exemplars []struct{ Reasoning string }
		}
		if err := json.Unmarshal(whole, &shown); err != nil || len(whole) > specialist.MaxContext {
			t.Fatalf("seed %d: %d bytes, %v", seed, len(whole), err)
		}
		h, e := len(p.history)-len(shown.History), len(p.exemplars)-len(shown.Exemplars)
		for i := range shown.History {
			if shown.History[i].Reasoning != p.history[h+i].Reasoning {
				t.Fatalf("seed %d: transition %d of %d is not among the newest", seed, i, len(shown.History))
			}
		}
		for i := range shown.Exemplars {
			if shown.Exemplars[i].Reasoning != p.exemplars[e+i].Reasoning {
				t.Fatalf("seed %d: exemplar %d of %d is not among the newest", seed, i, len(shown.Exemplars))
			}
		}
		more := len(whole) + len(p.exemplars[e-1].Append(nil)) + min(1, len(shown.Exemplars))
		if h > 0 {
			more = len(whole) + len(specialist.AppendHistory(nil, p.history[h-1:h])) - 1
		}
		if more <= specialist.MaxContext || h > 0 && len(shown.Exemplars) > 0 {
			t.Fatalf("seed %d: %d bytes with %d transitions and %d exemplars left out, more would have fitted", seed, len(whole), h, e)
		}
	}
	// What is there in any case is sent, however large.
	q := question(past{exemplars: []specialist.Exemplar{exemplar}, history: []specialist.TransitionRecord{record}})
	q.Meta = json.RawMessage(`"` + strings.Repeat("x", specialist.MaxContext) + `"`)
	if got := string(q.AppendContext(nil, true)); !strings.Contains(got, `"history":[]`) || !strings.Contains(got, `"exemplars":[]`) || !strings.Contains(got, string(q.Meta)) {
		t.Errorf("a large session is shown in %d bytes", len(got))
	}
}

func TestExemplarsReadBack(t *testing.T) {
	if got := string(exemplar.Append([]byte("x"))); got != "x"+exemplarJSON {
		t.Errorf("the exemplar is %s, want %s", got[1:], exemplarJSON)
	}
	small := specialist.Exemplar{ExemplarID: "e", Context: json.RawMessage(`{}`), Proposals: json.RawMessage(`[]`)}
	for _, e := range []specialist.Exemplar{exemplar, small} {
		if got, err := specialist.ParseExemplar(e.Append(nil)); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v was read back as %+v (%v)", e, got, err)
		}
	}
	if _, err := specialist.ParseExemplar([]byte(`{"createdAt":5}`)); err == nil {
		t.Error("a number was read as a time")
	}
}

func TestProposalJSON(t *testing.T) {
	key := specialist.RoundKey{Session: session, Round: 1}
	p := &specialist.Proposal{SpecialistID: "ann", Transition: desk.Initial().Transition("z"), Reasoning: "so", CreatedAt: 1767225600123, Arrival: 1, Mode: specialist.Model}
	const id, rest = `{"proposalId":"3989f99a-43ef-8450-b29c-941a1309fed9","sessionId":"f81d4fae-7dec-41d0-a765-00a0c91e6bf6","roundId":"42dd4eeb-9e0f-8127-91b9-d8a3e9364a8e",`, `"specialistId":"ann","isHuman":false,"transitionName":"z","toState":"done","reasoning":"so"`
	if got, want := string(specialist.AppendProposal(nil, key, p)), id+rest+`,"createdAt":"2026-01-01T00:00:00.123Z","arrival":1,"mode":"model"}`; got != want {
		t.Errorf("the proposal is\n%s, want\n%s", got, want)
	}
	p.IsHuman, p.Replaces, p.MetaJSON = true, 2, json.RawMessage(`{"why":"x"}`)
	p.Usage = specialist.Usage{LatencyMsec: 12, NumInputTokens: 3, NumOutputTokens: 0, Given: specialist.LatencyGiven | specialist.InputGiven | specialist.OutputGiven, Estimated: true}.WithCost(15)
	p.Detail = &specialist.Detail{Model: "some/model", AskID: "ask-1", OptionOrder: []string{"a", "z"}, ToolCalls: []specialist.ToolCall{{Name: "look", Args: json.RawMessage(`{"q":1}`), ID: "c1"}, {Name: "go"}}}
	want := id + strings.Replace(rest, "false", "true", 1) +
		`,"metaJson":{"why":"x"},"costUSD":0.000000000015,"latencyMsec":12,"numInputTokens":3,"numOutputTokens":0,"estimated":true,"createdAt":"2026-01-01T00:00:00.123Z","arrival":1,"mode":"model",` +
		`"model":"some/model","toolCalls":[{"name":"look","args":{"q":1},"id":"c1"},{"name":"go"}],"optionOrder":["a","z"],"askId":"ask-1","replaces":"4b02de56-9df2-8aa4-b02e-2bbb6e818dc6"}`
	if got := specialist.AppendProposal(nil, key, p); string(got) != want || !json.Valid(got) {
		t.Errorf("the proposal is\n%s, want\n%s", got, want)
	}
}

// TestUsage: a member that is known is written, zero or not; one that is not
// known is not.
func TestUsage(t *testing.T) {
	members := []string{`,"costUSD":0`, `,"latencyMsec":0`, `,"numInputTokens":0`, `,"numOutputTokens":0`}
	for given := range specialist.Given(16) {
		u, want := specialist.Usage{Given: given}, ""
		for i, m := range members {
			if given&(1<<i) != 0 {
				want += m
			}
			if has := u.Has(1 << i); has != (given&(1<<i) != 0) {
				t.Errorf("of %b, %b is known: %t", given, 1<<i, has)
			}
		}
		if got := string(specialist.AppendUsage(nil, u)); got != want {
			t.Errorf("usage %b is %s, want %s", given, got, want)
		}
	}
	u := specialist.Usage{NumInputTokens: 4, Given: specialist.InputGiven}
	priced := u.WithCost(3 * exact.Dollar)
	if u.Has(specialist.CostGiven) || !priced.Has(specialist.CostGiven|specialist.InputGiven) || priced.CostUSD != 3*exact.Dollar || priced.NumInputTokens != 4 {
		t.Errorf("%+v with a cost is %+v", u, priced)
	}
	if u.Has(specialist.InputGiven | specialist.OutputGiven) {
		t.Error("half of what was asked for counts as all")
	}
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 6_999_999, time.FixedZone("there", 3600))
	ms := specialist.TimeOf(at)
	if ms.String() != "2026-01-02T03:04:05.006Z" || string(ms.Append([]byte("x"))) != "x2026-01-02T03:04:05.006Z" || !ms.Time().Equal(at.Truncate(time.Millisecond)) || ms.Time().Location() != time.UTC {
		t.Errorf("%s became %s", at, ms)
	}
	if specialist.Time(0).String() != "1970-01-01T00:00:00.000Z" || specialist.TimeOf(time.Unix(-1, 0)).String() != "1969-12-31T23:59:59.000Z" {
		t.Errorf("time 0 is %s", specialist.Time(0))
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 2000 {
		want := specialist.Time(rng.Int64N(253402300799999)) // to the end of the year 9999
		data, err := json.Marshal(want)
		var got specialist.Time
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if got != want || err != nil || string(data) != `"`+want.String()+`"` {
			t.Fatalf("seed %d: %d became %s and %d (%v)", seed, want, data, got, err)
		}
	}
	for text, want := range map[string]specialist.Time{`"2026-01-02T05:04:05+02:00"`: ms - 6, `"2026-01-02T03:04:05.0069999Z"`: ms, `null`: 7} {
		got := specialist.Time(7)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`""`, `"yesterday"`, `5`, `"2026-13-01T00:00:00Z"`, `"2026-01-02 03:04:05"`, `{}`} {
		got := specialist.Time(7)
		if err := json.Unmarshal([]byte(text), &got); err == nil || got != 7 {
			t.Errorf("%s was read as %s", text, got)
		}
	}
}

func TestSources(t *testing.T) {
	for i, name := range []string{"submitted", "function", "builtin", "expression", "webhook", "model"} {
		if s := specialist.Source(i); s.String() != name || specialist.SourceNamed(name) != s {
			t.Errorf("source %d is %s; %q is %d", i, s, name, specialist.SourceNamed(name))
		}
	}
	if got := specialist.SourceNamed("rumour"); got != specialist.Submitted {
		t.Errorf("an unknown source is %s", got)
	}
}

func TestFuncs(t *testing.T) {
	q := question(past{})
	q.Self = "me"
	var p specialist.Proposer = specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return q.Choose(q.Transitions()[0], q.Self), specialist.ErrAccepted
	})
	if answer, err := p.Propose(t.Context(), q); !reflect.DeepEqual(answer, specialist.Answer{TransitionName: "z", Reasoning: "me"}) || !errors.Is(err, specialist.ErrAccepted) {
		t.Errorf("the proposer said %+v, %v", answer, err)
	}
	var c specialist.Context = specialist.ContextFunc(func(_ context.Context, q specialist.Question) (string, error) { return q.State.Name, nil })
	if text, err := c.Gather(t.Context(), q); text != "open" || err != nil {
		t.Errorf("the context is %q, %v", text, err)
	}
}
