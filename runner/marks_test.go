package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// TestEvaluateGivesTicketsBack: an evaluation that fails before its arbiter is asked
// leaves nothing of the quota held.
func TestEvaluateGivesTicketsBack(t *testing.T) {
	calls := int64(2)
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: &calls}}}))
	b.cast.say("a", "again")
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Decision{}, errors.New("not asked")
	}))
	failing := &contested{Store: b.store}
	failing.on(func(*session.Change) error { return errPower })
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), paidArbiter("1")}}))
	b.propose(s, "a", "again")
	r := b.runner(tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: &calls}}}), func(c *runner.Config) { c.Store = failing })
	for range 5 {
		if _, err := r.Evaluate(b.ctx, s.ID); !errors.Is(err, errPower) {
			t.Fatalf("the evaluation: %v", err)
		}
	}
	if held := r.QuotaHeld(""); held != 0 {
		t.Errorf("%d calls are held though nobody was asked", held)
	}
}
