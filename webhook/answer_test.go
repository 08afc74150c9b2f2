package webhook_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

const allGiven = specialist.CostGiven | specialist.LatencyGiven | specialist.InputGiven | specialist.OutputGiven

func TestReadAnswer(t *testing.T) {
	type answer = specialist.Answer
	deep := strings.Repeat("[", jsontext.MaxDepth-1) + strings.Repeat("]", jsontext.MaxDepth-1)
	for body, want := range map[string]answer{
		`{"transitionName":"a"}`:                                                     {TransitionName: "a"},
		" \n\t{ \"transitionName\" : \"a\" } \r\n":                                   {TransitionName: "a"},
		`{"transitionName":"a","toState":"b","reasoning":"because","model":"m"}`:     {TransitionName: "a", ToState: "b", Reasoning: "because", Model: "m"},
		`{"transitionName":"\u00e4\ud83d\ude00\n"}`:                                  {TransitionName: "ä😀\n"},
		`{"transitionName":"a","toState":null,"reasoning":null,"metaJson":null}`:     {TransitionName: "a"},
		`{"transitionName":"a","costUSD":null,"numInputTokens":null,"model":null}`:   {TransitionName: "a"},
		`{"transitionName":"a","toolCalls":null}`:                                    {TransitionName: "a"},
		`{"transitionName":"a","toolCalls":[]}`:                                      {TransitionName: "a", ToolCalls: []specialist.ToolCall{}},
		`{"transitionName":"a","metaJson":1}`:                                        {TransitionName: "a", MetaJSON: json.RawMessage("1")},
		`{"transitionName":"a","metaJson":` + deep + `}`:                             {TransitionName: "a", MetaJSON: json.RawMessage(deep)},
		`{"transitionName":"a","metaJson":{"z": 1.10, "a": 12345678901234567890.1}}`: {TransitionName: "a", MetaJSON: json.RawMessage(`{"z":1.10,"a":12345678901234567890.1}`)},
		`{"transitionName":"a","metaJson":[1e2,-0,0.0]}`:                             {TransitionName: "a", MetaJSON: json.RawMessage(`[1e2,-0,0.0]`)},
		`{"transitionName":"a","costUSD":0.000000000001,"latencyMsec":1.5,"numInputTokens":3,"numOutputTokens":4e2}`: {TransitionName: "a",
			Usage: specialist.Usage{CostUSD: 1, LatencyMsec: 2, NumInputTokens: 3, NumOutputTokens: 400, Given: allGiven}},
		`{"transitionName":"a","costUSD":0,"latencyMsec":0,"numInputTokens":0,"numOutputTokens":-0}`: {TransitionName: "a", Usage: specialist.Usage{Given: allGiven}},
		`{"transitionName":"a","costUSD":1e-30}`:                                                     {TransitionName: "a", Usage: specialist.Usage{}.WithCost(1)}, // nothing becomes free
		`{"transitionName":"a","costUSD":0.1}`:                                                       {TransitionName: "a", Usage: specialist.Usage{}.WithCost(exact.Dollar / 10)},
		`{"transitionName":"a","toolCalls":[{"name":"x"},{"name":"y","args":{"k":1.0},"id":"7","q":1}]}`: {TransitionName: "a",
			ToolCalls: []specialist.ToolCall{{Name: "x"}, {Name: "y", Args: json.RawMessage(`{"k":1.0}`), ID: "7"}}},
		`{"transitionName":"a","toolCalls":[{"name":"x","args":null,"id":null}]}`: {TransitionName: "a", ToolCalls: []specialist.ToolCall{{Name: "x"}}},
		// Whatever else is claimed is not believed, and names are case-sensitive.
		`{"transitionName":"a","isHuman":true,"proposalId":"p","sessionId":"s","roundId":"r","createdAt":"2026-01-02T03:04:05.000Z","specialistId":"ann",` +
			`"arrival":1,"mode":"submitted","replaces":"x","estimated":true,"given":15,"weight":1,"askId":"q","optionOrder":["b"],"detail":{"model":"m"}}`: {TransitionName: "a"},
		`{"transitionName":"a","TransitionName":"b","TOSTATE":"c","Reasoning":1,"MetaJson":1,"metaJSON":2,"costUsd":"x","costusd":1,"LatencyMsec":-1}`: {TransitionName: "a"},
	} {
		got, err := webhook.ReadAnswer([]byte(body))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", body, got, err, want)
		}
	}
}

// wrong are values of the wrong type for each member; those that say nothing
// count as absent.
func wrong(is string) (list []string) {
	for kind, value := range map[string]string{"string": `"x"`, "number": "1", "bool": "true", "array": "[]", "object": "{}"} {
		if kind != is {
			list = append(list, value)
		}
	}
	return list
}

func TestReadAnswerRefuses(t *testing.T) {
	cases := map[string]string{ // body to problem
		`{}`:                         "transitionName is missing",
		`{"transitionName":""}`:      "transitionName is missing",
		`{"transitionName":null}`:    "transitionName is missing",
		`{"TransitionName":"a"}`:     "transitionName is missing",
		`{"transitionName\u0000":1}`: "transitionName is missing",
		`[{"transitionName":"a"}]`:   "it is not a JSON object",
		`"a"`:                        "it is not a JSON object",
		`null`:                       "it is not a JSON object",
		`1`:                          "it is not a JSON object",
	}
	for _, value := range wrong("string") {
		cases[`{"transitionName":`+value+`}`] = "transitionName is not a string"
	}
	for member, kind := range map[string]string{"toState": "string", "reasoning": "string", "model": "string",
		"costUSD": "number", "latencyMsec": "number", "numInputTokens": "number", "numOutputTokens": "number"} {
		for _, value := range wrong(kind) {
			cases[`{"transitionName":"a","`+member+`":`+value+`}`] = member + " is not a " + kind
		}
	}
	for _, value := range wrong("array") {
		cases[`{"transitionName":"a","toolCalls":`+value+`}`] = "toolCalls is not an array"
	}
	for _, value := range append(wrong("object"), "null") {
		cases[`{"transitionName":"a","toolCalls":[{"name":"x"},`+value+`]}`] = "toolCalls[1] is not an object"
	}
	for _, value := range append(wrong("string"), "null", `""`) {
		cases[`{"transitionName":"a","toolCalls":[{"name":`+value+`}]}`] = "toolCalls[0] has no name"
	}
	for _, value := range wrong("string") {
		cases[`{"transitionName":"a","toolCalls":[{"name":"x","id":`+value+`}]}`] = "toolCalls[0].id is not a string"
	}
	for _, value := range []string{"-1", "-0.000000000001", "-1e-30", "1e39", "1e400", "1e-401", "9223373"} {
		cases[`{"transitionName":"a","costUSD":`+value+`}`] = "costUSD is " + value + ", not an amount of dollars from 0 to 9 million"
	}
	for _, value := range []string{"-1", "-0.001", "1e17", "1e400", "9007199254740994"} {
		cases[`{"transitionName":"a","latencyMsec":`+value+`}`] = "latencyMsec is " + value + ", not a time in milliseconds"
	}
	for _, member := range []string{"numInputTokens", "numOutputTokens"} {
		for _, value := range []string{"-1", "0.5", "1e-3", "1e17", "1e400", "9007199254740994"} {
			cases[`{"transitionName":"a","`+member+`":`+value+`}`] = member + " is " + value + ", not a whole number from 0"
		}
	}
	for _, member := range []string{"costUSD", "latencyMsec", "numInputTokens", "numOutputTokens"} {
		cases[`{"transitionName":"a","`+member+`":0.`+strings.Repeat("0", 63)+`}`] = member + " is a number of more than 64 characters"
	}
	for body, problem := range cases {
		wantProblem(t, third(webhook.ReadAnswer([]byte(body))), body, problem)
	}
}

func wantProblem(t *testing.T, err error, body, problem string) {
	t.Helper()
	bad, ok := errors.AsType[*webhook.AnswerError](err)
	if !ok || bad.Problem != problem || err.Error() != "webhook answer: "+problem {
		t.Errorf("%.200s: error %v, want %q", body, err, problem)
	}
}

// malformed are bodies that are not one strict JSON value, for any reader.
var malformed = map[string]string{
	"empty":                   "",
	"blank":                   "  ",
	"cut":                     `{"transitionName":"a","context":"c","consensusReached":false`,
	"cut in a string":         `{"transitionName":"a`,
	"a second value":          `{"transitionName":"a","context":"c","consensusReached":false} {}`,
	"a trailing word":         `{"transitionName":"a","context":"c","consensusReached":false}x`,
	"a trailing comma":        `{"transitionName":"a","context":"c","consensusReached":false,}`,
	"a trailing bracket":      `{"transitionName":"a","context":"c","consensusReached":false}]`,
	"a duplicate":             `{"transitionName":"a","transitionName":"a","context":"c","context":"c","consensusReached":false,"consensusReached":false}`,
	"an escaped duplicate":    `{"transitionName":"a","\u0074ransitionName":"a","context":"c","\u0063ontext":"c","consensusReached":false,"\u0063onsensusReached":false}`,
	"a null duplicate":        `{"transitionName":null,"transitionName":"a","context":null,"context":"c","consensusReached":null,"consensusReached":false}`,
	"a duplicate in metaJson": `{"transitionName":"a","context":"c","consensusReached":false,"metaJson":{"k":1,"k":2}}`,
	"an unknown duplicate":    `{"transitionName":"a","context":"c","consensusReached":false,"other":[[{"x":{"k":1,"k":1}}]]}`,
	"a duplicate in a call":   `{"transitionName":"a","context":"c","consensusReached":false,"toolCalls":[{"name":"x","name":"y"}]}`,
	"no UTF-8":                "{\"transitionName\":\"a\xff\",\"context\":\"c\xff\",\"consensusReached\":false}",
	"a name without UTF-8":    "{\"transitionName\":\"a\",\"context\":\"c\",\"consensusReached\":false,\"\xc3\x28\":1}",
	"a byte order mark":       "\uFEFF" + `{"transitionName":"a","context":"c","consensusReached":false}`,
	"UTF-16":                  "\xfe\xff\x00{\x00}",
	"deep nesting":            `{"transitionName":"a","context":"c","consensusReached":false,"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	"bottomless nesting":      strings.Repeat(`{"a":[`, 80_000),
	"NaN":                     `{"transitionName":"a","context":"c","consensusReached":false,"costUSD":NaN,"margin":NaN}`,
	"Infinity":                `{"transitionName":"a","context":"c","consensusReached":false,"costUSD":Infinity}`,
	"a leading zero":          `{"transitionName":"a","context":"c","consensusReached":false,"costUSD":01}`,
	"a plus":                  `{"transitionName":"a","context":"c","consensusReached":false,"costUSD":+1}`,
	"hexadecimal":             `{"transitionName":"a","context":"c","consensusReached":false,"numInputTokens":0x1}`,
	"single quotes":           `{'transitionName':'a','context':'c','consensusReached':false}`,
	"a comment":               `{"transitionName":"a","context":"c","consensusReached":false/* ok */}`,
	"a control character":     "{\"transitionName\":\"a\x01\",\"context\":\"c\x01\",\"consensusReached\":false}",
	"a name that is none":     `{"transitionName":"a","context":"c","consensusReached":false,1:2}`,
	"fenced":                  "```json\n{\"transitionName\":\"a\",\"context\":\"c\",\"consensusReached\":false}\n```",
}

func TestMalformedAnswers(t *testing.T) {
	r := round(parse(t, machineText))
	for name, body := range malformed {
		_, err1 := webhook.ReadAnswer([]byte(body))
		_, err2 := webhook.ReadConsensus([]byte(body), r)
		_, err3 := webhook.ReadContext([]byte(body))
		for i, err := range []error{err1, err2, err3} {
			bad, ok := errors.AsType[*webhook.AnswerError](err)
			if !ok || !strings.HasPrefix(bad.Problem, "it is not one JSON value: ") {
				t.Errorf("%s, reader %d: error %v", name, i+1, err)
			}
		}
	}
}

// An answer that is refused has still cost what it says.
func TestBrokenAnswerCosts(t *testing.T) {
	want := specialist.Usage{CostUSD: exact.Dollar / 4, LatencyMsec: 5, NumInputTokens: 6, NumOutputTokens: 7, Given: allGiven}
	for _, rest := range []string{``, `,"transitionName":1`, `,"transitionName":"a","reasoning":[]`, `,"transitionName":"a","toolCalls":1`} {
		body := `{"costUSD":0.25,"latencyMsec":5,"numInputTokens":6,"numOutputTokens":7` + rest + `}`
		if a, err := webhook.ReadAnswer([]byte(body)); err == nil || a.Usage != want {
			t.Errorf("%s: usage %+v, error %v", body, a.Usage, err)
		}
		s := answering(t, 200, body)
		if a, err := propose(t, client(t), s.URL); err == nil || a.Usage != want {
			t.Errorf("%s over HTTP: usage %+v, error %v", body, a.Usage, err)
		}
	}
}

// Reading a number exactly takes seconds if it has a million digits, so such
// numbers are not read.
func TestLongNumbers(t *testing.T) {
	r := round(parse(t, machineText))
	number := "0." + strings.Repeat("7", 1_000_000)
	for _, member := range []string{"costUSD", "latencyMsec", "numInputTokens", "numOutputTokens", "margin"} {
		body := `{"transitionName":"a","consensusReached":false,"` + member + `":` + number + `}`
		_, err := webhook.ReadAnswer([]byte(body))
		if member == "margin" {
			_, err = webhook.ReadConsensus([]byte(body), r)
		}
		wantProblem(t, err, body, member+" is a number of more than 64 characters")
	}
	body := `{"transitionName":"a","metaJson":` + number + `}` // somebody else's
	if a, err := webhook.ReadAnswer([]byte(body)); err != nil || string(a.MetaJSON) != number {
		t.Errorf("metaJson of %d bytes, error %v", len(a.MetaJSON), err)
	}
}

func TestReadConsensus(t *testing.T) {
	r := round(parse(t, machineText))
	ann, bot := key.ProposalID(2), key.ProposalID(1)
	with := func(d arbiter.Decision, margin exact.Billionths) arbiter.Decision {
		d.HasMargin, d.Margin = true, margin
		return d
	}
	for body, want := range map[string]arbiter.Decision{
		`{"consensusReached":false}`:                                                                  arbiter.None(""),
		`{"consensusReached":false,"reasoning":"unsure"}`:                                             arbiter.None("unsure"),
		`{"consensusReached":false,"reasoning":null,"winningProposalId":null,"margin":null}`:          arbiter.None(""),
		`{"consensusReached":false,"winningProposalId":"` + ann + `"}`:                                arbiter.None(""),
		`{"consensusReached":false,"winningProposalId":"unknown","margin":-1}`:                        with(arbiter.None(""), -exact.One),
		`{"consensusReached":true,"winningProposalId":"` + ann + `"}`:                                 arbiter.Elect(0, ""),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","reasoning":"ok"}`:                arbiter.Elect(1, "ok"),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","margin":1}`:                      with(arbiter.Elect(1, ""), exact.One),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","margin":0}`:                      with(arbiter.Elect(1, ""), 0),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","margin":0.1234567895}`:           with(arbiter.Elect(1, ""), 123456790),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","winner":0,"rule":4,"weight":99}`: arbiter.Elect(1, ""),
		`{"consensusReached":true,"winningProposalId":"` + bot + `","threshold":0,"scores":{"a":1}}`:  arbiter.Elect(1, ""), // those of the round are in force
	} {
		d, err := webhook.ReadConsensus([]byte(body), r)
		if err != nil || d != want {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", body, d, err, want)
		}
	}
}

func TestReadConsensusRefuses(t *testing.T) {
	r := round(parse(t, machineText))
	bot := key.ProposalID(1)
	cases := map[string]string{
		`{}`:                                  "consensusReached is missing",
		`{"consensusReached":null}`:           "consensusReached is missing",
		`{"ConsensusReached":false}`:          "consensusReached is missing",
		`[true]`:                              "it is not a JSON object",
		`true`:                                "it is not a JSON object",
		`{"winningProposalId":"` + bot + `"}`: "consensusReached is missing",
	}
	for _, value := range wrong("bool") {
		cases[`{"consensusReached":`+value+`}`] = "consensusReached is not true or false"
	}
	for _, member := range []string{"winningProposalId", "reasoning"} {
		for _, value := range wrong("string") {
			cases[`{"consensusReached":false,"`+member+`":`+value+`}`] = member + " is not a string"
		}
	}
	for _, value := range wrong("number") {
		cases[`{"consensusReached":false,"margin":`+value+`}`] = "margin is not a number"
	}
	for _, value := range []string{"1.000000001", "-1.1", "2", "1e400", "-1e400"} {
		cases[`{"consensusReached":true,"winningProposalId":"`+bot+`","margin":`+value+`}`] = "margin is " + value + ", not a number from -1 to 1"
	}
	for body, problem := range cases {
		d, err := webhook.ReadConsensus([]byte(body), r)
		wantProblem(t, err, body, problem)
		if d.Consensus() {
			t.Errorf("%s: refused, and yet %+v", body, d)
		}
	}
}

func TestUnknownWinner(t *testing.T) {
	m := parse(t, machineText)
	other := key
	other.Round++
	for _, id := range []string{"nope", "", other.ProposalID(1), key.ProposalID(3), strings.ToUpper(key.ProposalID(1)), "0", "bot", key.ProposalID(1) + " "} {
		body := `{"consensusReached":true,"winningProposalId":` + strconv.Quote(id) + `}`
		d, err := webhook.ReadConsensus([]byte(body), round(m))
		wantError(t, err, "Winning proposal not found: "+id)
		if !errors.Is(err, arbiter.ErrUnknownWinner) || d.Consensus() {
			t.Errorf("%s: %+v, %#v", body, d, err)
		}
		s := answering(t, 200, body)
		d, err = decide(t, client(t), s.URL)
		wantError(t, err, "Winning proposal not found: "+id)
		if !errors.Is(err, arbiter.ErrUnknownWinner) || d.Consensus() {
			t.Errorf("%s over HTTP: %+v, %#v", body, d, err)
		}
	}
	_, err := webhook.ReadConsensus([]byte(`{"consensusReached":true}`), round(m))
	wantError(t, err, "Winning proposal not found: ")
}

func TestReadContext(t *testing.T) {
	limit := strings.Repeat("x", webhook.MaxContext)
	for body, want := range map[string]string{
		`{"context":"all"}`:                    "all",
		`{"context":""}`:                       "",
		`{"context":"a","other":[1]}`:          "a",
		`{"context":"` + limit + `"}`:          limit,
		`{"context":"\u0041\ud83d\ude00"}`:     "A😀",
		`{"context":"a","Context":"b","c":{}}`: "a",
	} {
		if got, err := webhook.ReadContext([]byte(body)); err != nil || got != want {
			t.Errorf("%.100s: %.100q, %v", body, got, err)
		}
	}
	cases := map[string]string{
		`{}`:                               "context is missing",
		`{"context":null}`:                 "context is missing",
		`{"Context":"a"}`:                  "context is missing",
		`["a"]`:                            "it is not a JSON object",
		`"a"`:                              "it is not a JSON object",
		`{"context":"` + limit + `x"}`:     "context is larger than 262144 bytes",
		`{"context":"` + limit[1:] + `ä"}`: "context is larger than 262144 bytes",
	}
	for _, value := range wrong("string") {
		cases[`{"context":`+value+`}`] = "context is not a string"
	}
	for body, problem := range cases {
		wantProblem(t, third(webhook.ReadContext([]byte(body))), body, problem)
	}
}

// TestReadConsensusExpense: what deciding cost is read as of any answer, also where
// the rest cannot be.
func TestReadConsensusExpense(t *testing.T) {
	for body, reads := range map[string]bool{
		`{"consensusReached":false,"costUSD":0.5,"numInputTokens":7,"model":"m"}`: true,
		`{"consensusReached":1,"costUSD":0.5,"numInputTokens":7,"model":"m"}`:     false,
	} {
		d, err := webhook.ReadConsensus([]byte(body), &arbiter.Round{})
		e := d.Expense
		if (err == nil) != reads || e == nil || e.CostUSD != exact.Dollar/2 || e.NumInputTokens != 7 || e.Model != "m" || !e.Has(specialist.CostGiven|specialist.InputGiven) {
			t.Errorf("%s: %+v, %v", body, e, err)
		}
	}
	if d, err := webhook.ReadConsensus([]byte(`{"consensusReached":false}`), &arbiter.Round{}); d.Expense != nil || err != nil {
		t.Errorf("without a cost: %+v, %v", d.Expense, err)
	}
	if _, err := webhook.ReadConsensus([]byte(`{"consensusReached":false,"costUSD":-1}`), &arbiter.Round{}); err == nil {
		t.Error("a negative cost was read")
	}
}
