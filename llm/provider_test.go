package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// The keys of the tests. None is to be seen anywhere.
var keys = map[string]string{"OPENAI_API_KEY": "sk-openai-4711", "ANTHROPIC_API_KEY": "sk-ant-4712", "GEMINI_API_KEY": "AIza-4713", "OPENROUTER_API_TOKEN": "sk-or-4714"}

func variables(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func serve(t testing.TB, answer func(int, llmtest.Call) llmtest.Reply) *llmtest.Server {
	t.Helper()
	s, err := llmtest.Start(answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// endpoints puts every provider on one server.
func endpoints(s *llmtest.Server) map[string]string {
	return map[string]string{"openai": s.URL, "anthropic": s.URL, "google": s.URL, "openrouter": s.URL, "ollama": s.URL}
}

// config is that of a client whose providers are all on one server, with every
// key but OpenRouter's, and without waits.
func config(s *llmtest.Server) llm.Config {
	vars := map[string]string{}
	for name, key := range keys {
		if name != "OPENROUTER_API_TOKEN" {
			vars[name] = key
		}
	}
	return llm.Config{Lookup: variables(vars), Endpoints: endpoints(s), Jitter: func(time.Duration) time.Duration { return 0 }}
}

func ask(t testing.TB, c *llm.Client, id string, r *llm.Request) (llm.Response, error) {
	t.Helper()
	m, err := c.Model(id, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Ask(t.Context(), r)
}

// question is a request with two tools.
func question() *llm.Request {
	return &llm.Request{System: "be brief", User: "which?", Purpose: llm.Ask, Tools: []llm.Tool{
		{Name: "yes", Description: "do it", Parameters: []byte(`{"type":"object","properties":{}}`)},
		{Name: "no", Parameters: []byte(`{"type":"object","properties":{"why":{"type":"string"}}}`)},
	}}
}

// ids are a model of each API.
var ids = []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-flash"}

// usage are the counts, all given.
func usage(in, out int64) specialist.Usage {
	return specialist.Usage{NumInputTokens: in, NumOutputTokens: out, Given: specialist.InputGiven | specialist.OutputGiven}
}

func sameUsage(a, b specialist.Usage) bool {
	da, db := a.Detail, b.Detail
	a.Detail, b.Detail = nil, nil
	return a == b && (da == nil) == (db == nil) && (da == nil || *da == *db)
}

// TestAnswers: every API says the same in its own words.
func TestAnswers(t *testing.T) {
	detail := func(u specialist.Usage, d specialist.UsageDetail) specialist.Usage { u.Detail = &d; return u }
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Response // Model and ID aside
	}{
		{"a call", llmtest.Reply{Tools: calls("no", `{"why":"late"}`)},
			llm.Response{ToolCalls: []llm.ToolCall{{Name: "no", Arguments: `{"why":"late"}`}}, Finish: llm.Called, Usage: usage(100, 10)}},
		{"a call with a text", llmtest.Reply{Text: "because", Tools: calls("yes", `{}`)},
			llm.Response{Text: "because", ToolCalls: []llm.ToolCall{{Name: "yes", Arguments: `{}`}}, Finish: llm.Called, Usage: usage(100, 10)}},
		{"parallel calls", llmtest.Reply{Tools: calls("yes", `{}`, "no", `{}`)},
			llm.Response{ToolCalls: []llm.ToolCall{{Name: "yes", Arguments: `{}`}, {Name: "no", Arguments: `{}`}}, Finish: llm.Called, Usage: usage(100, 10)}},
		{"a text", llmtest.Reply{Text: "ich weiß nicht"}, llm.Response{Text: "ich weiß nicht", Finish: llm.Stopped, Usage: usage(100, 10)}},
		{"cut off", llmtest.Reply{Text: "I th", Finish: "length"}, llm.Response{Text: "I th", Finish: llm.TooLong, Usage: usage(100, 10)}},
		{"cached input", llmtest.Reply{Text: "x", Usage: llmtest.Usage{Input: 1000, Output: 5, Cached: 600}},
			llm.Response{Text: "x", Finish: llm.Stopped, Usage: detail(usage(1000, 5), specialist.UsageDetail{CacheReadTokens: 600})}},
	} {
		for _, id := range ids {
			s := serve(t, llmtest.Script(c.reply))
			got, err := ask(t, llm.New(config(s)), id, question())
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, id, err)
				continue
			}
			want := c.want
			if strings.HasPrefix(id, "google") && want.Finish == llm.Called {
				want.Finish = llm.Stopped // it says so
			}
			if got.Text != want.Text || !slices.Equal(got.ToolCalls, want.ToolCalls) || got.Finish != want.Finish || !sameUsage(got.Usage, want.Usage) || got.ID == "" {
				t.Errorf("%s, %s:\n%+v, want\n%+v", c.name, id, got, want)
			}
			call := s.Calls()[0]
			_, model, _ := strings.Cut(id, "/")
			if call.Model != model || call.System != "be brief" || call.User != "which?" || !slices.Equal(call.Tools, []string{"yes", "no"}) || got.Model != model {
				t.Errorf("%s, %s: the server was asked %+v", c.name, id, call)
			}
		}
	}
}

// TestRefusals: a refusal and a filter are told from an answer.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reply llmtest.Reply
		want  map[string]llm.Finish
	}{
		{llmtest.Reply{Refusal: "I cannot help with that."}, map[string]llm.Finish{ids[0]: llm.Refused, ids[1]: llm.Refused, ids[2]: llm.Filtered}},
		{llmtest.Reply{Text: "Well", Finish: "content_filter"}, map[string]llm.Finish{ids[0]: llm.Filtered, ids[1]: llm.Refused, ids[2]: llm.Filtered}},
	} {
		for id, want := range c.want {
			got, err := ask(t, llm.New(config(serve(t, llmtest.Script(c.reply)))), id, question())
			if err != nil || got.Finish != want || !sameUsage(got.Usage, usage(100, 10)) {
				t.Errorf("%s: %+v, %v, want %s", id, got, err, want)
			}
		}
	}
}

// TestBrokenOffBehindARouter: an error in the place of an answer is one, even if tokens
// were counted, and is asked again if waiting may mend it.
func TestBrokenOffBehindARouter(t *testing.T) {
	broken := `{"model":"m","choices":[{"finish_reason":"error","error":{"code":502,"message":"overloaded"},"message":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":50,"completion_tokens":3}}`
	s := serve(t, llmtest.Script(llmtest.Reply{Body: broken}, llmtest.Reply{Text: "fine"}))
	got, err := ask(t, llm.New(config(s)), ids[0], question())
	if err != nil || got.Text != "fine" || !sameUsage(got.Usage, usage(150, 13).WithCalls(2, 0)) {
		t.Errorf("%+v, %v", got, err)
	}
	s = serve(t, llmtest.Script(llmtest.Reply{Body: strings.Replace(broken, "502", "400", 1)}))
	if _, err = ask(t, llm.New(config(s)), ids[0], question()); err == nil || err.Error() != "LLM API error (400): overloaded" || len(s.Calls()) != 1 {
		t.Errorf("%v after %d calls", err, len(s.Calls()))
	}
}

// TestExactUsage: reasoning and cost are kept as they are told.
func TestExactUsage(t *testing.T) {
	reply := llmtest.Reply{Text: "x", Usage: llmtest.Usage{Input: 50, Output: 30, Reasoning: 20, Cost: "0.000123456789"}}
	got, err := ask(t, llm.New(config(serve(t, llmtest.Script(reply)))), ids[0], question())
	want := usage(50, 30).WithCost(123_456_789)
	want.Detail = &specialist.UsageDetail{ReasoningTokens: 20}
	if err != nil || !sameUsage(got.Usage, want) {
		t.Errorf("%+v, %v, want %+v", got.Usage, err, want)
	}
	got, err = ask(t, llm.New(config(serve(t, llmtest.Script(reply)))), ids[2], question())
	want = usage(50, 30)
	want.Detail = &specialist.UsageDetail{ReasoningTokens: 20}
	if err != nil || !sameUsage(got.Usage, want) {
		t.Errorf("Gemini's thoughts: %+v, %v, want %+v", got.Usage, err, want)
	}
}

// TestMissingUsage: what is not counted is estimated, and marked so.
func TestMissingUsage(t *testing.T) {
	for _, id := range ids {
		got, err := ask(t, llm.New(config(serve(t, llmtest.Script(llmtest.Reply{Text: "twelve chars", NoUsage: true})))), id, question())
		if u := got.Usage; err != nil || !u.Estimated || u.NumInputTokens < 20 || u.NumOutputTokens < 8 || !u.Has(specialist.InputGiven|specialist.OutputGiven) {
			t.Errorf("%s: %+v, %v", id, got.Usage, err)
		}
	}
}

// TestFailures: what a provider does wrong, how often it is asked, and what is
// said of it.
func TestFailures(t *testing.T) {
	ok := llmtest.Reply{Text: "fine"}
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		calls int    // with a good answer after the first
		err   string // part of it, if there never is one; "" if the good answer is had
	}{
		{"too many requests", llmtest.Reply{Status: 429, Body: `{"error":{"message":"slow down"}}`, RetryAfter: "0"}, 2, ""},
		{"server error", llmtest.Reply{Status: 500, Body: `oops`}, 2, ""},
		{"overloaded", llmtest.Reply{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, 2, ""},
		{"unavailable", llmtest.Reply{Status: 503, Body: `x`}, 2, ""},
		{"timeout", llmtest.Reply{Status: 408, Body: `x`}, 2, ""},
		{"broken connection", llmtest.Reply{Reset: true}, 2, ""},
		{"truncated body", llmtest.Reply{Text: "a text that is cut", Truncate: true}, 2, ""},
		{"no money", llmtest.Reply{Status: 429, Body: `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`}, 1, "LLM API error (429): {"},
		{"wrong key", llmtest.Reply{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: KEY"}}`}, 1, `LLM API error (401): {"error":{"message":"Incorrect API key provided: [REDACTED]"}}`},
		{"forbidden", llmtest.Reply{Status: 403, Body: `no`}, 1, "LLM API error (403): no"},
		{"unknown model", llmtest.Reply{Status: 404, Body: `{"error":{"message":"The model does not exist"}}`}, 1, "LLM API error (404): "},
		{"bad request", llmtest.Reply{Status: 400, Body: `{"error":{"message":"context length exceeded"}}`}, 1, "LLM API error (400): "},
		{"redirect", llmtest.Reply{Status: 307, Body: `elsewhere`}, 1, "LLM API error (307): elsewhere"},
		{"malformed JSON", llmtest.Reply{Body: `{"choices": [`}, 1, `Failed to parse LLM response as JSON: {"choices": [`},
		{"HTML", llmtest.Reply{Body: `<html>login</html>`}, 1, `Failed to parse LLM response as JSON: <html>login</html>`},
		{"nothing in it", llmtest.Reply{Body: `{}`}, 1, "LLM returned no choices"},
		{"too large", llmtest.Reply{Text: strings.Repeat("x", 2<<20)}, 1, "the answer is larger than 1048576 bytes"},
	} {
		for _, id := range ids {
			reply := c.reply
			provider, _, _ := strings.Cut(id, "/")
			key := keys[map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}[provider]]
			reply.Body = strings.ReplaceAll(reply.Body, "KEY", key)
			s := serve(t, llmtest.Script(reply, ok))
			got, err := ask(t, llm.New(config(s)), id, question())
			switch {
			case c.err == "" && (err != nil || got.Text != "fine"):
				t.Errorf("%s, %s: %+v, %v", c.name, id, got, err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%s, %s: %v, want %s", c.name, id, err, c.err)
			}
			if n := len(s.Calls()); n != c.calls {
				t.Errorf("%s, %s: %d calls, want %d", c.name, id, n, c.calls)
			}
			for _, secret := range keys {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %s: the error shows a key: %v", c.name, id, err)
				}
			}
		}
	}
}

// TestErrorInSuccess: some report a failure with status 200.
func TestErrorInSuccess(t *testing.T) {
	for _, c := range []struct {
		body, err string
		calls     int
	}{
		{`{"error":{"code":502,"message":"upstream is down"}}`, "", 2},
		{`{"error":{"code":"429","message":"slow"}}`, "", 2},
		{`{"error":{"code":402,"message":"no credits"}}`, "LLM API error (402): no credits", 1},
		{`{"error":"model is not loaded"}`, "LLM API error (0): model is not loaded", 1},
	} {
		s := serve(t, llmtest.Script(llmtest.Reply{Body: c.body}, llmtest.Reply{Text: "fine"}))
		_, err := ask(t, llm.New(config(s)), ids[0], question())
		if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) || len(s.Calls()) != c.calls {
			t.Errorf("%s: %v after %d calls, want %q after %d", c.body, err, len(s.Calls()), c.err, c.calls)
		}
	}
}

// TestThreeAttempts: a provider that stays down is asked three times.
func TestThreeAttempts(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 500, Body: "down"}))
	_, err := ask(t, llm.New(config(s)), ids[0], question())
	if status, ok := errors.AsType[*llm.StatusError](err); !ok || status.Status != 500 || status.Body != "down" || len(s.Calls()) != 3 {
		t.Errorf("%v after %d calls", err, len(s.Calls()))
	}
}

// TestLostAnswersAreCharged: an answer that broke off was made.
func TestLostAnswersAreCharged(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "cut", Truncate: true}, llmtest.Reply{Text: "whole"}))
	got, err := ask(t, llm.New(config(s)), ids[0], question())
	if u := got.Usage; err != nil || !u.Estimated || u.NumOutputTokens != 10+llm.DefaultMaxTokens || u.NumInputTokens <= 100 {
		t.Errorf("%+v, %v", got.Usage, err)
	}
}

// TestCutRefusalIsCharged: what a provider refused is free if that is all it said. Of a
// refusal that breaks off nobody knows whether it was one.
func TestCutRefusalIsCharged(t *testing.T) {
	for name, c := range map[string]struct {
		refusal llmtest.Reply
		charged bool
	}{
		"whole":     {llmtest.Reply{Status: 500, Body: "down"}, false},
		"cut":       {llmtest.Reply{Status: 500, Body: "down", Truncate: true}, true},
		"400, cut":  {llmtest.Reply{Status: 400, Body: "refused", Truncate: true}, true},
		"too large": {llmtest.Reply{Status: 500, Body: strings.Repeat("x", webhook.MaxAnswer+1)}, false},
	} {
		s := serve(t, llmtest.Script(c.refusal))
		got, err := ask(t, llm.New(config(s)), ids[0], question())
		u, calls := got.Usage, int64(len(s.Calls()))
		charged := u.NumInputTokens > 0 && u.NumOutputTokens == calls*llm.DefaultMaxTokens && u.Estimated && u.Billed() == calls
		free := u == specialist.Usage{}.WithCalls(calls, calls)
		if err == nil || calls == 0 || charged != c.charged || free == c.charged {
			t.Errorf("%s: %d calls cost %+v, %v; want them charged: %t", name, calls, u, err, c.charged)
		}
	}
}

// TestUnsupportedParameters: what a model does not take is dropped or renamed,
// once, and remembered.
func TestUnsupportedParameters(t *testing.T) {
	has := func(c llmtest.Call, path string) bool { _, ok := c.Body[path]; return ok }
	refuse := func(text string) llmtest.Reply {
		return llmtest.Reply{Status: 400, Body: `{"error":{"message":"` + text + `"}}`}
	}
	s := serve(t, func(_ int, c llmtest.Call) llmtest.Reply {
		switch {
		case has(c, "max_tokens"):
			return refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		case has(c, "temperature"):
			return refuse("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.")
		case c.Body["tool_choice"] == "required":
			return refuse("tool_choice 'required' is not supported")
		case has(c, "parallel_tool_calls"):
			return refuse("Unrecognized request argument supplied: parallel_tool_calls")
		}
		return llmtest.Reply{Tools: calls("yes", "{}")}
	})
	client := llm.New(config(s))
	for range 2 {
		if got, err := ask(t, client, "openai/o4-mini", question()); err != nil || len(got.ToolCalls) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	made := s.Calls()
	if len(made) != 6 {
		t.Fatalf("%d calls, want 5 and then 1", len(made))
	}
	last := made[5]
	if !has(last, "max_completion_tokens") || has(last, "temperature") || last.Body["tool_choice"] != "auto" || has(last, "parallel_tool_calls") {
		t.Errorf("the last call has %v", last.Body)
	}
	s = serve(t, llmtest.Script(refuse("temperature is not supported")))
	_, err := ask(t, llm.New(config(s)), ids[1], question())
	if err == nil || len(s.Calls()) != 2 {
		t.Errorf("%v after %d calls: it is dropped once", err, len(s.Calls()))
	}
}

// TestRouting: which variables lead a modelId where, under which name and key.
func TestRouting(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "x"}))
	host := strings.TrimPrefix(s.URL, "http://")
	for _, c := range []struct {
		id, provider string
		vars         string // names of keys, or name=value
		want         string // api model key, or part of the error
	}{
		{"openai/gpt-4o", "", "OPENAI_API_KEY", "chat gpt-4o sk-openai-4711"},
		{"anthropic/claude-x", "", "ANTHROPIC_API_KEY", "messages claude-x sk-ant-4712"},
		{"google/gemini-x", "", "GEMINI_API_KEY", "generate gemini-x AIza-4713"},
		{"gemini/gemini-x", "", "GEMINI_API_KEY", "generate gemini-x AIza-4713"},
		{"openai/gpt-4o", "", "OPENAI_API_KEY OPENROUTER_API_TOKEN", "chat openai/gpt-4o sk-or-4714"},
		{"openai/gpt-4o", "openai", "OPENAI_API_KEY OPENROUTER_API_TOKEN", "chat gpt-4o sk-openai-4711"},
		{"gpt-4o", "openai", "OPENAI_API_KEY", "chat gpt-4o sk-openai-4711"},
		{"claude-x", "anthropic", "ANTHROPIC_API_KEY", "messages claude-x sk-ant-4712"},
		{"anthropic/claude-x", "openrouter", "OPENROUTER_API_TOKEN ANTHROPIC_API_KEY", "chat anthropic/claude-x sk-or-4714"},
		{"openai/gpt-4o", "", "DIALAI_LLM_BASE_URL=" + s.URL + "/v1/ OPENAI_API_KEY", "chat openai/gpt-4o "},
		{"my-model", "", "DIALAI_LLM_BASE_URL=" + s.URL + " OPENROUTER_API_TOKEN", "chat my-model sk-or-4714"},
		{"my-model", "compatible", "DIALAI_LLM_BASE_URL=" + s.URL, "chat my-model "},
		{"ollama/llama3.2:3b", "", "OLLAMA_HOST=" + host, "chat llama3.2:3b "},
		{"hf.co/x/y", "ollama", "OLLAMA_HOST=" + s.URL, "chat hf.co/x/y "},
		{"openai/gpt-4o", "", "", "No LLM API token configured. Set OPENROUTER_API_TOKEN environment variable. Or set OPENAI_API_KEY, which is enough for \"openai/gpt-4o\"."},
		{"ollama/x", "", "", "environment variable. Or set OLLAMA_HOST, which is enough for \"ollama/x\"."},
		{"gpt-4o-mini", "", "OPENAI_API_KEY", `No LLM API token configured. Set OPENROUTER_API_TOKEN environment variable. Or write "openai/gpt-4o-mini", since OPENAI_API_KEY is set.`},
		{"gpt-4o-mini", "", "", "No LLM API token configured. Set OPENROUTER_API_TOKEN environment variable."},
		{"openrouter/auto", "", "", "No LLM API token configured. Set OPENROUTER_API_TOKEN environment variable."},
		{"mistral/large", "", "OPENAI_API_KEY", "No LLM API token configured. Set OPENROUTER_API_TOKEN environment variable."},
		{"claude-x", "anthropic", "OPENAI_API_KEY", "No LLM API token configured. Set ANTHROPIC_API_KEY environment variable."},
		{"x", "", "DIALAI_LLM_BASE_URL=localhost:1234", "DIALAI_LLM_BASE_URL is not an address that can be asked; write for example http://localhost:1234/v1"},
		{"x", "", "DIALAI_LLM_BASE_URL=http://me:secret@localhost:1234/v1", "DIALAI_LLM_BASE_URL is not an address that can be asked"},
		{"x", "", "DIALAI_LLM_BASE_URL=http://localhost:1234/v1?api_key=secret", "DIALAI_LLM_BASE_URL is not an address that can be asked; write for example http://localhost:1234/v1, without user, password or query"},
		{"x", "", "DIALAI_LLM_BASE_URL=http://localhost:1234/v1#x", "DIALAI_LLM_BASE_URL is not an address that can be asked"},
		{"ollama/x", "", "OLLAMA_HOST=ftp://localhost", "OLLAMA_HOST is not an address that can be asked"},
		{"llama", "ollama", "", `provider "ollama" is at OLLAMA_HOST, which is not set`},
		{"x", "compatible", "", `provider "compatible" is at DIALAI_LLM_BASE_URL, which is not set`},
	} {
		vars, places := map[string]string{}, endpoints(s)
		delete(places, "ollama")
		for _, v := range strings.Fields(c.vars) {
			name, value, given := strings.Cut(v, "=")
			if vars[name] = value; !given {
				vars[name] = keys[name]
			}
		}
		m, err := llm.New(llm.Config{Lookup: variables(vars), Endpoints: places}).Model(c.id, c.provider)
		if err != nil {
			t.Fatal(err)
		}
		before := len(s.Calls())
		_, err = m.Ask(t.Context(), &llm.Request{User: "x"})
		got := fmt.Sprint(err)
		if made := s.Calls(); len(made) > before {
			last := made[len(made)-1]
			got = last.API + " " + last.Model + " " + last.Key
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s at %q with %s: %s, want %s", c.id, c.provider, c.vars, got, c.want)
		}
	}
}

// TestModelIDs: what a modelId may not be is said before anybody is asked.
func TestModelIDs(t *testing.T) {
	for id, want := range map[string]string{
		"":                          `modelId "" names no model`,
		"[tools=no]":                `modelId "[tools=no]" names no model`,
		"x[tools=no":                `modelId "x[tools=no": the flags have no end; write for example x[tools=no]`,
		"x[tool=no]":                `modelId "x[tool=no]": the flag "tool=no" is none of tools=no and schema=no`,
		"x[schema=no]":              `modelId "x[schema=no]": schema=no needs tools=no, since tools come first`,
		"x[tools=no,schema=no]":     "",
		"openai/x [tools=no]":       "",
		"x[tools=yes, schema=yes]":  "",
		"x[tools=no,schema=no,k=v]": `modelId "x[tools=no,schema=no,k=v]": the flag "k=v" is none of tools=no and schema=no`,
	} {
		_, err := llm.New(llm.Config{}).Model(id, "")
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
	key := "sk-" + "ant-api03-q7Rt2XvK9mLpW4sZ8bNdF6hJ1cYgUeA3oTiVxBkQ5"
	_, err := llm.New(llm.Config{}).Model(key, "")
	if err == nil || strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "keys belong into the environment") {
		t.Errorf("a key as a modelId: %v", err)
	}
	_, err = llm.New(llm.Config{}).Model("x", "azure")
	if want := `provider "azure" is not one of compatible, openrouter, openai, anthropic, google, ollama`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPrivateAddresses: only an address that the operator names may be private.
func TestPrivateAddresses(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "x"}))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := webhook.NewOutbound(webhook.Policy{}.Allowing(u), nil)
	if _, err := other.Target("http://127.0.0.1:1/x"); err == nil {
		t.Error("to allow one port of a host allows another")
	}
	if _, err := webhook.NewOutbound(webhook.Policy{}, nil).Target(s.URL); err == nil {
		t.Error("a loopback address is allowed that nobody named")
	}
	c := llm.New(llm.Config{Lookup: variables(map[string]string{"DIALAI_LLM_BASE_URL": "ftp://example.com"})})
	m, _ := c.Model("x", "")
	if _, err := m.Ask(t.Context(), &llm.Request{}); err == nil || !strings.Contains(err.Error(), "DIALAI_LLM_BASE_URL is not an address") {
		t.Errorf("an address that is none: %v", err)
	}
}

// TestCancelled: an ask returns as soon as nobody waits for it.
func TestCancelled(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "x", Delay: time.Hour}))
	m, err := llm.New(config(s)).Model(ids[0], "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := m.Ask(ctx, question()); done <- err }()
	for len(s.Calls()) == 0 {
		select {
		case err := <-done:
			t.Fatal(err)
		default:
		}
	}
	start := time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %s to give up", d)
	}
}

// calls are calls of tools: names and arguments in turns.
func calls(pairs ...string) (list []llmtest.Tool) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, llmtest.Tool{Name: pairs[i], Args: pairs[i+1]})
	}
	return list
}

// TestKeysAreTrimmed: a key as a file of variables leaves it behind is that key, and
// blanks are none.
func TestKeysAreTrimmed(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "fine"}))
	for value, want := range map[string]string{"sk-openai-4711\r\n": "", " \t": "No LLM API token configured."} {
		client := llm.New(llm.Config{Lookup: variables(map[string]string{"OPENAI_API_KEY": value}), Endpoints: endpoints(s)})
		m, err := client.Model("openai/gpt-4o", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Ask(t.Context(), &llm.Request{User: "x"})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if calls := s.Calls(); len(calls) != 1 || calls[0].Key != "sk-openai-4711" {
		t.Errorf("asked by %+v", calls)
	}
}
