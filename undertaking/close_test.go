package undertaking

import (
	"testing"
	"testing/synctest"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// TestCloseTakesWhatIsThere: an exit that has been queued, and whose signal another wait has
// taken, is not waited for again. synctest reports a wait without an end.
func TestCloseTakesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := runner.New(runner.Config{Store: store.NewMemory()})
		if err != nil {
			t.Fatal(err)
		}
		l := New(Config{Runner: r})
		l.state.Workers = []Worker{{As: orchestrator, Number: 1}}
		one := who{orchestrator, 1}
		v := &live{who: one, closing: true}
		l.live[one] = v
		l.in.put(happened{v, agent.Event{Body: agent.Exited{}}})
		<-l.in.filled
		if err := l.closeAll(t.Context()); err == nil || len(l.live) != 0 {
			t.Errorf("%d are left, %v", len(l.live), err) // the session is not known: nothing can be appended
		}
	})
}
