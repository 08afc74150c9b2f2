package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
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
		spent    spend.Book
	}{
		"cheaper than expected":  {"0.60", cost(cents(12)), spend.Book{Calls: 1, Money: cents(12)}},
		"as costly as expected":  {"0.60", cost(cents(60)), spend.Book{Calls: 1, Money: cents(60)}},
		"costlier than expected": {"0.10", cost(cents(60)), spend.Book{Calls: 1, Money: cents(60)}},
		"nothing was said of it": {"0.60", specialist.Usage{}, spend.Book{Calls: 1, Money: cents(60)}},
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
					for _, ev := range b.raw(b.now(s)) {
						var d struct{ Charged exact.Money }
						if ev.Kind != session.KindDiscarded {
							continue
						}
						if b.ok(json.Unmarshal(ev.Data, &d)); d.Charged != c.spent.Money {
							t.Errorf("the late answer says that %s was charged, want %s: %s", d.Charged, c.spent.Money, ev.Data)
						}
					}
				})
			})
		}
	}
}

// TestVerdictTakenOverFromALivingOwner is the same for an arbiter outside this process.
func TestVerdictTakenOverFromALivingOwner(t *testing.T) {
	for _, over := range []bool{true, false} {
		t.Run(fmt.Sprintf("round over %t", over), func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.cast.say("a", "again")
				on, calls := make(chan struct{}), 0
				b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
					if calls++; calls == 1 {
						<-on
					}
					d := arbiter.Elect(0, "so be it")
					if !over {
						d = arbiter.None("not sure")
					}
					d.Expense = &arbiter.Expense{Usage: cost(dollar / 4)}
					return d, nil
				}))
				s := b.start(b.machine(def{who: []string{fn("a"), paidArbiter("1")}, top: budget(`"hard_limit_usd":1`)}))
				other := b.runner(inBubble)
				done := make(chan struct{})
				go func() { defer close(done); _, _ = b.r.Step(b.ctx, s.ID) }()
				synctest.Wait()
				time.Sleep(time.Hour)
				_, err := other.Step(b.ctx, s.ID)
				b.ok(err)
				b.wantSpent(s, "taken over", spend.Book{Calls: 1, Money: dollar / 4})
				close(on)
				<-done
				b.wantSpent(s, "both have the verdict", spend.Book{Calls: 1, Money: dollar / 4})
			})
		})
	}
}

// TestModelTakenOverFromALivingOwner: a model does not know that it is asked again, and
// is paid twice; what the first call cost is what its owner says in the end, whether
// the second is still out then, has answered, or is out of its round.
func TestModelTakenOverFromALivingOwner(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("the former owner first %t", first), func(t *testing.T) {
			bubble(t, func(b *bench) {
				table, _ := spend.ParsePrices([]byte(`{"version":"v1","prices":{"cheap":{"input_per_1m":100,"output_per_1m":800}}}`))
				models := []func(*runner.Config){inBubble, func(c *runner.Config) { c.Prices = table }, withModels(&b)}
				b.r = b.runner(models...)
				other := b.runner(models...)
				var p stopped
				second := make(chan struct{})
				b.cast.play("m", p.part(answering("again", tokens(10, 1)), func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
					<-second
					return answering("again", tokens(30, 3))(context.WithoutCancel(ctx), q)
				}))
				s := b.start(b.machine(def{who: []string{llm("m", "cheap"), arb("firstProposal")}, top: budget(`"hard_limit_usd":9`)}))
				done, again := make(chan struct{}), make(chan struct{})
				go func() { defer close(done); _, _ = b.r.Step(b.ctx, s.ID) }()
				synctest.Wait()
				time.Sleep(time.Hour)
				go func() { defer close(again); _, _ = other.Step(b.ctx, s.ID) }()
				synctest.Wait()
				price := func(in, out int64) exact.Money { return dollar / 1_000_000 * exact.Money(100*in+800*out) }
				b.wantSpent(s, "taken over", spend.Book{Calls: 1, TokensIn: 1000, TokensOut: 500, Money: price(1000, 500)})
				if first {
					close(p.on)
					<-done
					b.wantSpent(s, "the former owner", spend.Book{Calls: 1, TokensIn: 10, TokensOut: 1, Money: price(10, 1)})
				}
				close(second)
				<-again
				if !first {
					b.wantSpent(s, "the present owner", spend.Book{Calls: 2, TokensIn: 1030, TokensOut: 503, Money: price(1000, 500) + price(30, 3)})
					close(p.on)
					<-done
				}
				b.wantSpent(s, "both", spend.Book{Calls: 2, TokensIn: 40, TokensOut: 4, Money: price(40, 4)})
			})
		})
	}
}

// TestChargeBelowZero: no answer can give money back. Nothing of a commit is stored
// that would.
func TestChargeBelowZero(t *testing.T) {
	for name, c := range map[string]specialist.Usage{"dollars": cost(-1), "tokens": tokens(-1, 0), "calls": specialist.Usage{}.WithCalls(-1, 0)} {
		b := newBench(t)
		b.cast.play("w", failing(errors.New("no")))
		s := b.start(b.machine(def{who: []string{web("w"), half}}))
		if err := runner.CommitFailure(b.ctx, b.r, s, "w", c); !errors.Is(err, session.ErrCharge) {
			t.Errorf("%s below zero: the error is %v", name, err)
		}
		if now := b.now(s); now.Sequence != s.Sequence || now.Spent() != (spend.Book{}) {
			t.Errorf("%s below zero: the session is at %d and has spent %+v", name, now.Sequence, now.Spent())
		}
	}
}

// A losable store can be made to forget which owners live, as a directory of owners can
// be deleted.
type losable struct {
	session.Store
	mu     sync.Mutex
	owners []session.Owner
}

func (l *losable) Claim(ctx context.Context) (session.Owner, error) {
	o, err := l.Store.Claim(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners = append(l.owners, o)
	return o, err
}

func (l *losable) lose(b *bench) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.owners {
		b.ok(o.Release())
	}
}

// TestOwnersLost: whenever it is forgotten who lives, an ask may be taken over once by
// each of those who wait for it, and no more: they do not take it from each other until
// one of them is answered in time.
func TestOwnersLost(t *testing.T) {
	bubble(t, func(b *bench) {
		kept := &losable{Store: b.store}
		b.cast.play("slow", after(3*time.Second, saying("finish")))
		b.cast.judge("judge", electFirst)
		keep := func(c *runner.Config) { c.Store = kept }
		s := b.start(b.machine(def{who: []string{web("slow"), human("human"), arbFn("judge")}}))
		var wg sync.WaitGroup
		for range 3 {
			r := b.runner(inBubble, keep)
			wg.Go(func() {
				if _, err := r.Run(b.ctx, s.ID, runner.RunOptions{Wait: true}); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
			kept.lose(b)
		}
		wg.Wait()
		if now, calls := b.now(s), len(b.cast.askIDs()); now.Status != session.Completed || calls < 2 || calls > 6 {
			t.Errorf("it is %s after %d calls", now.Status, calls)
		}
	})
}
