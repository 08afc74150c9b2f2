package runner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// ahead has a clock that is past every deadline of the bench.
func (b *bench) ahead(c *runner.Config) {
	c.Now = func() time.Time { return b.clock().Add(time.Hour) }
}

// TestLateProbesDecideNothing: while a process asks the last question of a gate, another
// one, whose clock is ahead, takes the question over. What the first is answered then is
// charged, and decides nothing, neither that the transition is executed nor that the gate
// has failed: the other one still asks, and goes on with what it is told.
func TestLateProbesDecideNothing(t *testing.T) {
	for name, late := range map[string]error{"answered": nil, "failed": errors.New("no power")} {
		t.Run(name, func(t *testing.T) {
			var here, there oracle
			b := newBench(t, here.with)
			other := b.runner(there.with, b.ahead)
			s := b.probed("")
			asking, answer, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			there.before = func(truth.CompletionPurpose) error {
				close(asking)
				<-answer
				return nil
			}
			here.before = func(truth.CompletionPurpose) error {
				if here.asked() < probes {
					return nil
				}
				go func() {
					defer close(done)
					_, err := other.Step(b.ctx, s.ID)
					b.ok(err)
				}()
				<-asking
				return late
			}
			b.stepTo(s, runner.TickSolicited) // another step finds out who asks
			b.stepTo(s, runner.TickWaiting)
			if b.count(s, "executed") != 0 || b.count(s, "discarded") != 1 || b.now(s).Status != session.Running {
				t.Errorf("while the other asks, the log is\n%s", b.log(s, 0))
			}
			close(answer)
			<-done
			if b.count(s, "executed") != 1 || there.asked() != 1 {
				t.Errorf("after %d questions elsewhere, the log is\n%s", there.asked(), b.log(s, 0))
			}
			if want := int64(probes + 1); b.now(s).Spent().Calls != want {
				t.Errorf("spent is %+v, want %d calls", b.now(s).Spent(), want)
			}
		})
	}
}
