package runner_test

import (
	"context"
	"testing"

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
