package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// spoiling is the part of a service of whose answer little is known but an error.
func spoiling(err error, u specialist.Usage) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{Usage: u}, err
	}
}

// TestWhatWasSentIsACall: a service that says nothing of its cost, and has no
// estimate, counts as a call whatever came of it: to the session's budget and to the
// tenant's quota, alike. Where nothing was sent both count nothing.
func TestWhatWasSentIsACall(t *testing.T) {
	garbage := fmt.Errorf("no JSON: %w", specialist.ErrUncounted)
	for name, c := range map[string]struct {
		part  part
		calls int64
	}{
		"answered":    {saying("again"), 1},
		"garbage":     {spoiling(garbage, specialist.Usage{}), 1},
		"refused":     {spoiling(errors.New("Webhook error (500): no"), specialist.Usage{}), 1},
		"illegal":     {saying("nowhere"), 1},
		"panics":      {func(context.Context, specialist.Question) (specialist.Answer, error) { panic("no") }, 1},
		"too late":    {after(time.Hour, saying("again")), 1},
		"unsent":      {spoiling(errors.New("10.0.0.1 is a private address"), specialist.Usage{}.WithCalls(0, 0)), 0},
		"three calls": {spoiling(errors.New("no"), specialist.Usage{}.WithCalls(3, 3)), 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.r = b.runner(inBubble, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: new(int64(99))}}}))
				b.cast.play("a", c.part)
				b.cast.judge("judge", electFirst)
				s := b.start(b.machine(def{who: []string{web("a"), human("carol"), arbFn("judge")}, top: budget(`"hard_limit_calls":9`)}))
				b.step(s)
				if used, _ := b.r.QuotaUsed(""); b.now(s).Spent().Calls != c.calls || used[0] != c.calls {
					t.Errorf("the session made %d calls, its tenant %d, want %d\n%s", b.now(s).Spent().Calls, used[0], c.calls, b.log(s, 2))
				}
			})
		})
	}
}

// TestCallsThatFailAreBounded: a service that never says anything readable is asked as
// often as hard_limit_calls says, and no more, however often a human has it tried.
func TestCallsThatFailAreBounded(t *testing.T) {
	b := newBench(t)
	asked := 0
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		asked++
		return specialist.Answer{}, fmt.Errorf("no JSON: %w", specialist.ErrUncounted)
	})
	s := b.start(b.machine(def{who: []string{web("a"), human("carol"), half}, top: budget(`"hard_limit_calls":3`)}))
	for range 5 {
		b.step(s)
		_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
		b.ok(err)
	}
	if tick := b.stepTo(s, runner.TickStopped); asked != 3 || tick.Code != "budget_calls" {
		t.Errorf("asked %d times, then %s", asked, tick.Code)
	}
}

// TestRemoteArbiterIsACall: an arbiter outside the process that says nothing of its
// cost is a call, whether it decides or fails.
func TestRemoteArbiterIsACall(t *testing.T) {
	for _, decide := range []bool{true, false} {
		b := newBench(t)
		b.cast.say("a", "again")
		b.cast.judge("judge", electFirst)
		if !decide {
			b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
				return arbiter.Decision{}, errors.New("Webhook error (500): no")
			}))
		}
		s := b.start(b.machine(def{who: []string{fn("a"), human("carol"), arbWeb("judge")}, top: budget(`"hard_limit_calls":9`)}))
		b.step(s)
		if got := b.now(s).Spent(); got.Calls != 1 || got.Money != 0 {
			t.Errorf("decides %t: spent %+v", decide, got)
		}
	}
}

// TestLateAnswerIsOneCall: a service without an estimate that answers after its round
// was closed is one call, as it was when the round was.
func TestLateAnswerIsOneCall(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("slow", after(10*time.Second, saying("again")))
		s := b.start(b.machine(def{who: []string{web("slow"), human("human"), half}, top: budget(`"hard_limit_calls":9`)}))
		done := make(chan struct{})
		go func() { defer close(done); b.step(s) }()
		synctest.Wait()
		b.force(s, "again")
		if got := b.now(s).Spent().Calls; got != 1 {
			t.Errorf("%d calls when the round is closed", got)
		}
		<-done
		if got := b.now(s).Spent().Calls; got != 1 || b.count(s, session.KindDiscarded) != 1 {
			t.Errorf("%d calls after the late answer\n%s", got, b.log(s, 1))
		}
	})
}

// TestWhoWaitsInLineIsNoCall: who was recorded as asked, and whose turn did not come
// before the time was over, was never sent anything.
func TestWhoWaitsInLineIsNoCall(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("a", after(time.Hour, saying("again")))
		b.cast.play("b", after(time.Hour, saying("again")))
		top := `"solicit":{"maxParallel":1,"roundTimeout":"10s"},` + budget(`"hard_limit_calls":9`)
		s := b.start(b.machine(def{who: []string{web("a"), web("b"), human("carol"), half}, top: top}))
		b.stepTo(s, runner.TickHuman)
		if got := b.now(s).Spent().Calls; got != 1 || len(b.cast.who()) != 1 || b.count(s, session.KindAskFailed) != 2 {
			t.Errorf("%d calls\n%s", got, b.log(s, 1))
		}
	})
}
