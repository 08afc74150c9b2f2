package llm_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// TestCallsAreCounted: every call that reached a provider is one, and those that it
// refused cost nothing; a call that never went out is none.
func TestCallsAreCounted(t *testing.T) {
	fine, bad := llmtest.Reply{Tools: calls("pay", "{}")}, llmtest.Reply{Text: "hm"}
	status := func(code int) llmtest.Reply { return llmtest.Reply{Status: code, Body: "no"} }
	for _, c := range []struct {
		name             string
		replies          []llmtest.Reply
		made, unbilled   int64
		tokens, answered bool
	}{
		{"at once", []llmtest.Reply{fine}, 1, 0, true, true},
		{"repaired", []llmtest.Reply{bad, fine}, 2, 0, true, true},
		{"repaired twice", []llmtest.Reply{bad, bad, fine}, 3, 0, true, true},
		{"never usable", []llmtest.Reply{bad}, 3, 0, true, false},
		{"wrong key", []llmtest.Reply{status(401)}, 1, 1, false, false},
		{"forbidden", []llmtest.Reply{status(403)}, 1, 1, false, false},
		{"unknown model", []llmtest.Reply{status(404)}, 1, 1, false, false},
		{"too many requests, then fine", []llmtest.Reply{status(429), status(429), fine}, 3, 2, true, true},
		{"down", []llmtest.Reply{status(500)}, 3, 3, false, false},
		{"a parameter too many", []llmtest.Reply{{Status: 400, Body: "temperature is not supported"}, fine}, 2, 1, true, true},
		{"repaired after 529", []llmtest.Reply{bad, status(529), fine}, 3, 1, true, true},
		{"an error with status 200", []llmtest.Reply{{Body: `{"error":{"code":503,"message":"down"}}`}, fine}, 2, 1, true, true},
		{"cut off on the way", []llmtest.Reply{{Text: "x", Truncate: true}, fine}, 2, 0, true, true},
		{"broken off without an answer", []llmtest.Reply{{Reset: true}, fine}, 2, 0, true, true},
	} {
		for _, id := range ids {
			s := serve(t, llmtest.Script(c.replies...))
			m := deskOf(t, id)
			a, err := proposer(t, llm.New(config(s)), m, "").Propose(t.Context(), inState(m))
			if u := a.Usage; u.Made() != c.made || u.Unbilled != c.unbilled || (u.NumInputTokens > 0) != c.tokens || (err == nil) != c.answered || int64(len(s.Calls())) != c.made {
				t.Errorf("%s, %s: %+v, %v after %d requests, want %d calls, %d of them free", c.name, id, u, err, len(s.Calls()), c.made, c.unbilled)
			}
		}
	}
}

// TestNoCall: an ask that reaches nobody is no call: without a key, at an address
// where nobody listens, or given up before it was its turn.
func TestNoCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "x"}))
	unreachable := config(s)
	unreachable.Endpoints = map[string]string{"openai": nobody}
	for name, c := range map[string]struct {
		ctx    context.Context
		config llm.Config
	}{"no key": {t.Context(), llm.Config{}}, "nobody listens": {t.Context(), unreachable}, "given up": {ended, config(s)}} {
		m := desk(t, "")
		a, err := proposer(t, llm.New(c.config), m, "").Propose(c.ctx, inState(m))
		if err == nil || a.Usage.Made() != 0 || a.Usage.Billed() != 0 || a.Usage.NumInputTokens != 0 {
			t.Errorf("%s: %+v, %v", name, a.Usage, err)
		}
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestGivenUpIsCharged: a call that nobody waits for any more may have been answered,
// so it is charged as estimated.
func TestGivenUpIsCharged(t *testing.T) {
	asked := make(chan struct{}, 1)
	s := serve(t, func(int, llmtest.Call) llmtest.Reply {
		asked <- struct{}{}
		return llmtest.Reply{Text: "x", Delay: time.Hour}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	m := desk(t, "")
	a, err := proposer(t, llm.New(config(s)), m, "").Propose(ctx, inState(m))
	if u := a.Usage; err == nil || u.Made() != 1 || !u.Estimated || u.NumOutputTokens != llm.DefaultMaxTokens || u.NumInputTokens == 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestRoom: a model is not asked more often than there is room for, be it for
// repairs or for attempts, of which those that a provider refuses cost nothing.
func TestRoom(t *testing.T) {
	fine, bad, busy, cut := llmtest.Reply{Tools: calls("pay", "{}")}, llmtest.Reply{Text: "hm"}, llmtest.Reply{Status: 429, Body: "slow down"}, llmtest.Reply{Text: "x", Truncate: true}
	for _, c := range []struct {
		name    string
		room    specialist.CallLimit
		replies []llmtest.Reply
		calls   int
		err     string // "" if there is an answer
	}{
		{"no bound", specialist.CallLimit{}, []llmtest.Reply{bad, bad, fine}, 3, ""},
		{"one", specialist.CallLimit{Billed: 1}, []llmtest.Reply{bad, fine}, 1, "Failed to parse LLM proposer response: hm (the model is not asked again: the budget has no room for that)"},
		{"one, and refusals", specialist.CallLimit{Billed: 1}, []llmtest.Reply{busy, busy, fine}, 3, ""},
		{"two", specialist.CallLimit{Billed: 2}, []llmtest.Reply{bad, busy, fine}, 3, ""},
		{"two, and both unusable", specialist.CallLimit{Billed: 2}, []llmtest.Reply{bad, bad, fine}, 2, "no room"},
		{"one, and it was lost", specialist.CallLimit{Billed: 1}, []llmtest.Reply{cut, fine}, 1, "EOF"},
		{"two, and one was lost", specialist.CallLimit{Billed: 2}, []llmtest.Reply{cut, fine}, 2, ""},
		{"one call of any kind", specialist.CallLimit{Calls: 1, Billed: 1}, []llmtest.Reply{busy, fine}, 1, "LLM API error (429): slow down"},
		{"two calls of any kind", specialist.CallLimit{Calls: 2, Billed: 3}, []llmtest.Reply{busy, busy, fine}, 2, "LLM API error (429): slow down"},
		{"one, and a parameter too many", specialist.CallLimit{Calls: 1, Billed: 1}, []llmtest.Reply{{Status: 400, Body: "temperature is not supported"}, fine}, 1, "LLM API error (400)"},
	} {
		s := serve(t, llmtest.Script(c.replies...))
		m := desk(t, "")
		a, err := proposer(t, llm.New(config(s)), m, "").Propose(specialist.WithCallLimit(t.Context(), c.room), inState(m))
		if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) || len(s.Calls()) != c.calls || a.Usage.Made() != int64(c.calls) {
			t.Errorf("%s: %v after %d calls, %+v, want %q after %d", c.name, err, len(s.Calls()), a.Usage, c.err, c.calls)
		}
	}
}

// TestRoomOnTape: a run that ran out of room comes out the same when it is replayed.
func TestRoomOnTape(t *testing.T) {
	tape := &oneTape{}
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 429, Body: "slow down"}, llmtest.Reply{Text: "hm"}, llmtest.Reply{Tools: calls("pay", "{}")}))
	c := config(s)
	c.Tape = tape
	m := desk(t, "")
	ctx := specialist.WithCallLimit(t.Context(), specialist.CallLimit{Calls: 2, Billed: 3})
	first, err := proposer(t, llm.New(c), m, "").Propose(ctx, inState(m))
	if err == nil || first.Usage.Made() != 2 || first.Usage.Unbilled != 1 {
		t.Fatalf("%+v, %v", first.Usage, err)
	}
	tape.playing = true
	again, replayed := proposer(t, llm.New(llm.Config{Tape: tape}), m, "").Propose(ctx, inState(m))
	if replayed == nil || replayed.Error() != err.Error() || !sameUsage(again.Usage, first.Usage) || len(s.Calls()) != 2 {
		t.Errorf("replayed: %+v, %v", again.Usage, replayed)
	}
}

// TestRepairsAreSetAside: what is set aside covers what a repair really reads.
func TestRepairsAreSetAside(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Tools: calls("cut", `{"`+strings.Repeat("x", 5000)+`":1}`)}))
	m := desk(t, "")
	p := proposer(t, llm.New(config(s)), m, "")
	e := p.(specialist.Estimator).Estimate(inState(m))
	if _, err := p.Propose(t.Context(), inState(m)); err == nil || e.Repairs != 2 || e.Retries != 6 {
		t.Fatalf("%+v, %v", e, err)
	}
	made := s.Calls()
	if more := int64(len(made[1].User) - len(made[0].User)); more <= 0 || more/3 > e.RepairInput {
		t.Errorf("a repair adds %d bytes, and %d tokens are set aside", more, e.RepairInput)
	}
}

// TestScrubbedAnswers: a key that a server sends back is in no answer.
func TestScrubbedAnswers(t *testing.T) {
	for i, variable := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		key := keys[variable]
		s := serve(t, llmtest.Script(llmtest.Reply{Text: "your key is " + key, Tools: calls("no", `{"why":"`+key+`"}`)}))
		resp, err := ask(t, llm.New(config(s)), ids[i], question())
		if err != nil || resp.Text != "your key is [REDACTED]" || resp.ToolCalls[0].Arguments != `{"why":"[REDACTED]"}` {
			t.Errorf("%s: %+v, %v", ids[i], resp, err)
		}
	}
}

// TestMeter: whoever has guards ask models learns what each question has cost.
func TestMeter(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 429, Body: "slow down"}, llmtest.Reply{Text: "x", Model: "gpt-4o-mini-2024-07-18"}))
	var spent specialist.Usage
	var of, by string
	ctx := specialist.WithCaller(t.Context(), specialist.Caller{Spent: func(u specialist.Usage, asked, answered string) { spent, of, by = spent.Plus(u), asked, answered }})
	m, err := llm.New(config(s)).Model(ids[0], "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Ask(ctx, question()); err != nil || !sameUsage(spent, usage(100, 10).WithCalls(2, 1)) || of != "openai/gpt-4o-mini" || by != "gpt-4o-mini-2024-07-18" {
		t.Errorf("%+v of %s by %s, %v", spent, of, by, err)
	}
}

// A oneTape keeps answers in the order of the calls.
type oneTape struct {
	playing bool
	said    []webhook.Taped
	next    int
}

func (o *oneTape) Playing() bool { return o.playing }

func (o *oneTape) Exchange(_ context.Context, _ webhook.Label, _ []byte, send func() webhook.Taped) webhook.Taped {
	if !o.playing {
		o.said = append(o.said, send())
		return o.said[len(o.said)-1]
	}
	o.next++
	return o.said[o.next-1]
}
