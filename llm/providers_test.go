package llm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A providerCase is one thing that a provider or a model does, in whatever format.
type providerCase struct {
	name    string
	flags   string // of the modelId
	replies []llmtest.Reply
	want    string // the transition; "" if the ask fails
	err     string // part of what the log then says
	calls   int64
	free    int64 // calls that are not charged for
	guessed bool  // what it cost is an estimate
	model   string
	chat    bool // only chat completions can say that: arguments that are no JSON
}

// bad is a model that says the same three times.
func bad(name string, r llmtest.Reply, err string) providerCase {
	return providerCase{name: name, replies: []llmtest.Reply{r}, err: err, calls: 3}
}

const unparsed = "Failed to parse LLM proposer response: "

func providerCases() []providerCase {
	pay := llmtest.Reply{Text: "proven", Tools: calls("pay", "{}")}
	tool := func(pairs ...string) llmtest.Reply { return llmtest.Reply{Tools: calls(pairs...)} }
	status := func(code int, body string) llmtest.Reply {
		return llmtest.Reply{Status: code, Body: body, RetryAfter: "0"}
	}
	once := func(name string, first llmtest.Reply, free int64, guessed bool) providerCase {
		return providerCase{name: name, replies: []llmtest.Reply{first, pay}, want: "pay", calls: 2, free: free, guessed: guessed}
	}
	mended := func(name string, first llmtest.Reply) providerCase {
		return once(name+", then mended", first, 0, false)
	}
	return []providerCase{
		{name: "success", replies: []llmtest.Reply{pay}, want: "pay", calls: 1},
		{name: "success as JSON", flags: "[tools=no]", replies: []llmtest.Reply{{Text: `{"transitionName":"pay","reasoning":"x"}`}}, want: "pay", calls: 1},
		{name: "success as prompted JSON", flags: "[tools=no,schema=no]", replies: []llmtest.Reply{{Text: "```json\n{\"transitionName\":\"cut\",\"metaJson\":{\"amount\":2}}\n```"}}, want: "cut", calls: 1},
		{name: "tool call with arguments", replies: []llmtest.Reply{tool("cut", `{"amount":3}`)}, want: "cut", calls: 1},
		bad("parallel tool calls", tool("pay", "{}", "cut", `{"amount":3}`), unparsed+"pay({}), cut("),
		mended("parallel tool calls", tool("pay", "{}", "pay", "{}")),
		{name: "refusal", replies: []llmtest.Reply{{Refusal: "I will not."}}, err: unparsed, calls: 1},
		bad("length stop", llmtest.Reply{Text: "I th", Finish: "length"}, unparsed+"I th"),
		mended("length stop", llmtest.Reply{Text: "I th", Finish: "length"}),
		{name: "content filter", replies: []llmtest.Reply{{Finish: "content_filter"}}, err: unparsed + "no text, the model was stopped: ", calls: 1},
		once("429 with Retry-After", status(429, `{"error":{"message":"slow down"}}`), 1, false),
		once("500", status(500, "oops"), 1, false),
		once("529", status(529, `{"error":{"message":"Overloaded"}}`), 1, false),
		{name: "500 for good", replies: []llmtest.Reply{status(500, "oops")}, err: "LLM API error (500): oops", calls: 3, free: 3},
		{name: "malformed JSON", replies: []llmtest.Reply{{Body: `{"choices": [`}}, err: "Failed to parse LLM response as JSON: {", calls: 1, guessed: true},
		once("truncated body", llmtest.Reply{Text: "half of it", Truncate: true}, 0, true),
		once("slow body", llmtest.Reply{Text: "half of it", Slow: time.Hour}, 0, true),
		once("connection reset", llmtest.Reply{Reset: true}, 0, true),
		{name: "wrong model", replies: []llmtest.Reply{{Model: "gpt-5.4", Tools: calls("pay", "{}")}}, want: "pay", calls: 1, model: "gpt-5.4"},
		{name: "missing usage", replies: []llmtest.Reply{{NoUsage: true, Tools: calls("pay", "{}")}}, want: "pay", calls: 1, guessed: true},

		{name: "wrong key", replies: []llmtest.Reply{status(401, `{"error":"invalid key KEY"}`)}, err: `LLM API error (401): {"error":"invalid key [REDACTED]"}`, calls: 1, free: 1},
		{name: "unknown model", replies: []llmtest.Reply{status(404, `{"error":"no such model"}`)}, err: "LLM API error (404): ", calls: 1, free: 1},
		{name: "empty account", replies: []llmtest.Reply{status(429, `{"error":{"code":"insufficient_quota"}}`)}, err: "LLM API error (429): ", calls: 1, free: 1},
		bad("prose", llmtest.Reply{Text: "I would pay."}, unparsed+"I would pay."),
		mended("prose", llmtest.Reply{Text: "I would pay."}),
		bad("another language", llmtest.Reply{Text: "支付吧"}, unparsed+"支付吧"),
		mended("another language", llmtest.Reply{Text: "支付吧"}),
		{name: "two answers as JSON", flags: "[tools=no]", replies: []llmtest.Reply{{Text: `{"transitionName":"pay"}{"transitionName":"cut"}`}}, err: unparsed + `{"transitionName":"pay"}{`, calls: 3},
		bad("a transition of another state", tool("reopen", "{}"), `Tool call "reopen" does not match any transition from state "open". Available: pay, cut, ask again?`),
		mended("a transition of another state", tool("reopen", "{}")),
		bad("arguments that break the schema", tool("cut", `{"amount":-1}`), unparsed+`cut({"amount":-1})`),
		mended("arguments that break the schema", tool("cut", `{"amount":-1}`)),
		{name: "arguments that are no JSON", replies: []llmtest.Reply{tool("cut", `{"amount": 3`)}, err: unparsed + "cut(", calls: 3, chat: true},
		{name: "1 MiB of text", replies: []llmtest.Reply{{Text: strings.Repeat("x", 1<<20)}}, err: "the answer is larger than 1048576 bytes", calls: 1, guessed: true},
		bad("65 KiB of arguments", tool("pay", `{"a":"`+strings.Repeat("x", 65<<10)+`"}`), unparsed+`{"a":"xxx`),
		mended("65 KiB of arguments", tool("pay", `{"a":"`+strings.Repeat("x", 65<<10)+`"}`)),
		bad("nearly 1 MiB of text", llmtest.Reply{Text: strings.Repeat("x", 900<<10)}, unparsed+"xxx"),
	}
}

// TestEveryProvider plays every case in the format of each provider, through the
// whole engine: it gets its documented error or is mended, it is recorded and charged
// for, the round goes on with the others, and no key is to be seen anywhere.
func TestEveryProvider(t *testing.T) {
	for i, id := range []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-5", "google/gemini-2.5-flash"} { // all of them have a price
		variable := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}[i]
		for _, c := range providerCases() {
			provider, _, _ := strings.Cut(id, "/")
			if c.chat && provider != "openai" {
				continue
			}
			t.Run(provider+"/"+c.name, func(t *testing.T) { c.run(t, id, keys[variable]) })
		}
	}
}

func (c *providerCase) run(t *testing.T, id, key string) {
	replies := make([]llmtest.Reply, len(c.replies))
	for i, r := range c.replies {
		r.Body = strings.ReplaceAll(r.Body, "KEY", key)
		replies[i] = r
	}
	s := serve(t, llmtest.Script(replies...))
	timeout := time.Minute // a busy machine is no reason to try again
	if replies[0].Slow > 0 {
		timeout = 300 * time.Millisecond
	}
	got := decide(t, s, id+c.flags, timeout)
	if got.transition != c.want || !strings.Contains(got.failure, c.err) || (c.err == "") != (got.failure == "") {
		t.Errorf("proposed %q, failed with %.300q, want %q, %q", got.transition, got.failure, c.want, c.err)
	}
	u := got.usage
	if n := int64(len(s.Calls())); u.Made() != c.calls || n != c.calls || u.Unbilled != c.free || u.Estimated != c.guessed {
		t.Errorf("%d requests, charged as %+v, want %d calls, %d of them free, estimated %t", n, u, c.calls, c.free, c.guessed)
	}
	if billed := c.calls > c.free; (u.CostUSD > 0) != billed || (u.NumInputTokens > 0) != billed || !u.Has(specialist.CostGiven) {
		t.Errorf("charged as %+v", u)
	}
	if c.model == "" {
		c.model = id
	}
	if got.model != c.model || (got.asked == "") != (c.model == id) {
		t.Errorf("the model is %q, asked was %q, want %q", got.model, got.asked, c.model)
	}
	if got.spent.Calls != c.calls || got.spent.Money != u.CostUSD || got.spent.Unpriced != 0 {
		t.Errorf("the session has spent %+v", got.spent)
	}
	if int64(got.audited) != c.calls {
		t.Errorf("%d attempts were audited", got.audited)
	}
	if strings.Contains(got.everything, key) {
		t.Error("the key is in the log or in the audit")
	}
}

// A decided is what became of a round with one model in it.
type decided struct {
	transition, failure, model, asked string
	usage                             specialist.Usage
	spent                             struct {
		Calls, Unpriced int64
		Money           exact.Money
	}
	audited    int
	everything string // all events and audit entries
}

// decide runs a round of a model and a function that pays, under an arbiter who
// hears both and pays. A try of the model may take as long as timeout.
func decide(t *testing.T, s *llmtest.Server, modelID string, timeout time.Duration) (d decided) {
	t.Helper()
	text := strings.Replace(fmt.Sprintf(deskFile, modelID), `"contextFn": "c"`, `"contextFn": "sessionContext"`, 1)
	text = strings.Replace(text, `"specialists": [`, `"specialists": [ { "role": "proposer", "specialistId": "rule", "strategyFnName": "firstAvailable" },
		{ "role": "arbiter", "specialistId": "judge", "strategyFn": "= proposals >= 1 ? \"pay\" : none" },`, 1)
	m, err := machine.Parse("desk.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	c := config(s)
	c.Timeout = timeout
	c.Audit = func(_ context.Context, e specialist.AuditEntry) error {
		mu.Lock()
		defer mu.Unlock()
		d.audited++
		d.everything += fmt.Sprintf("%+v\n", e)
		return nil
	}
	kept := store.NewMemory()
	defer kept.Close()
	r, err := runner.New(runner.Config{Store: kept, Resolver: llm.New(c), Prices: llm.Prices(), Observer: func(rec session.Change) {
		for _, e := range rec.Events {
			d.hear(e.Data)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tick, err := r.Step(t.Context(), started.ID)
	if err != nil || tick.Status != runner.TickAdvanced || tick.Transition.To.Name != "done" {
		t.Fatalf("the round does not go on: %s, %v", tick.Status, err)
	}
	for rec, err := range kept.Records(t.Context(), started.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		d.everything += string(rec.Events)
	}
	spent := tick.Session.Spent()
	d.spent.Calls, d.spent.Unpriced, d.spent.Money = spent.Calls, spent.Unpriced, spent.Money
	return d
}

func (d *decided) hear(event session.Data) {
	switch e := event.(type) {
	case *session.Proposed:
		if e.SpecialistID == "m" {
			d.transition, d.usage, d.model, d.asked = e.Transition.Name, e.Usage, e.Detail.Model, e.Detail.Asked
		}
	case *session.AskFailed:
		d.failure, d.usage, d.model, d.asked = e.Message, e.Usage, e.Model, e.Asked
	}
}
