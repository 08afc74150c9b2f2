package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// reversed has answers delivered in the reverse of the order in which they were asked for.
type reversed struct {
	mu   sync.Mutex
	told []specialist.Caller
}

func (r *reversed) Together(asked []specialist.Caller) func(ctx context.Context, place int, deliver func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, asked...)
	delivered := make([]chan struct{}, len(asked)+1)
	for i := range delivered {
		delivered[i] = make(chan struct{})
	}
	close(delivered[len(asked)])
	return func(ctx context.Context, place int, deliver func()) {
		select {
		case <-delivered[place+1]:
		case <-ctx.Done():
		}
		deliver()
		close(delivered[place])
	}
}

// TestArrivals: whoever orders answers is told who is asked at the same time, and decides
// whose answer is delivered first, which under firstProposal is who wins.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := &reversed{}
		b := newBench(t, inBubble, func(c *runner.Config) { c.Arrivals = order })
		for _, id := range []string{"a", "b", "c"} {
			b.cast.say(id, "again")
		}
		s := b.start(b.desk(web("a"), web("b"), web("c"), `{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}`))
		tick := b.stepTo(s, runner.TickAdvanced)
		if log := b.log(s, 2); tick.Transition == nil || !strings.Contains(log, "executed c again") {
			t.Errorf("the log is\n%s", log)
		}
		var who []string
		for _, c := range order.told {
			who = append(who, fmt.Sprintf("%s %s %d %d", c.SpecialistID, c.State, c.Round, c.Nth))
		}
		if !slices.Equal(who, []string{"a open 1 0", "b open 1 0", "c open 1 0"}) || order.told[0].SessionID != s.ID.String() {
			t.Errorf("together were %q", who)
		}
	})
}

// TestSentInOrder: where only one may be out at a time, requests are sent in the order of
// the roster.
func TestSentInOrder(t *testing.T) {
	bubble(t, func(b *bench) {
		var who []string
		for i := range 20 {
			id := fmt.Sprintf("w%02d", i)
			who = append(who, web(id))
			b.cast.play(id, after(time.Second, saying("again")))
		}
		b.cast.judge("judge", electFirst)
		s := b.start(b.machine(def{who: append(who, arbFn("judge")), top: `"solicit":{"maxParallel":1}`}))
		b.stepTo(s, runner.TickAdvanced)
		if asked := b.cast.who(); len(asked) != 21 || !slices.IsSorted(asked[:20]) {
			t.Errorf("asked were %q", asked)
		}
	})
}
