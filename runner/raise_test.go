package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// raise resumes a session with one limit raised by carol.
func (b *bench) raise(s *session.Session, limit, to string) error {
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{SpecialistID: "carol", Note: "worth it", Raise: []guard.Raise{{Limit: limit, To: json.Number(to)}}})
	return err
}

// TestRaisedLimitLetsASessionGoOn stops sessions by each kind of limit. Resumed, each
// stops again at once; with the limit raised it goes on as far as the new one lets it,
// is stopped there, and can be raised once more. What was spent stays spent, and a
// process that reads the session from its log has the same limits.
func TestRaisedLimitLetsASessionGoOn(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 20, NumOutputTokens: 10, Given: specialist.InputGiven | specialist.OutputGiven}
	for _, c := range []struct {
		guards, limit string
		u             specialist.Usage
		code          string
		passes        [3]int    // transitions until it stops: at first, and after each raise
		to            [2]string // what it is raised to
	}{
		{`"limits":{"max_steps":2}`, "limits.max_steps", tokens, "max_steps", [3]int{2, 3, 1}, [2]string{"5", "6"}},
		{`"limits":{"max_total_tokens":60}`, "limits.max_total_tokens", tokens, "max_tokens_total", [3]int{2, 2, 1}, [2]string{"120", "159"}},
		{`"cost":{"max_dollars_per_task":2}`, "cost.max_dollars_per_task", cost(dollar), "cost_cap", [3]int{2, 1, 2}, [2]string{"3.5", "5"}},
		{`"budget":{"hard_limit_usd":2},"loop_detection":{"cycle":false}`, "budget.hard_limit_usd", cost(dollar), "budget_usd", [3]int{2, 1, 2}, [2]string{"3.5", "5"}},
		{`"budget":{"hard_limit_calls":4},"loop_detection":{"cycle":false}`, "budget.hard_limit_calls", cost(dollar), "budget_calls", [3]int{4, 1, 2}, [2]string{"5", "7"}},
		{`"budget":{"hard_limit_wall_ms":2500},"loop_detection":{"cycle":false}`, "budget.hard_limit_wall_ms", cost(dollar), "budget_wall", [3]int{2, 3, 4}, [2]string{"5500", "9500"}},
		{`"loop_detection":{"max_state_visits":2,"cycle":false}`, "loop_detection.max_state_visits", tokens, "loop_state_cycle", [3]int{2, 2, 3}, [2]string{"4", "7"}},
	} {
		t.Run(c.limit, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.cast.play("a", after(time.Second, spending("again", c.u, "")))
				b.cast.judge("judge", electFirst)
				who := []string{web("a"), human("carol"), arbFn("judge")}
				if c.code == "budget_usd" {
					who[0] = web("a", estimated("1"))
				}
				var o runner.StartOptions
				if c.code == "loop_state_cycle" {
					o.Meta = []byte(`{"known":1}`) // where nothing is known a loop only warns
				}
				s := b.start(b.machine(def{who: who, top: `"guards":{` + c.guards + `}`}), o)
				for round, passes := range c.passes {
					for range passes {
						b.stepTo(s, runner.TickAdvanced)
					}
					tick := b.stepTo(s, runner.TickStopped)
					spent := b.now(s).Spent()
					_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
					b.ok(err)
					again := b.stepTo(s, runner.TickStopped)
					if tick.Code != c.code || again.Code != c.code || b.now(s).Spent() != spent {
						t.Fatalf("stopped by %s, resumed by %s, spent %+v and then %+v", tick.Code, again.Code, spent, b.now(s).Spent())
					}
					if round == len(c.to) {
						break
					}
					b.ok(b.raise(s, c.limit, c.to[round]))
					if b.now(s).Spent() != spent {
						t.Errorf("raising changed what was spent: %+v, it was %+v", b.now(s).Spent(), spent)
					}
					b.r = b.runner(inBubble) // another process reads the session from its log
				}
				raised := b.now(s).Raised()
				if len(raised) != 2 || raised[0].From.String() == raised[1].From.String() || raised[1].From != raised[0].To || raised[1].To.String() != c.to[1] {
					t.Errorf("raised was %+v", raised)
				}
			})
		})
	}
}

// TestRaisedLimitIsOfOneSession: another session of the machine keeps the limit, so
// does the definition, and the event says who raised it, why, and from what.
func TestRaisedLimitIsOfOneSession(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("carol"), half}, top: `"guards":{"limits":{"max_steps":0}}`})
	one, other := b.start(m), b.start(m)
	b.stepTo(one, runner.TickStopped)
	b.ok(b.raise(one, "limits.max_steps", "1"))
	b.stepTo(one, runner.TickAdvanced)
	b.stepTo(other, runner.TickStopped)
	if len(b.now(other).Raised()) != 0 || string(b.now(one).Machine().JSON()) != string(m.JSON()) {
		t.Error("the raise reached further than its session")
	}
	want := `{"specialistId":"carol","note":"worth it","raised":[{"limit":"limits.max_steps","state":"open","from":0,"to":1}]}`
	for _, r := range b.raw(one) {
		if r.Kind == session.KindResumed && string(r.Data) != want {
			t.Errorf("the event is %s", r.Data)
		}
	}
	if n := runner.Plans(b.r); n != 1 {
		t.Errorf("%d plans are kept: each raise would cost one for good", n)
	}
	if v := b.now(one).View(); len(v.Raised) != 1 || v.Raised[0].To != "1" {
		t.Errorf("shown is %+v", v.Raised)
	}
}

// TestRaisedLimitByState: a state with a limit of its own keeps it when another
// state's is raised.
func TestRaisedLimitByState(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", spending("again", specialist.Usage{NumInputTokens: 5, Given: specialist.InputGiven}, ""))
	d := def{who: []string{fn("a"), human("carol"), half}, top: `"guards":{"limits":{"max_tokens_per_step":4}}`,
		states: `"open":{"transitions":{"finish":"done","again":"strict"}},"strict":{"transitions":{"again":"same"},"guards":{"limits":{"max_tokens_per_step":3}}},"same":{"transitions":{"again":"done"}},"done":{}`}
	s := b.start(b.machine(d))
	b.stepTo(s, runner.TickStopped)
	b.ok(b.raise(s, "limits.max_tokens_per_step", "5"))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickStopped) // of the state's own
	b.ok(b.raise(s, "limits.max_tokens_per_step", "9"))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickAdvanced) // in the third the first raise applies
}

// TestRaiseIsRefused: nothing is written of a raise that nobody may make, or that is
// none.
func TestRaiseIsRefused(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("carol"), half}, top: `"guards":{"limits":{"max_steps":0}}`}))
	b.stepTo(s, runner.TickStopped)
	before := b.now(s).Sequence
	for _, c := range []struct {
		who, note, limit, to string
		text, hint           string
	}{
		{"a", "n", "limits.max_steps", "5", `only humans who take part in state "open" can raise a limit, and "a" is none`, "(isHuman)"},
		{"", "n", "limits.max_steps", "5", `only humans who take part in state "open" can raise a limit, and "" is none`, "(isHuman)"},
		{runner.Operator, "n", "limits.max_steps", "5", `only humans who take part in state "open" can raise a limit, and "__operator" is none`, "(isHuman)"},
		{"carol", "", "limits.max_steps", "5", "a limit is raised without a note: say why", ""},
		{"carol", "n", "limits.max_stepz", "5", `"limits.max_stepz" is no limit that can be raised`, `did you mean "limits.max_steps"?`},
		{"carol", "n", "limits.max_steps", "0", "limits.max_steps is 0 already, so 0 is no raise", "give more than 0"},
		{"carol", "n", "limits.max_steps", "many", `max_steps is "many", not a whole number from 0`, ""},
		{"carol", "n", "budget.hard_limit_usd", "5", "budget.hard_limit_usd limits nothing here, so there is nothing to raise", ""},
	} {
		o := runner.ResumeOptions{SpecialistID: machine.SpecialistID(c.who), Note: c.note, Raise: []guard.Raise{{Limit: c.limit, To: json.Number(c.to)}}}
		_, err := b.r.Resume(b.ctx, s.ID, o)
		refused, ok := errors.AsType[*runner.Error](err)
		if !ok || refused.Message != c.text || !strings.Contains(refused.Hint, c.hint) {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if forbidden := errors.Is(err, runner.ErrForbidden); forbidden != strings.Contains(c.hint, "isHuman") || !forbidden && refused.Code != session.BadRaise {
			t.Errorf("%+v: the error is %s", c, refused.Code)
		}
	}
	if now := b.now(s); now.Sequence != before || now.Status != session.Stopped {
		t.Errorf("a refused raise left the session at %d, %s", now.Sequence, now.Status)
	}
	b.force(b.start(b.desk(fn("a"), human("human"), half)), "finish")
}

// TestRaiseWhereASessionIsNotStopped: a session that runs has its limit raised too,
// one that has completed has not, and without guards there is nothing to raise.
func TestRaiseWhereASessionIsNotStopped(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("carol"), half}, top: `"guards":{"limits":{"max_steps":1}}`})
	s := b.start(m)
	b.ok(b.raise(s, "limits.max_steps", "2"))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickStopped)
	b.ok(b.raise(s, "limits.max_steps", "3"))
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: "finish"})
	err := b.raise(s, "limits.max_steps", "4")
	b.refused(err, runner.ErrNotRunning, `the session has completed in "done", so there is nothing to raise a limit for`)
	err = b.raise(b.start(b.desk(fn("a"), human("carol"), half)), "limits.max_steps", "4")
	b.refused(err, nil, "limits.max_steps limits nothing here, so there is nothing to raise")
}

// TestRaisedLimitInAHumansInbox: where a human is asked because there is no money
// left, as in mode sequential, a raise has the round asked instead.
func TestRaisedLimitInAHumansInbox(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", charging("finish", dollar))
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("carol"), arbFn("judge")}, top: `"solicit":{"mode":"sequential"},` + budget(`"hard_limit_usd":0.5`)}))
		if tick := b.stepTo(s, runner.TickHuman); tick.Code != "budget_usd" {
			t.Fatalf("a human is asked because of %s", tick.Code)
		}
		b.ok(b.raise(s, "budget.hard_limit_usd", "1"))
		b.stepTo(s, runner.TickAdvanced)
		if now := b.now(s); now.Status != session.Completed || now.Spent().Money != dollar {
			t.Errorf("the session is %s, and has spent $%s", now.Status, now.Spent().Money)
		}
	})
}

// TestRaiseKeepsATenantsQuota: what a tenant may use in all is not raised with a
// session's budget.
func TestRaiseKeepsATenantsQuota(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(2 * dollar)}}}))
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "again", Usage: cost(dollar)}, nil
	})
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("carol"), arbFn("judge")}, top: budget(`"hard_limit_usd":1`)}))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickStopped)
	b.ok(b.raise(s, "budget.hard_limit_usd", "9"))
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "quota_exceeded" || b.now(s).Spent().Money != 2*dollar {
		t.Errorf("stopped by %s at $%s", tick.Code, b.now(s).Spent().Money)
	}
}
