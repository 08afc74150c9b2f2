package backtest_test

import (
	"context"
	"iter"
	"regexp"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/session"
)

// old is the log of a store as an earlier version wrote it: verdicts do not say how far
// the panel was heard, and what was elected was executed.
type old struct{ backtest.Source }

var quorum = regexp.MustCompile(`,"quorum":\{[^}]*\}`)

func (o old) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		for e, err := range o.Source.Log(ctx, machineName, after) {
			e.Events = quorum.ReplaceAll(e.Events, nil)
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestQuorum (C5.1): rounds of which half the panel failed come out as they were
// recorded; without who failed they are decided; and what an earlier version recorded
// is not held to a quorum that nobody counted then.
func TestQuorum(t *testing.T) {
	h := newHistory(t)
	h.ok(h.start(plot{name: "half", voters: "v90 lost", arbiter: arb(`"strategyFnName":"alignmentMargin"`)}.machine(t), 10).play(200))
	h.ok(h.start(plot{name: "any", voters: "v90 lost", top: `"quorum":"any"`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)}.machine(t), 10).play(200))

	h.ok(h.start(plot{name: "heard", voters: "v90! lost", top: `"quorum":"any"`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)}.machine(t), 10).play(100))
	h.ok(h.start(plot{name: "unheard", voters: "v90 lost!", top: `"quorum":"any"`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)}.machine(t), 10).play(100))

	automatic := map[string]int{}
	for _, name := range []string{"heard", "unheard"} { // who is required has answered, or has failed
		r, _ := h.flips(backtest.Config{MachineName: name, Policy: backtest.Policy{Threshold: threshold(t, 0)}})
		automatic[name] = r.Total.New.Automatic[0]
	}
	if automatic["heard"] <= automatic["unheard"] {
		t.Errorf("decided without a human: %v", automatic)
	}
	r, flips := h.flips(backtest.Config{MachineName: "half", Exact: true})
	if len(flips) > 0 || r.Verdicts == 0 || r.Reproduced != r.Verdicts {
		t.Errorf("unchanged: %d of %d verdicts, %d flips", r.Reproduced, r.Verdicts, len(flips))
	}
	r, flips = h.flips(backtest.Config{MachineName: "half", Policy: backtest.Policy{Drop: []string{"lost-1"}}})
	if len(flips) == 0 || r.Total.New.Automatic[0] <= r.Total.Old.Automatic {
		t.Errorf("without who failed: %d flips, %+v", len(flips), r.Total)
	}
	if _, flips = h.flips(backtest.Config{MachineName: "any", Policy: backtest.Policy{Threshold: threshold(t, 1)}}); len(flips) > 0 {
		t.Errorf("a declared quorum of any: %d flips", len(flips))
	}
	if r, flips = h.flips(backtest.Config{Source: old{h.store}, MachineName: "any", Exact: true}); len(flips) > 0 || r.Verdicts == 0 || r.Reproduced != r.Verdicts {
		t.Errorf("of an earlier version: %d of %d verdicts, %d flips", r.Reproduced, r.Verdicts, len(flips))
	}
	if r, _ = h.flips(backtest.Config{Source: old{h.store}, MachineName: "half", Exact: true}); r.Reproduced == r.Verdicts {
		t.Error("what is recorded of the panel makes no difference")
	}
	if q := (*arbiter.Quorum)(nil); !q.Reached() {
		t.Error("where nobody counted, the quorum is not reached")
	}
}
