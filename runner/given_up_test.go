package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// TestAnswersOfAStepThatIsEnded: the round was decided elsewhere while an answer was being committed, and the step was ended
// meanwhile, as where a process was parted from its store: the answer is recorded as discarded, with its cost. It was forgotten.
func TestAnswersOfAStepThatIsEnded(t *testing.T) {
	for name, who := range map[string][]string{"the last": {web("a")}, "one of two": {web("a"), web("slow")}} {
		t.Run(name, func(t *testing.T) {
			c := &contested{}
			b := newBench(t, func(cfg *runner.Config) { c.Store = cfg.Store; cfg.Store = c })
			b.cast.play("a", spending("again", cost(dollar), ""))
			b.cast.play("slow", hanging)
			s := b.start(b.desk(append(who, human("human"), half)...))
			ctx, cancel := context.WithCancel(b.ctx)
			c.once("proposed", func() { b.force(s, "park"); cancel() })
			if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) {
				t.Errorf("the step came to %v", err)
			}
			if now := b.now(s); now.State.Name != "parked" || now.Spent().Money != dollar || b.count(s, "discarded") != 1 {
				t.Errorf("spent are %s:\n%s", now.Spent().Money, b.log(s, 2))
			}
		})
	}
}

// TestFunctionsOfAStepThatIsEnded: what functions alone have answered in a step that is ended is not recorded; they are called again.
func TestFunctionsOfAStepThatIsEnded(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(b.ctx)
	b.cast.say("a", "again")
	b.cast.play("b", func(context.Context, specialist.Question) (specialist.Answer, error) {
		cancel()
		return specialist.Answer{TransitionName: "again"}, nil
	})
	s := b.start(b.desk(fn("a"), fn("b"), half))
	if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) || b.count(s, "asked") != 0 {
		t.Errorf("the step came to %v:\n%s", err, b.log(s, 2))
	}
}
