package runner_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// TestStrategyEndsItsGoroutine has a strategy end the goroutine it runs on, as a
// test's FailNow does: the step ends, nothing stays locked, and the session goes
// on later from where it was.
func TestStrategyEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		runtime.Goexit()
		return specialist.Answer{}, nil
	})
	b.said(map[string]string{"w": "finish"})
	b.cast.judge("judge", electFirst)
	s := b.start(b.desk(fn("a"), web("w"), arbFn("judge")))
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_, err := b.r.Step(b.ctx, s.ID)
		t.Errorf("Step returned %v", err)
	}()
	<-ended
	results, err := b.r.Tick(b.ctx)
	b.ok(err)
	if len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), "ended its goroutine") {
		t.Errorf("Tick = %+v", results)
	}
	b.cast.say("a", "finish")
	b.stepTo(s, runner.TickAdvanced)
}
