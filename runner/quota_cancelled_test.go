package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// TestNothingIsChargedBeforeItIsSent: who calls with a context that is done has nobody
// asked, and no quota charged. Evaluate, and Propose that asks, kept the estimate.
func TestNothingIsChargedBeforeItIsSent(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		who []string
		do  func(b *bench, ctx context.Context, id specialist.SessionID) error
	}{
		"evaluate, an arbiter far away": {[]string{paidArbiter("0.5")}, func(b *bench, ctx context.Context, id specialist.SessionID) error {
			_, err := b.r.Evaluate(ctx, id)
			return err
		}},
		"evaluate, a function": {[]string{arbFn("judge", estimated("0.5"))}, func(b *bench, ctx context.Context, id specialist.SessionID) error {
			_, err := b.r.Evaluate(ctx, id)
			return err
		}},
		"propose, a service": {[]string{half}, func(b *bench, ctx context.Context, id specialist.SessionID) error {
			_, _, err := b.r.Propose(ctx, runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "w"})
			return err
		}},
		"propose, a function": {[]string{half}, func(b *bench, ctx context.Context, id specialist.SessionID) error {
			_, _, err := b.r.Propose(ctx, runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "f"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everSpending)
			b.cast.say("w", "again")
			b.cast.say("f", "again")
			b.cast.judge("judge", electFirst)
			s := b.start(b.machine(def{who: append([]string{web("w", estimated("1")), fn("f", estimated("1")), human("human")}, c.who...)}))
			b.propose(s, "human", "again")
			if err := c.do(b, gone, s.ID); !errors.Is(err, context.Canceled) {
				t.Errorf("it came to %v", err)
			}
			if used, _ := b.r.QuotaUsed(""); used != [3]int64{} || len(b.cast.who()) != 0 || b.now(s).Spent().Calls != 0 {
				t.Errorf("the quota has %v, the session %+v", used, b.now(s).Spent())
			}
		})
	}
}

// TestAskIsChargedOnceHoweverOftenItIsGivenUp: an ask that is cancelled under way stays
// open and is repeated under its key, so its service is paid once, and once it counts. Each
// cancellation cost the quota another estimate.
func TestAskIsChargedOnceHoweverOftenItIsGivenUp(t *testing.T) {
	for name, who := range map[string][]string{"a proposer": {web("w", estimated("1")), half}, "an arbiter": {fn("f"), paidArbiter("1")}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everSpending)
			b.cast.say("f", "again")
			var cancel context.CancelFunc
			b.cast.play("w", func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
				cancel()
				return specialist.Answer{}, ctx.Err()
			})
			b.cast.judge("judge", arbiter.Func(func(ctx context.Context, _ *arbiter.Round) (arbiter.Decision, error) {
				cancel()
				return arbiter.Decision{}, ctx.Err()
			}))
			s := b.start(b.machine(def{who: append([]string{human("human")}, who...)}))
			for range 4 {
				ctx, stop := context.WithCancel(b.ctx)
				cancel = stop
				if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) {
					t.Errorf("the step came to %v", err)
				}
				stop()
			}
			if used, _ := b.r.QuotaUsed(""); used != [3]int64{1, 0, int64(dollar)} {
				t.Errorf("while it is open, the quota has %v", used)
			}
			b.cast.play("w", spending("again", cost(dollar), ""))
			b.cast.judge("judge", costing(electFirst, dollar))
			b.stepTo(s, runner.TickAdvanced)
			if used, _ := b.r.QuotaUsed(""); used != [3]int64{1, 0, int64(dollar)} || b.now(s).Spent().Money != dollar || b.now(s).Spent().Calls != 1 {
				t.Errorf("the quota has %v, the session %+v", used, b.now(s).Spent())
			}
		})
	}
}
