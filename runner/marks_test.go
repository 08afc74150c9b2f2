package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// BenchmarkMarks notes automatic decisions that humans have looked at: what a lesson
// takes is the same however many came before.
func BenchmarkMarks(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if runner.NoteMarks(n) != n {
					b.Fatal("some are missing")
				}
			}
		})
	}
}

// TestMarksAreLinear counts allocations: ten times the lessons must not take more than a
// few more, as growing by doubling does.
func TestMarksAreLinear(t *testing.T) {
	few := testing.AllocsPerRun(3, func() { runner.NoteMarks(1_000) })
	many := testing.AllocsPerRun(3, func() { runner.NoteMarks(10_000) })
	if many > few+30 {
		t.Errorf("1,000 lessons take %g allocations, 10,000 take %g", few, many)
	}
}

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
