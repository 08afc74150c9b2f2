package backtest_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/session"
)

// plots are machines of every strategy and every way of asking.
var plots = []plot{
	{name: "margin", voters: "v90 v80 v60", arbiter: arb(`"strategyFnName":"alignmentMargin"`, `"threshold":0.3`)},
	{name: "margin-eager", voters: "v90 v80 v70 v60", top: `"consensusThreshold":0.2,"solicit":"eager"`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)},
	{name: "margin-sequential", voters: "v90 v80 v70 v60 lost", top: `"consensusThreshold":0.4,"solicit":{"mode":"sequential","wave":2}`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)},
	{name: "margin-champion", voters: "v95 v80 v60", top: `"consensusThreshold":0.4,"solicit":{"champion":true}`, arbiter: arb(`"strategyFnName":"alignmentMargin"`)},
	{name: "first", voters: "v80 v60", arbiter: arb(`"strategyFnName":"firstProposal"`)},
	{name: "expression", voters: "v80 v70 v60", arbiter: arb(`"strategyFn":"= margin >= threshold ? heaviest : none"`, `"threshold":0.2`)},
	{name: "silent", voters: "lost lost", arbiter: arb(`"strategyFn":"= proposals == 0 ? none : leader"`)},
	{name: "bayes", voters: "v90 v80 v60 v30", arbiter: arb(`"strategyFnName":"bayes"`, `"threshold":0.85`)},
	{name: "bayes-audited", voters: "v95 v95 v80", top: `"audit":{"mode":"before","rate":0.2},"secondHuman":{"rate":0.5}`, arbiter: arb(`"strategyFnName":"bayes"`, `"threshold":0.8`)},
	{name: "bayes-sequential", voters: "v95 v90 v80 v60", top: `"consensusThreshold":0.8,"solicit":{"mode":"sequential","wave":"auto"}`, arbiter: arb(`"strategyFnName":"bayes"`)},
	{name: "bayes-collapse", voters: "v95 v95 v80", top: `"risk":{"maxError":0.2,"confidence":0.8},"collapse":{"target":0.6,"alpha":0.2,"classTarget":0.3}`, arbiter: arb(`"strategyFnName":"bayes"`)},
	{name: "bayes-risk", voters: "v95 v95 v90 v60", top: `"risk":{"maxError":0.2,"confidence":0.8}`, arbiter: arb(`"strategyFnName":"bayes"`)},
	{name: "bayes-seconded", voters: "v95 v90 v80", top: `"secondHuman":{"rate":0.6,"when":"before"}`, arbiter: arb(`"strategyFnName":"bayes"`, `"threshold":0.8`)},
	{name: "judge", voters: "v90 v80 lost", arbiter: arb(`"strategyFn":"judge"`)},
}

// TestReproduces back-tests thousands of rounds of every strategy without any
// change: every recorded verdict comes out the same, word for word.
func TestReproduces(t *testing.T) {
	h := newHistory(t)
	var players []*player
	for _, p := range plots {
		players = append(players, h.start(p.machine(t), 20))
	}
	turns := 5
	if testing.Short() {
		turns = 2
	}
	for range turns {
		h.together(players, 80)
		h.restart()
	}
	asked := h.calls.Load()
	r, err := backtest.Run(h.ctx, backtest.Config{Source: h.store, Exact: true, Flip: func(f backtest.Flip) error {
		t.Errorf("a flip: %+v", f)
		return nil
	}})
	h.ok(err)
	if h.calls.Load() != asked {
		t.Errorf("a back-test asked %d times", h.calls.Load()-asked)
	}
	t.Logf("%d verdicts, %d by champions, %d rounds late", r.Verdicts, r.Reigned, r.Late)
	if r.Reigned == 0 {
		t.Error("no champion ever decided")
	}
	if r.Late == 0 {
		t.Error("no verdict was given by less than was known when it was stored")
	}
	if r.Verdicts < 600*turns || r.Reproduced != r.Verdicts {
		t.Errorf("%d of %d verdicts were reproduced", r.Reproduced, r.Verdicts)
	}
}

// TestProgress: each record of the log is told of once, by its place.
func TestProgress(t *testing.T) {
	h := newHistory(t)
	h.together([]*player{h.start(plots[0].machine(t), 3)}, 5)
	var places, want []int64
	for e, err := range h.store.Log(h.ctx, "", 0) {
		h.ok(err)
		want = append(want, e.Place)
	}
	_, err := backtest.Run(h.ctx, backtest.Config{Source: h.store, Progress: func(place int64) { places = append(places, place) }})
	h.ok(err)
	if len(want) == 0 || !slices.Equal(places, want) {
		t.Errorf("told of %v, want %v", places, want)
	}
}

// An endless source is a log whose records come again and again.
type endless struct {
	backtest.Source
	most, read int
}

func (e *endless) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		for e.read < e.most {
			for entry, err := range e.Source.Log(ctx, machineName, after) {
				if e.read++; !yield(entry, err) {
					return
				}
			}
		}
	}
}

// TestCancelled: who gives up leaves the rest of the log unread.
func TestCancelled(t *testing.T) {
	h := newHistory(t)
	h.together([]*player{h.start(plots[0].machine(t), 3)}, 5)
	ctx, cancel := context.WithCancel(h.ctx)
	log := &endless{Source: h.store, most: 100_000}
	_, err := backtest.Run(ctx, backtest.Config{Source: log, Progress: func(int64) { cancel() }})
	if err == nil || log.read >= log.most {
		t.Errorf("it came to %v after %d records", err, log.read)
	}
}
