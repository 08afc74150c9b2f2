package runner_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
)

// A stopped process is one whose first call does not return, deadline or not, until
// somebody lets it go on: SIGSTOP, in a test.
type stopped struct {
	on    chan struct{} // closed: it goes on
	calls int
}

func (p *stopped) part(first, later part) part {
	p.on = make(chan struct{})
	return func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		if p.calls++; p.calls > 1 {
			return later(ctx, q)
		}
		<-p.on
		return first(context.WithoutCancel(ctx), q)
	}
}

// TestAskTakenOverFromALivingOwner: the process that asked a service stands still
// past the deadline, another takes the ask over, and then both have its answer. The
// service knows the ask by its key and is paid once, whoever hears it and when; a
// hard limit of one answer lets no second ask through.
func TestAskTakenOverFromALivingOwner(t *testing.T) {
	cents := func(n int64) exact.Money { return dollar / 100 * exact.Money(n) }
	for name, c := range map[string]struct {
		estimate string
		said     specialist.Usage // by both
		spent    guard.Book
	}{
		"cheaper than expected":  {"0.60", cost(cents(12)), guard.Book{Calls: 1, Money: cents(12)}},
		"as dear as expected":    {"0.60", cost(cents(60)), guard.Book{Calls: 1, Money: cents(60)}},
		"dearer than expected":   {"0.10", cost(cents(60)), guard.Book{Calls: 1, Money: cents(60)}},
		"nothing was said of it": {"0.60", specialist.Usage{}, guard.Book{Calls: 1}},
	} {
		for _, over := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, round over %t", name, over), func(t *testing.T) {
				bubble(t, func(b *bench) {
					var p stopped
					b.cast.play("slow", p.part(answering("again", c.said), answering("again", c.said)))
					b.cast.judge("judge", electFirst)
					arb := arbFn("judge")
					if !over {
						b.cast.judge("judge", electNone)
					}
					s := b.start(b.machine(def{who: []string{web("slow", estimated(c.estimate)), human("human"), arb}, top: budget(`"hard_limit_usd":0.60`)}))
					other := b.runner(inBubble)
					done := make(chan struct{})
					go func() { defer close(done); _, _ = b.r.Step(b.ctx, s.ID) }()
					synctest.Wait()
					time.Sleep(time.Hour)
					_, err := other.Step(b.ctx, s.ID)
					b.ok(err)
					b.wantSpent(s, "taken over", c.spent)
					close(p.on)
					<-done
					b.wantSpent(s, "both have the answer", c.spent)
				})
			})
		}
	}
}
