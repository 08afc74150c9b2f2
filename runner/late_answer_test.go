package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestLateAnswerAfterTheEnd: an answer that arrives when a human has completed the
// session settles its ask's account. No round follows the last one, and so the
// estimate stayed.
func TestLateAnswerAfterTheEnd(t *testing.T) {
	b := newBench(t)
	var s *session.Session
	b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		b.force(s, "finish")
		return spending("again", cost(dollar/4), "")(ctx, q)
	})
	s = b.start(b.desk(web("a", estimated("1")), human("human"), half))
	b.step(s)
	if now := b.now(s); now.Status != session.Completed || now.Spent().Money != dollar/4 {
		t.Errorf("the session is %s and spent $%s, the answer cost $%s", now.Status, now.Spent().Money, dollar/4)
	}
}

// TestLateProposalsAreChargedOnce: a service that said it would answer later does so as a
// proposal for a round that is over: what its ask was charged as estimated is corrected, once,
// however often it says so.
func TestLateProposalsAreChargedOnce(t *testing.T) {
	b := newBench(t, public)
	b.cast.play("a", failing(specialist.ErrAccepted))
	s := b.start(b.desk(web("a", estimated("0.5")), human("human"), half))
	b.step(s)
	old := b.now(s).Key()
	b.force(s, "again")
	if got := b.now(s).Spent().Money; got != dollar/2 {
		t.Fatalf("the ask is charged $%s", got)
	}
	before := b.now(s).Sequence
	for range 3 {
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, SpecialistID: "a", RoundID: old.ID(), TransitionName: "again", Usage: cost(dollar / 4)})
		if !errors.Is(err, runner.ErrStaleRound) {
			t.Fatalf("it was not refused: %v", err)
		}
		if got := b.now(s).Spent(); got.Money != dollar/4 || got.Calls != 1 {
			t.Errorf("$%s in %d calls is spent", got.Money, got.Calls)
		}
	}
	b.wantLog(s, before, "discarded 1 0 a again late 0.25")
}
