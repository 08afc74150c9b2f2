package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// spending is the part of somebody who proposes at a price.
func spending(transition string, u specialist.Usage, model string) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: transition, Usage: u, Model: model}, nil
	}
}

// TestGuardsFromTheFile runs a machine into each of its guards: so many steps
// pass, then the session stops with the guard's code and stays where it was.
func TestGuardsFromTheFile(t *testing.T) {
	tokens := func(in, out int64) specialist.Usage {
		return specialist.Usage{NumInputTokens: in, NumOutputTokens: out, Given: specialist.InputGiven | specialist.OutputGiven}
	}
	for _, c := range []struct {
		guards string
		u      specialist.Usage
		model  string
		meta   string
		passes int
		code   string // of the refusal; "" if there is none
	}{
		{`"limits":{"max_steps":3}`, specialist.Usage{}, "", "", 3, "max_steps"},
		{`"limits":{"max_steps":0}`, specialist.Usage{}, "", "", 0, "max_steps"},
		{`"limits":{"max_tokens_per_step":30}`, tokens(20, 10), "", "", 9, ""},
		{`"limits":{"max_tokens_per_step":29}`, tokens(20, 10), "", "", 0, "max_tokens_step"},
		{`"limits":{"max_total_tokens":90}`, tokens(20, 10), "", "", 3, "max_tokens_total"},
		{`"limits":{"max_total_tokens":90,"cap_basis":"progress"}`, tokens(20, 10), "", "", 3, "max_tokens_total"},
		{`"cost":{"max_dollars_per_task":1}`, cost(dollar / 2), "", "", 2, "cost_cap"},
		{`"cost":{"max_dollars_per_task":1,"prices":{"m":{"input_per_1m":1,"output_per_1m":2}}}`, tokens(500_000, 0), "m", "", 2, "cost_cap"},
		{`"cost":{"max_dollars_per_task":1}`, tokens(1, 1), "m", "", 0, "unpriced_model"},
		{`"cost":{"max_dollars_per_task":1},"limits":{"max_steps":2}`, tokens(1, 1), "m", "", 2, "max_steps"},
		{`"loop_detection":{"max_state_visits":2}`, specialist.Usage{}, "", `{"known":1}`, 2, "loop_state_cycle"},
		{`"loop_detection":{"max_state_visits":2}`, specialist.Usage{}, "", "", 9, ""}, // nothing is known: a warning
	} {
		b := newBench(t)
		b.cast.play("a", spending("again", c.u, c.model))
		m := b.machine(def{who: []string{fn("a"), half}, top: `"guards":{` + c.guards + `}`})
		var o runner.StartOptions
		if c.meta != "" {
			o.Meta = []byte(c.meta)
		}
		s := b.start(m, o)
		for i := range c.passes {
			if tick := b.step(s); tick.Status != runner.TickAdvanced {
				t.Fatalf("%s: step %d came to %s: %s", c.guards, i+1, tick.Status, tick.Reasoning())
			}
		}
		if c.code == "" {
			continue
		}
		before := b.now(s)
		tick := b.stepTo(s, runner.TickStopped)
		now := b.now(s)
		if got := now.Outcome().Code; got != c.code || tick.Code != got || now.Outcome().Reason == "" || now.State != before.State || now.Executed != before.Executed {
			t.Errorf("%s: stopped by %s, want %s", c.guards, got, c.code)
		}
		if state := now.GuardState(); state.Steps != int64(c.passes) && state.Steps != 0 {
			t.Errorf("%s: %d steps are counted, %d were executed", c.guards, state.Steps, c.passes)
		}
	}
}

// TestCountsOnlyWhatIsExecuted holds the two phases apart: a step that is judged
// and refused is not counted, but what it cost is spent, losers included.
func TestCountsOnlyWhatIsExecuted(t *testing.T) {
	refuse := true
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(context.Context, verdict.Step) verdict.Verdict {
			if refuse {
				return verdict.Reject(verdict.Retry, "house", "again")
			}
			return verdict.Verdict{}
		})}
	})
	m := b.machine(def{who: []string{fn("good"), fn("zero"), human("human"), half}, top: `"quorum":"any","guards":{"limits":{"max_steps":9}}`})
	refuse = false
	b.train(m, "good", 9, 9)
	refuse = true
	b.cast.play("good", spending("again", given(dollar, 0, 10, 5), ""))
	b.cast.play("zero", spending("finish", given(dollar/2, 0, 4, 1), ""))
	s := b.start(m)
	b.propose(s, "zero", "finish") // so that its proposal counts before good settles the round
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "zero", TransitionName: "finish", Usage: given(dollar/2, 0, 4, 1)})
	b.stepTo(s, runner.TickRejected)
	state := b.now(s).GuardState()
	if state.Steps != 0 || state.Money != 0 || state.Spent.Money != 3*dollar/2 || state.Spent.TokensIn != 14 || state.Spent.TokensOut != 6 {
		t.Errorf("after a refusal the guards remember %+v", state)
	}
	refuse = false
	b.stepTo(s, runner.TickAdvanced)
	state = b.now(s).GuardState()
	if state.Steps != 1 || state.Money != dollar || state.TokensIn != 10 || state.Spent.Money != 5*dollar/2 {
		t.Errorf("after an execution the guards remember %+v", state)
	}
	// A restart refills no budget: another process over the same store remembers the same.
	other, err := b.runner().Session(b.ctx, s.ID)
	b.ok(err)
	if got := other.GuardState(); fmt.Sprint(got.Steps, got.Money, got.Spent) != fmt.Sprint(state.Steps, state.Money, state.Spent) {
		t.Errorf("elsewhere the guards remember %+v", got)
	}
}

// TestSpendingOnRejectedRounds lets attempts that a guard sends back run into the
// dollar cap all the same.
func TestSpendingOnRejectedRounds(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "no")} })
	b.cast.play("a", spending("again", cost(dollar), ""))
	s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"cost":{"max_dollars_per_task":2}}`}))
	b.stepTo(s, runner.TickRejected)
	b.stepTo(s, runner.TickRejected)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "cost_cap" {
		t.Errorf("stopped by %s", tick.Code)
	}
}

// TestRetryBudget ends a row of rejections: the machine's own limit sends the
// session to a human, and an attempt past it is stopped.
func TestRetryBudget(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "no")} })
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"retry":{"max_attempts":1}}`}))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "house" {
		t.Errorf("the step came to %s", tick.Code)
	}
	b.propose(s, "a", "again")
	b.stepTo(s, runner.TickHuman)
	b.propose(s, "a", "again")
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "retry_exhausted" {
		t.Errorf("the step came to %s", tick.Code)
	}
}

// TestStateGuards lays a state's guards over the machine's, only there.
func TestStateGuards(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: map[string]string{"open": "park", "parked": "back"}[q.State.Name], Usage: cost(dollar)}, nil
	})
	s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"cost":{"max_dollars_per_task":10}}`,
		states: `"open":{"transitions":{"finish":"done","park":"parked"}},"parked":{"transitions":{"back":"open"},"guards":{"cost":{"max_dollars_per_task":1}}},"done":{}`}))
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "cost_cap" || b.now(s).State.Name != "parked" {
		t.Errorf("stopped by %s", tick.Code)
	}
}

// TestPanickingGuard fails closed.
func TestPanickingGuard(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(context.Context, verdict.Step) verdict.Verdict { panic("guard") })}
	})
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), half))
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "internal_error" || b.now(s).Executed != 0 {
		t.Errorf("the step came to %s", tick.Code)
	}
}

// TestGuardsJoin runs all guards, the file's and the program's: the most severe
// verdict holds, and the log names every reason.
func TestGuardsJoin(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("again", verdict.Warn, "soft", "s"), reject("again", verdict.Escalate, "ask", "h"), reject("again", verdict.Retry, "retry", "r")}
	})
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"limits":{"max_steps":5}}`}))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "ask" {
		t.Errorf("the step came to %s", tick.Code)
	}
	for _, r := range b.raw(s) {
		if r.Kind == "gated" && (strings.Count(string(r.Data), `"code"`) != 3 || !strings.Contains(string(r.Data), `"status":"escalate"`)) {
			t.Errorf("the gate recorded %s", r.Data)
		}
	}
}

// TestGuardSees compares what a program's own guard is told with the winner.
func TestGuardSees(t *testing.T) {
	var seen verdict.Step
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict { seen = s; return verdict.Verdict{} })}
	})
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "park", Reasoning: "why", MetaJSON: []byte(`{"k":1}`), Usage: given(dollar, 1, 2, 3), Model: "m", ToolCalls: []specialist.ToolCall{{Name: "tool"}}}, nil
	})
	s := b.start(b.desk(fn("a"), half), runner.StartOptions{Meta: []byte(`{"about":1}`)})
	b.stepTo(s, runner.TickAdvanced)
	want := verdict.Step{Task: s.ID.String(), FromState: "open", State: "parked", Transition: "park", Output: "why", MetaJSON: []byte(`{"k":1}`), ToolCalls: []verdict.ToolCall{{Name: "tool"}}, HasOutput: true,
		Model: "m", TokensIn: 2, TokensOut: 3, Cost: dollar, CostGiven: true, SessionMeta: []byte(`{"about":1}`), At: seen.At, Began: s.CreatedAt, Moved: s.CreatedAt}
	if seen.At <= s.CreatedAt {
		t.Errorf("the step is judged at %s, the session began at %s", seen.At, s.CreatedAt)
	}
	if fmt.Sprintf("%+v", seen) != fmt.Sprintf("%+v", want) {
		t.Errorf("the guard saw\n%+v\nwant\n%+v", seen, want)
	}
}

// TestPackFindingsInTheLog: the log says where a pack has found something, and
// can be read again.
func TestPackFindingsInTheLog(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "again", Reasoning: "ask a@acme.io", MetaJSON: []byte(`{"to":"b@acme.io"}`)}, nil
	})
	s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"packs":{"pii":{"action":"abort"}}}`}))
	b.stepTo(s, runner.TickStopped)
	if got := b.now(s).Outcome().Code; got != "pii_found" {
		t.Errorf("stopped by %s", got)
	}
	var log strings.Builder
	for _, e := range b.raw(s) {
		fmt.Fprintf(&log, "%s\n", e.Data)
	}
	for _, want := range []string{`"subject":"email","part":"output","offset":4,"length":9}`, `"subject":"email","part":"meta","offset":7,"length":9}`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// TestLadderInASession: a transition that the ladder sent back counts when it is
// proposed again, so that a human is asked and then the session stops, also by
// another process that reads the log.
func TestLadderInASession(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", spending("again", specialist.Usage{}, ""))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arb("firstProposal")}, top: `"guards":{"batch_loop":{"ladder":{"block":2,"escalate":4,"stop":5}}}`}))
	for i, want := range []runner.TickStatus{runner.TickAdvanced, runner.TickRejected, runner.TickHuman, runner.TickStopped, runner.TickStopped} {
		switch i {
		case 3: // a human lets it go on once
			b.force(s, "again")
		case 4:
			_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: someone, Note: "try again"})
			b.ok(err)
		}
		if tick := b.step(s); tick.Status != want {
			t.Fatalf("step %d came to %s (%s), want %s", i+1, tick.Status, tick.Reasoning(), want)
		}
		b.r = b.runner()
	}
	if now := b.now(s); now.Executed != 2 || now.Outcome().Code != "batch_repeat" {
		t.Errorf("executed %d, outcome %+v", now.Executed, now.Outcome())
	}
}
