package runner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestAnswersOfAStepThatIsEnded: the round was decided elsewhere while an answer was being committed, and the step was ended
// meanwhile, as where a process was parted from its store: the answer is recorded as discarded, with its cost. It was forgotten.
func TestAnswersOfAStepThatIsEnded(t *testing.T) {
	for name, who := range map[string][]string{"the last": {web("a")}, "one of two": {web("a"), web("slow")}} {
		t.Run(name, func(t *testing.T) {
			c := &contested{}
			b := newBench(t, func(cfg *runner.Config) { c.Store = heeding{cfg.Store}; cfg.Store = c })
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

// TestAnswerOfAProposalThatIsEnded: so it is where one specialist is asked for a proposal, before it is answered and while the answer is
// committed.
func TestAnswerOfAProposalThatIsEnded(t *testing.T) {
	for _, committing := range []bool{false, true} {
		c := &contested{}
		b := newBench(t, func(cfg *runner.Config) { c.Store = heeding{cfg.Store}; cfg.Store = c })
		s := b.start(b.desk(web("a"), human("human"), half))
		ctx, cancel := context.WithCancel(b.ctx)
		answer := spending("again", cost(dollar), "")
		b.cast.play("a", func(inner context.Context, q specialist.Question) (specialist.Answer, error) {
			if !committing {
				cancel()
			}
			return answer(inner, q)
		})
		if committing {
			c.once("proposed", func() { b.force(s, "park"); cancel() })
		}
		if _, _, err := b.r.Propose(ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("it came to %v", err)
		}
		if now := b.now(s); now.Spent().Money != dollar || b.count(s, "discarded")+b.count(s, "proposed") != 1 {
			t.Errorf("spent are %s:\n%s", now.Spent().Money, b.log(s, 2))
		}
	}
}

// A heeding store loads nothing for a context that is done, as one in another process does.
type heeding struct{ session.Store }

// Load implements session.SessionStore.
func (h heeding) Load(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.Store.Load(ctx, programs, id)
}

// TestAnswersOfAStepWhoseStoreIsLost: what was answered to a process that has lost its store is recorded once that can be reached again,
// however often it cannot meanwhile. It was forgotten.
func TestAnswersOfAStepWhoseStoreIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &contested{}
		b := newBench(t, inBubble, func(cfg *runner.Config) { c.Store = cfg.Store; cfg.Store = c })
		b.cast.play("a", spending("again", cost(dollar), ""))
		s := b.start(b.desk(web("a"), human("human"), half))
		ctx, cancel := context.WithCancelCause(b.ctx)
		lost := time.Time{}
		c.once("proposed", func() {
			b.force(s, "park")
			cancel(session.ErrOwnerLost)
			lost = time.Now()
			c.on(func(*session.Change) error {
				if time.Since(lost) < 50*time.Second {
					return session.ErrBusy
				}
				return nil
			})
		})
		if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) || time.Since(lost) > time.Minute {
			t.Errorf("the step came to %v after %s", err, time.Since(lost))
		}
		if b.count(s, "discarded") != 1 {
			t.Errorf("recorded is:\n%s", b.log(s, 2))
		}
		s = b.start(b.desk(web("a"), human("human"), half))
		ctx, cancel = context.WithCancelCause(b.ctx)
		c.on(func(change *session.Change) error {
			if !holds(change, "proposed") {
				return nil
			}
			cancel(session.ErrOwnerLost)
			lost = time.Now()
			c.on(func(*session.Change) error { return session.ErrBusy })
			return session.ErrBusy
		})
		if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, session.ErrBusy) || time.Since(lost) != time.Minute {
			t.Errorf("the step came to %v after %s", err, time.Since(lost))
		}
	})
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
