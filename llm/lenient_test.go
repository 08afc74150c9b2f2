package llm_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/specialist"
)

// bodies are answers of each API, in the order of ids, that call the tool yes. ID,
// MODEL and USAGE are JSON values.
var bodies = []string{
	`{"id":ID,"model":MODEL,"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"yes","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":USAGE}`,
	`{"id":ID,"type":"message","model":MODEL,"content":[{"type":"tool_use","name":"yes","input":{}}],"stop_reason":"tool_use","usage":USAGE}`,
	`{"responseId":ID,"modelVersion":MODEL,"candidates":[{"content":{"parts":[{"functionCall":{"name":"yes","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`,
}

// usages are how each API names its counts. IN, OUT, CACHED and THOUGHT are JSON
// values.
var usages = []string{
	`{"prompt_tokens":IN,"completion_tokens":OUT,"prompt_tokens_details":{"cached_tokens":CACHED},"completion_tokens_details":{"reasoning_tokens":THOUGHT}}`,
	`{"input_tokens":IN,"output_tokens":OUT,"cache_read_input_tokens":CACHED,"cache_creation":{"ephemeral_1h_input_tokens":THOUGHT}}`,
	`{"promptTokenCount":IN,"candidatesTokenCount":OUT,"cachedContentTokenCount":CACHED,"thoughtsTokenCount":THOUGHT}`,
}

// TestUsageInOtherTypes: an answer that was paid for is had, however its provider
// writes counts and names: counts that can be read are exact, one by one, and the
// others are estimated.
func TestUsageInOtherTypes(t *testing.T) {
	const exactly, guessed = true, false
	for _, c := range []struct {
		name, id, model, usage   string // usage is that of the API if it begins with =, by IN, OUT, CACHED and THOUGHT
		in, out, cached, thought bool
		answered                 string // the model
	}{
		{"as they should be", `"a"`, `"m"`, `=100 10 30 4`, exactly, exactly, exactly, exactly, "m"},
		{"strings", `"a"`, `"m"`, `="100" " 10 " "30" "4"`, exactly, exactly, exactly, exactly, "m"},
		{"decimals", `"a"`, `"m"`, `=100.0 1e1 3.0e1 "4.00"`, exactly, exactly, exactly, exactly, "m"},
		{"numeric names", `7`, `4.5`, `=100 10 30 4`, exactly, exactly, exactly, exactly, "4.5"},
		{"names of no kind", `{"a":1}`, `[true]`, `=100 10 30 4`, exactly, exactly, exactly, exactly, ""},
		{"half of it", `"a"`, `"m"`, `=100 10.5 {} []`, exactly, guessed, guessed, guessed, "m"},
		{"the other half", `"a"`, `"m"`, `=-1 10 null -4`, guessed, exactly, guessed, guessed, "m"},
		{"words", `null`, `null`, `="many" "0x10" "" true`, guessed, guessed, guessed, guessed, ""},
		{"too large", `"a"`, `"m"`, `=1e300 99999999999999999999 1e17 1e999`, guessed, guessed, guessed, guessed, "m"},
		{"a list", `"a"`, `"m"`, `[{"prompt_tokens":1,"input_tokens":1,"promptTokenCount":1}]`, guessed, guessed, guessed, guessed, "m"},
		{"a string", `"a"`, `"m"`, `"100 tokens"`, guessed, guessed, guessed, guessed, "m"},
		{"nothing", `"a"`, `"m"`, `null`, guessed, guessed, guessed, guessed, "m"},
		{"details of no kind", `"a"`, `"m"`, `{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":[30],"completion_tokens_details":"4","input_tokens":100,"output_tokens":10,"cache_creation":9,"promptTokenCount":100,"candidatesTokenCount":10}`,
			exactly, exactly, guessed, guessed, "m"},
	} {
		for i, id := range ids {
			counts := c.usage
			if four, ok := strings.CutPrefix(c.usage, "="); ok {
				f := strings.Split(strings.ReplaceAll(four, `" 10 "`, `"10"`), " ")
				counts = strings.NewReplacer("IN", f[0], "OUT", f[1], "CACHED", f[2], "THOUGHT", f[3]).Replace(usages[i])
			}
			body := "\uFEFF" + strings.NewReplacer("ID", c.id, "MODEL", c.model, "USAGE", counts).Replace(bodies[i]) + "\n"
			s := serve(t, llmtest.Script(llmtest.Reply{Body: body}))
			got, err := ask(t, llm.New(config(s)), id, question())
			if err != nil || len(got.ToolCalls) != 1 || got.ToolCalls[0].Name != "yes" || got.Model != c.answered || len(s.Calls()) != 1 {
				t.Errorf("%s, %s: %+v, %v after %d calls", c.name, id, got, err, len(s.Calls()))
				continue
			}
			u, d := got.Usage, specialist.UsageDetail{}
			if u.Detail != nil {
				d = *u.Detail
			}
			thoughts := d.ReasoningTokens + d.CacheWrite1hTokens // what Anthropic has instead
			in, out := int64(100), int64(10)
			if strings.HasPrefix(id, "anthropic") {
				in += d.CacheReadTokens + d.CacheWrite1hTokens
			} else if strings.HasPrefix(id, "google") {
				out += d.ReasoningTokens
			}
			if exact := u.NumInputTokens == in; exact != c.in || u.NumInputTokens < 20 {
				t.Errorf("%s, %s: %d tokens of input, exact: %t", c.name, id, u.NumInputTokens, c.in)
			}
			if exact := u.NumOutputTokens == out; exact != c.out || u.NumOutputTokens < 3 {
				t.Errorf("%s, %s: %d tokens of output, exact: %t", c.name, id, u.NumOutputTokens, c.out)
			}
			if (d.CacheReadTokens == 30) != c.cached || (thoughts == 4) != c.thought || !c.cached && d.CacheReadTokens != 0 || !c.thought && thoughts != 0 {
				t.Errorf("%s, %s: %+v", c.name, id, d)
			}
			if u.Estimated != !(c.in && c.out) {
				t.Errorf("%s, %s: estimated %t", c.name, id, u.Estimated)
			}
		}
	}
}

// TestHiddenThoughtsAreCharged: where the count of the output cannot be read, what was
// thought and not said is added to the estimate; and a count that is left out beside an
// answer is estimated, not zero.
func TestHiddenThoughtsAreCharged(t *testing.T) {
	for i, id := range ids {
		if i == 1 {
			continue // it counts no thoughts
		}
		counts := strings.NewReplacer("IN", "100", "OUT", `"x"`, "CACHED", "0", "THOUGHT", "5000").Replace(usages[i])
		body := strings.NewReplacer("ID", `"a"`, "MODEL", `"m"`, "USAGE", counts).Replace(bodies[i])
		got, err := ask(t, llm.New(config(serve(t, llmtest.Script(llmtest.Reply{Body: body})))), id, question())
		if u := got.Usage; err != nil || u.NumOutputTokens <= 5000 || u.NumOutputTokens > 5100 || !u.Estimated {
			t.Errorf("%s: %+v, %v", id, u, err)
		}
	}
	body := strings.NewReplacer("ID", `"a"`, "MODEL", `"m"`, "USAGE", `{"promptTokenCount":100}`).Replace(bodies[2])
	got, err := ask(t, llm.New(config(serve(t, llmtest.Script(llmtest.Reply{Body: body})))), ids[2], question())
	if u := got.Usage; err != nil || u.NumOutputTokens == 0 || !u.Estimated {
		t.Errorf("left out: %+v, %v", u, err)
	}
}

// TestThoughtsBesideTheAnswer: servers that speak OpenAI's format and leave thoughts out
// of the completion have them in the total, and are paid for them.
func TestThoughtsBesideTheAnswer(t *testing.T) {
	for usage, want := range map[string]int64{
		`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`:                              103, // as xAI
		`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135}`:                                                                                  103, // as Google
		`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`:                            103, // as OpenAI
		`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":175,"completion_tokens_details":{"reasoning_tokens":94}}`:                            103, // it is of something else
		`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":5}`:                                                                                  103,
		`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":null}`:                                                                               103,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":103,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`:           103,
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":9223372036854775807,"completion_tokens_details":{"reasoning_tokens":94}}`:               0,
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":94,"completion_tokens_details":{"reasoning_tokens":94,"accepted_prediction_tokens":0}}`: 94,
	} {
		s := serve(t, llmtest.Script(llmtest.Reply{Body: strings.NewReplacer("ID", `"a"`, "MODEL", `"m"`, "USAGE", usage).Replace(bodies[0])}))
		got, err := ask(t, llm.New(config(s)), ids[0], question())
		if err != nil || got.Usage.NumOutputTokens != want || got.Usage.Estimated {
			t.Errorf("%s: %+v, %v", usage, got.Usage, err)
		}
	}
}

// TestCostInQuotes: a cost is exact as a string too, and what is none is none.
func TestCostInQuotes(t *testing.T) {
	for cost, want := range map[string]int64{`"0.000123456789"`: 123_456_789, `1.5e-05`: 15_000_000, `0`: 0, `"free"`: -1, `null`: -1, `-1`: -1, `{}`: -1, `"NaN"`: -1} {
		body := strings.NewReplacer("ID", `"a"`, "MODEL", `"m"`, "USAGE", `{"prompt_tokens":1,"completion_tokens":1,"cost":`+cost+`}`).Replace(bodies[0])
		got, err := ask(t, llm.New(config(serve(t, llmtest.Script(llmtest.Reply{Body: body})))), ids[0], question())
		if u := got.Usage; err != nil || u.Has(specialist.CostGiven) != (want >= 0) || want >= 0 && int64(u.CostUSD) != want {
			t.Errorf("%s: %+v, %v", cost, u, err)
		}
	}
}

// TestUnreadableLogProbs: where the probability of one token cannot be read none
// counts, and the answer is had.
func TestUnreadableLogProbs(t *testing.T) {
	for _, p := range []string{`"-0.1"`, `null`, `{}`, `-1e999`} {
		body := `{"choices":[{"message":{"content":"ab"},"logprobs":{"content":[{"token":"a","logprob":-0.1},{"token":"b","logprob":` + p + `},{"token":"c","logprob":-0.1}]}}]}`
		got, err := ask(t, llm.New(config(serve(t, llmtest.Script(llmtest.Reply{Body: body})))), ids[0], question())
		if err != nil || got.Text != "ab" || got.LogProbs != nil {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
	}
}
