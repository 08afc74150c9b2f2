package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A superseded case is an answer that comes when nobody waits for it any more,
// though its round is open still.
type superseded struct {
	estimate string
	said     specialist.Usage
	at       spend.Book // what is spent once nobody waits
	after    spend.Book // and once it has come
}

func supersededCases() map[string]superseded {
	one := func(money exact.Money, in, out, estimated int64) spend.Book {
		return spend.Book{Calls: 1, Money: money, TokensIn: in, TokensOut: out, Estimated: estimated}
	}
	tokens := specialist.Usage{NumInputTokens: 7, NumOutputTokens: 3, Given: specialist.InputGiven | specialist.OutputGiven}
	sure := func(b spend.Book) spend.Book { b.Estimated = 0; return b }
	all := map[string]superseded{
		"estimate, cost":       {"1", cost(dollar / 4), one(dollar, 0, 0, 1), one(dollar/4, 0, 0, 1)},
		"estimate, tokens":     {"1", tokens, one(dollar, 0, 0, 1), one(dollar, 7, 3, 1)},
		"estimate, nothing":    {"1", specialist.Usage{}, one(dollar, 0, 0, 1), one(dollar, 0, 0, 1)},
		"estimate, unsent":     {"1", specialist.Usage{}.WithCalls(0, 0), one(dollar, 0, 0, 1), spend.Book{Estimated: 1}},
		"no estimate, cost":    {"", cost(dollar / 4), one(0, 0, 0, 0), one(dollar/4, 0, 0, 0)},
		"no estimate, tokens":  {"", tokens, one(0, 0, 0, 0), one(0, 7, 3, 0)},
		"no estimate, nothing": {"", specialist.Usage{}, one(0, 0, 0, 0), one(0, 0, 0, 0)},
		"no estimate, unsent":  {"", specialist.Usage{}.WithCalls(0, 0), one(0, 0, 0, 0), spend.Book{}},
	}
	for name, c := range all {
		c.at, c.after = sure(c.at), sure(c.after) // how many are estimated is no matter here
		all[name] = c
	}
	return all
}

func (b *bench) wantSpent(s *session.Session, when string, want spend.Book) {
	b.Helper()
	got := b.now(s).Spent()
	got.Estimated = 0
	if got != want {
		b.Errorf("%s: spent %+v, want %+v\n%s", when, got, want, b.log(s, 1))
	}
}

// TestSupersededAnswerIsPaidOnce: a proposer answers after the round was decided
// without it, and after the guards have kept it open all the same: for a human, or
// because the session was stopped and resumed. It is charged what it costs, once.
func TestSupersededAnswerIsPaidOnce(t *testing.T) {
	for name, c := range supersededCases() {
		for _, status := range []verdict.Status{verdict.Escalate, verdict.Abort} {
			t.Run(name+", "+status.String(), func(t *testing.T) {
				bubble(t, func(b *bench) {
					b.r = b.runner(inBubble, func(rc *runner.Config) { rc.Guards = []guard.Checker{reject("again", status, "house", "no")} })
					b.cast.play("slow", after(10*time.Second, func(context.Context, specialist.Question) (specialist.Answer, error) {
						b.cast.play("slow", spoiling(errors.New("not again"), specialist.Usage{}.WithCalls(0, 0)))
						return specialist.Answer{TransitionName: "again", Usage: c.said}, nil
					}))
					estimate := ""
					if c.estimate != "" {
						estimate = estimated(c.estimate)
					}
					b.cast.judge("judge", electFirst)
					s := b.start(b.machine(def{who: []string{web("slow", estimate), human("carol"), arbFn("judge")}, top: budget(`"hard_limit_calls":9`)}))
					done := make(chan struct{})
					go func() { defer close(done); _, _ = b.r.Step(b.ctx, s.ID) }()
					synctest.Wait()
					b.propose(s, "carol", "again")
					b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
					b.wantSpent(s, "refused", c.at)
					if status == verdict.Abort {
						_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
						b.ok(err)
					}
					<-done
					b.wantSpent(s, "answered", c.after)
				})
			})
		}
	}
}

// TestSupersededVerdictIsPaidOnce: the proposals change while an arbiter outside this
// process is asked about them. It was sent a question, so that is a call, whether it
// ever answers or not.
func TestSupersededVerdictIsPaidOnce(t *testing.T) {
	for name, c := range supersededCases() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cast.say("a", "again")
			b.cast.play("b", failing(errors.New("not yet")))
			var s *session.Session
			asked := 0
			b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
				if asked++; asked > 1 {
					return arbiter.Decision{}, errors.New("enough")
				}
				b.propose(s, "b", "park")
				b.wantSpent(s, "out of date", c.at)
				d := arbiter.Elect(0, "so be it")
				if c.said != (specialist.Usage{}) {
					d.Expense = &arbiter.Expense{Usage: c.said}
				}
				return d, nil
			}))
			judge := arbWeb("judge")
			if c.estimate != "" {
				judge = paidArbiter(c.estimate)
			}
			s = b.start(b.machine(def{who: []string{fn("a"), fn("b"), judge}, top: budget(`"hard_limit_calls":9`)}))
			b.step(s)
			if b.count(s, session.KindDiscarded) != 1 || asked != 2 {
				t.Errorf("asked %d times\n%s", asked, b.log(s, 1))
			}
			c.after.Calls++ // the second question failed, which is a call
			b.wantSpent(s, "answered", c.after)
		})
	}
}

// TestAskAnsweredFromOutside: a specialist is being asked, and proposes unasked. What
// its answer costs, if it still comes, is charged once, also after the round is over.
func TestAskAnsweredFromOutside(t *testing.T) {
	for name, c := range supersededCases() {
		for _, over := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, over %t", name, over), func(t *testing.T) {
				bubble(t, func(b *bench) {
					b.cast.play("slow", after(10*time.Second, func(context.Context, specialist.Question) (specialist.Answer, error) {
						return specialist.Answer{TransitionName: "again", Usage: c.said}, nil
					}))
					estimate := ""
					if c.estimate != "" {
						estimate = estimated(c.estimate)
					}
					s := b.start(b.machine(def{who: []string{web("slow", estimate), human("human"), arb("alignmentMargin", threshold("1"))}, top: budget(`"hard_limit_calls":9`)}))
					done := make(chan struct{})
					go func() { defer close(done); _, _ = b.r.Step(b.ctx, s.ID) }()
					synctest.Wait()
					b.propose(s, "slow", "park")
					b.wantSpent(s, "answered from outside", c.at)
					if over {
						b.force(s, "park")
						b.wantSpent(s, "over", c.at)
					}
					<-done
					b.wantSpent(s, "answered", c.after)
				})
			})
		}
	}
}

// TestAcceptedAfterItsProposal: a service proposes first and then says that it will
// answer later. The proposal is its answer, so it costs what that says, and the estimate
// only if that says nothing.
func TestAcceptedAfterItsProposal(t *testing.T) {
	for name, c := range map[string]struct {
		usage specialist.Usage
		want  exact.Money
	}{"with its cost": {cost(dollar / 4), dollar / 4}, "without": {specialist.Usage{}, dollar}, "free": {cost(0), 0}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, public)
			var s *session.Session
			b.cast.play("w", func(context.Context, specialist.Question) (specialist.Answer, error) {
				b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w", TransitionName: "park", Usage: c.usage})
				return specialist.Answer{}, specialist.ErrAccepted
			})
			s = b.start(b.machine(def{who: []string{web("w", estimated("1")), human("human"), half}, top: budget(`"hard_limit_calls":9`)}))
			b.step(s)
			b.wantSpent(s, "accepted", spend.Book{Calls: 1, Money: c.want})
		})
	}
}

// TestLateTokensReplaceTheExpected: a model whose price nobody knows answers after its
// round was over. Its tokens were charged as expected then.
func TestLateTokensReplaceTheExpected(t *testing.T) {
	b := modelBench(t)
	var s *session.Session
	b.cast.play("m", func(context.Context, specialist.Question) (specialist.Answer, error) {
		b.force(s, "park")
		b.wantSpent(s, "over", spend.Book{Calls: 1, TokensIn: 1000, TokensOut: 500})
		return specialist.Answer{TransitionName: "again", Usage: tokens(7, 3)}, nil
	})
	s = b.start(b.machine(def{who: []string{llm("m", "unknown"), human("human"), half}, top: budget(`"hard_limit_calls":9`)}))
	b.step(s)
	b.wantSpent(s, "answered", spend.Book{Calls: 1, TokensIn: 7, TokensOut: 3})
}

// TestLateClassifierIsOneCall: a human decides while a classifier is asked. That is a
// call, or free where the guards' own questions are, whenever it answers and whatever
// it says.
func TestLateClassifierIsOneCall(t *testing.T) {
	for name, usage := range map[string]specialist.Usage{"nothing said": {}, "cost": cost(dollar / 4)} {
		for _, debits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, debits %t", name, debits), func(t *testing.T) {
				var s *session.Session
				var b *bench
				want := spend.Book{}
				if debits {
					want.Calls = 1
				}
				c := &censor{says: func(guard.Classification) (guard.ClassifierAnswer, error) {
					b.force(s, "park")
					b.wantSpent(s, "over", want)
					return guard.ClassifierAnswer{Usage: usage}, nil
				}}
				b = c.bench(t)
				s = b.classified(fmt.Sprintf(`,"on_error":"open"},"budget":{"debit_probes":%t`, debits))
				b.step(s)
				if debits {
					want.Money = usage.CostUSD
				}
				b.wantSpent(s, "answered", want)
			})
		}
	}
}
