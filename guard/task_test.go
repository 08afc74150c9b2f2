package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

func dollars(n exact.Money) specialist.Usage {
	return specialist.Usage{NumInputTokens: 2, NumOutputTokens: 1}.WithCost(n * exact.Dollar)
}

func newGuard(t testing.TB, c *guard.Config, checkers ...guard.Checker) *guard.Guard {
	t.Helper()
	g, err := guard.New(c, guard.WithCheckers(checkers...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTwoPhases: a step counts when its token is committed, its usage at once.
func TestTwoPhases(t *testing.T) {
	g := newGuard(t, parse(t, `{"limits":{"max_steps":2},"cost":{"max_dollars_per_task":10}}`))
	step := verdict.Step{Task: "t", State: "s"}
	want := func(steps, calls int64, spent exact.Money) {
		t.Helper()
		s := g.State("t")
		if s.Steps != steps || s.Spent.Calls != calls || s.Spent.Money != spent*exact.Dollar || s.Money > s.Spent.Money {
			t.Fatalf("the task has %d steps, %d calls, $%s of which $%s for steps; want %d, %d, $%d", s.Steps, s.Spent.Calls, s.Spent.Money, s.Money, steps, calls, spent)
		}
	}
	v, token, err := g.BeginStep(t.Context(), step, dollars(1))
	if codes(v) != "ok" || token == nil || err != nil {
		t.Fatalf("the first step: %s (%v)", codes(v), err)
	}
	want(0, 1, 1)
	if _, second, err := g.BeginStep(t.Context(), step, dollars(1)); !errors.Is(err, guard.ErrBusy) || second != nil || err.Error() != `the task has an open step: "t"` {
		t.Fatalf("a second token while one is open: %v", err)
	}
	want(0, 1, 1) // nothing changed
	if v, err := g.CheckStep(t.Context(), verdict.Step{Task: "another"}, dollars(1)); codes(v) != "ok" || err != nil {
		t.Fatalf("another task: %s (%v)", codes(v), err)
	}
	token.Release()
	token.Release()
	token.Commit() // given up is given up
	want(0, 1, 1)

	_, token, _ = g.BeginStep(t.Context(), step, dollars(2))
	token.Commit()
	token.Commit()
	token.Release()
	want(1, 2, 3)
	if v, err := g.CheckStep(t.Context(), step, dollars(3)); codes(v) != "ok" || err != nil {
		t.Fatalf("the second step: %s (%v)", codes(v), err)
	}
	want(2, 3, 6)
	v, token, err = g.BeginStep(t.Context(), step, dollars(1))
	if codes(v) != "abort [max_steps]" || token != nil || err != nil {
		t.Fatalf("the third step: %s, token %v (%v)", codes(v), token, err)
	}
	want(2, 4, 7) // rejected, and spent
	if v, err := g.CheckStep(t.Context(), step, dollars(9)); codes(v) != "abort [max_steps cost_cap]" || err != nil {
		t.Fatalf("the fourth: %s (%v)", codes(v), err)
	}
	want(2, 5, 16)
}

// TestLateTokenOfAnOlderStep cannot close the one that is open now.
func TestLateTokenOfAnOlderStep(t *testing.T) {
	g := newGuard(t, nil)
	step := verdict.Step{Task: "t"}
	_, old, _ := g.BeginStep(t.Context(), step, specialist.Usage{})
	old.Release()
	_, token, _ := g.BeginStep(t.Context(), step, specialist.Usage{})
	old.Commit()
	if g.State("t").Steps != 0 {
		t.Error("a token that was released has counted a step")
	}
	if token.Commit(); g.State("t").Steps != 1 {
		t.Error("the open token did not count")
	}
}

func TestBeginRefusesBadInput(t *testing.T) {
	g := newGuard(t, nil)
	for _, c := range []struct {
		step  verdict.Step
		usage specialist.Usage
		want  string
	}{
		{verdict.Step{}, specialist.Usage{}, "invalid input: task_id is missing"},
		{verdict.Step{Task: "t"}, specialist.Usage{NumInputTokens: -1}, "invalid input: a negative number of tokens, attempts or steps"},
		{verdict.Step{Task: "t"}, specialist.Usage{NumOutputTokens: -1}, "invalid input: a negative number of tokens, attempts or steps"},
		{verdict.Step{Task: "t"}, dollars(-1), "invalid input: a negative cost"},
		{verdict.Step{Task: "t", Attempt: -1}, specialist.Usage{}, "invalid input: a negative number of tokens, attempts or steps"},
	} {
		v, token, err := g.BeginStep(t.Context(), c.step, c.usage)
		if !errors.Is(err, verdict.ErrInput) || err.Error() != c.want || token != nil || v.Status != verdict.OK {
			t.Errorf("%+v %+v: %v, want %s", c.step, c.usage, err, c.want)
		}
	}
	if s := g.State("t"); s.Steps != 0 || s.Spent != (spend.Book{}) {
		t.Errorf("refused input was counted: %+v", s)
	}
}

// TestBeginBelievesTheUsage: tokens and cost of a step are those of its usage,
// priced by the table, and not what the step says of itself.
func TestBeginBelievesTheUsage(t *testing.T) {
	g := newGuard(t, parse(t, `{"limits":{"max_tokens_per_step":3},"cost":{"max_dollars_per_task":1,"prices":{"m":{"input_per_1m":400000,"output_per_1m":0}}}}`))
	lie := verdict.Step{Task: "t", Model: "m", TokensIn: 0, Cost: 0, CostGiven: true}
	for _, want := range []string{"ok", "ok", "abort [cost_cap]"} { // $0.40 a token
		if v, _ := g.CheckStep(t.Context(), lie, specialist.Usage{NumInputTokens: 1}); codes(v) != want {
			t.Errorf("%s, want %s", codes(v), want)
		}
	}
	if v, _ := g.CheckStep(t.Context(), verdict.Step{Task: "other"}, specialist.Usage{NumOutputTokens: 4}); codes(v) != "abort [max_tokens_step]" {
		t.Errorf("four tokens: %s", codes(v))
	}
}

// TestOwnCheckers: they run after the configured ones, in order, and fail closed.
func TestOwnCheckers(t *testing.T) {
	var asked []string
	say := func(name string, v verdict.Verdict) guard.Func {
		return func(context.Context, verdict.Step) verdict.Verdict { asked = append(asked, name); return v }
	}
	panics := guard.Func(func(context.Context, verdict.Step) verdict.Verdict { panic("a bug") })
	ok, warn := verdict.Verdict{}, verdict.Reject(verdict.Warn, "careful", "")
	for _, c := range []struct {
		name     string
		checkers []guard.Checker
		step     verdict.Step
		want     string
		asked    string
	}{
		{"all content", []guard.Checker{say("a", ok), say("b", warn)}, verdict.Step{}, "warn [careful]", "[a b]"},
		{"a panic", []guard.Checker{say("a", ok), panics, say("b", warn)}, verdict.Step{}, "abort [internal_error careful]", "[a b]"},
		{"a nil function", []guard.Checker{guard.Func(nil)}, verdict.Step{}, "abort [internal_error]", "[]"},
		{"no reason given", []guard.Checker{say("a", verdict.Verdict{Status: verdict.Retry})}, verdict.Step{}, "retry [unexplained]", "[a]"},
		{"refused before", []guard.Checker{say("a", ok)}, verdict.Step{Attempt: 5}, "abort [retry_exhausted]", "[]"},
		{"a ruling", []guard.Checker{panics, say("a", verdict.Reject(verdict.Abort, "no", ""))}, verdict.Step{Human: true}, "ok", "[]"},
	} {
		asked = []string{}
		g := newGuard(t, parse(t, `{"retry":{"max_attempts":4}}`), c.checkers...)
		c.step.Task = "t"
		v, token, err := g.BeginStep(t.Context(), c.step, dollars(1))
		if codes(v) != c.want || err != nil || fmt.Sprint(asked) != c.asked || (token != nil) != v.Passed() {
			t.Errorf("%s: %s, token %v (%v), asked %v; want %s, asked %s", c.name, codes(v), token, err, asked, c.want, c.asked)
		}
		if token == nil { // a refused task is not blocked, and the money is spent
			if s := g.State("t"); s.Steps != 0 || s.Spent.Money != exact.Dollar {
				t.Errorf("%s: %+v", c.name, s)
			}
			if _, _, err := g.BeginStep(t.Context(), verdict.Step{Task: "t", Human: true}, dollars(1)); err != nil {
				t.Errorf("%s: afterwards: %v", c.name, err)
			}
		}
	}
}

// TestCheckerMayAskTheGuard: checkers run without the lock, and see the usage
// booked and the task held.
func TestCheckerMayAskTheGuard(t *testing.T) {
	var g *guard.Guard
	g = newGuard(t, nil, guard.Func(func(ctx context.Context, s verdict.Step) verdict.Verdict {
		if _, _, err := g.BeginStep(ctx, verdict.Step{Task: s.Task}, specialist.Usage{}); !errors.Is(err, guard.ErrBusy) {
			return verdict.Reject(verdict.Abort, "not_held", "")
		}
		if g.State(s.Task).Spent.Money != exact.Dollar || s.Cost != exact.Dollar {
			return verdict.Reject(verdict.Abort, "not_booked", "")
		}
		return verdict.Verdict{}
	}))
	if v, err := g.CheckStep(t.Context(), verdict.Step{Task: "t"}, dollars(1)); codes(v) != "ok" || err != nil || g.State("t").Steps != 1 {
		t.Errorf("%s (%v), %d steps", codes(v), err, g.State("t").Steps)
	}
}

// TestRejectsNeverChangeProgress: whatever is refused or released has only been
// spent.
func TestRejectsNeverChangeProgress(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 4))
	g := newGuard(t, parse(t, `{"limits":{"max_steps":40,"max_tokens_per_step":12},"loop_detection":{"max_state_visits":9},"retry":{"max_attempts":2},"cost":{"max_dollars_per_task":120,"on_unknown_model":"skip"}}`))
	var steps, calls, tokens int64
	for i := range 2000 {
		step := verdict.Step{Task: "t", State: pick(rng, "p", "q"), Transition: "x", MetaJSON: []byte(pick(rng, "1", "2", "3")), Attempt: rng.Int64N(4), Human: rng.IntN(9) == 0}
		u := specialist.Usage{NumInputTokens: rng.Int64N(9), NumOutputTokens: rng.Int64N(6)}.WithCost(exact.Money(rng.IntN(3)) * exact.Dollar)
		before := g.State("t")
		v, token, err := g.BeginStep(t.Context(), step, u)
		if err != nil {
			t.Fatal(err)
		}
		calls++
		if token != nil && rng.IntN(3) > 0 {
			token.Commit()
			steps, tokens = steps+1, tokens+u.NumInputTokens+u.NumOutputTokens
		} else if token != nil {
			token.Release()
		}
		s := g.State("t")
		if s.Steps != steps || s.TokensIn+s.TokensOut != tokens || s.Spent.Calls != calls || s.Spent.Money != before.Spent.Money+u.CostUSD {
			t.Fatalf("seed %d, step %d: %s left %+v after %+v", seed, i, codes(v), s, before)
		}
	}
	if steps == 0 || steps == calls {
		t.Fatalf("seed %d: %d of %d steps were executed, so the test shows nothing", seed, steps, calls)
	}
}

// TestManyGoroutines: none commits past a limit, and no usage gets lost.
func TestManyGoroutines(t *testing.T) {
	const goroutines, tries, tasks = 16, 200, 3
	g := newGuard(t, parse(t, `{"limits":{"max_steps":100},"loop_detection":{"max_state_visits":1000}}`),
		guard.Func(func(context.Context, verdict.Step) verdict.Verdict { return verdict.Verdict{} }))
	var wg sync.WaitGroup
	var committed, begun [tasks]atomic.Int64
	for i := range goroutines {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for range tries {
				n := rng.IntN(tasks)
				v, token, err := g.BeginStep(t.Context(), verdict.Step{Task: fmt.Sprint(n), State: "s"}, dollars(1))
				switch {
				case errors.Is(err, guard.ErrBusy):
					continue
				case err != nil:
					t.Error(err)
					return
				}
				begun[n].Add(1)
				if token == nil {
					if codes(v) != "abort [max_steps]" {
						t.Errorf("refused with %s", codes(v))
					}
					continue
				}
				if rng.IntN(2) == 0 {
					committed[n].Add(1)
					go token.Release() // whoever comes second changes nothing
					token.Commit()
				} else {
					token.Release()
				}
				g.State(fmt.Sprint(n))
			}
		})
	}
	wg.Wait()
	for n := range tasks {
		s := g.State(fmt.Sprint(n))
		if s.Steps > 100 || s.Steps > committed[n].Load() || s.Spent.Calls != begun[n].Load() || s.Spent.Money != exact.Money(begun[n].Load())*exact.Dollar {
			t.Errorf("task %d has %d steps of %d commits, %d calls of %d, $%s", n, s.Steps, committed[n].Load(), s.Spent.Calls, begun[n].Load(), s.Spent.Money)
		}
	}
}

// TestTokensExpire: a token that nobody closes keeps others out for as long as a
// reservation lasts, but not while its step is still being judged. Its step counts if it
// is committed after all, unless the task was reset.
func TestTokensExpire(t *testing.T) {
	for config, ttl := range map[string]time.Duration{`{"tool_calls":{"blast_radius":{"deploy":2}}}`: time.Minute, `{"tool_calls":{"blast_radius":{"deploy":2}},"budget":{"reserve_ttl_ms":1000}}`: time.Second} {
		now := time.Unix(1_000_000, 0)
		slow := guard.Func(func(context.Context, verdict.Step) verdict.Verdict {
			now = now.Add(time.Hour)
			return verdict.Verdict{}
		})
		g, err := guard.New(parse(t, config), guard.WithClock(func() time.Time { return now }), guard.WithCheckers(slow))
		if err != nil {
			t.Fatal(err)
		}
		begin := func() (*guard.Token, string) {
			v, token, err := g.Begin(t.Context(), guard.CheckInput{TaskID: "t", ToolCalls: []specialist.ToolCall{{Name: "deploy"}}})
			if err != nil {
				return nil, err.Error()
			}
			return token, codes(v)
		}
		const busy = `the task has an open step: "t"`
		lost, said := begin()
		if now = now.Add(ttl - 1); said != "ok" {
			t.Fatalf("%s: %s", config, said)
		}
		if _, said := begin(); said != busy {
			t.Errorf("%s: a nanosecond early: %s", config, said)
		}
		if now = now.Add(1); g.GC(2*time.Hour) != 0 {
			t.Errorf("%s: the task was evicted", config)
		}
		second, said := begin()
		if second.Commit(); said != "ok" || g.State("t").Steps != 1 {
			t.Errorf("%s: with the token expired: %s", config, said)
		}
		lost.Commit()
		lost.Commit()
		if _, said := begin(); g.State("t").Steps != 2 || !strings.HasPrefix(said, "abort [tool_blast_radius") {
			t.Errorf("%s: committed late: %d steps, then %s", config, g.State("t").Steps, said)
		}
		g.Reset("t")
		lost, _ = begin()
		if g.Reset("t"); lost == nil {
			t.Fatal("no token after a reset")
		}
		if lost.Commit(); g.State("t").Steps != 0 {
			t.Errorf("%s: a token from before the reset counted", config)
		}
	}
}

// TestCheckerEndsItsGoroutine: the task is free again.
func TestCheckerEndsItsGoroutine(t *testing.T) {
	ends := true
	g := newGuard(t, nil, guard.Func(func(context.Context, verdict.Step) verdict.Verdict {
		if ends {
			runtime.Goexit()
		}
		return verdict.Verdict{}
	}))
	done := make(chan struct{})
	go func() { defer close(done); _, _, _ = g.Begin(context.Background(), guard.CheckInput{TaskID: "t"}) }()
	<-done
	ends = false
	if v, _, err := g.Begin(t.Context(), guard.CheckInput{TaskID: "t"}); err != nil || v.Status != verdict.OK {
		t.Errorf("%+v, %v", v, err)
	}
}
