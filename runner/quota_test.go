package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// tenants limits every tenant but "rich" alike; sessions name theirs.
func tenants(q spend.Quota) func(*runner.Config) {
	return func(c *runner.Config) {
		c.Tenant = func(_ *machine.Machine, meta json.RawMessage) string {
			var m struct{ Tenant string }
			_ = json.Unmarshal(meta, &m)
			return m.Tenant
		}
		c.Quota = func(tenant string) *spend.Quota {
			if tenant == "rich" {
				return nil
			}
			return &q
		}
	}
}

func (b *bench) startOf(m *machine.Machine, tenant string) *session.Session {
	b.Helper()
	return b.start(m, runner.StartOptions{Meta: []byte(`{"tenant":"` + tenant + `"}`)})
}

// TestQuotaOfATenant: what the sessions of one tenant ask for in an hour is
// limited together, others have nothing to do with it, and an hour later there is
// room again.
func TestQuotaOfATenant(t *testing.T) {
	late := time.Duration(0)
	b := newBench(t)
	b.ok(b.r.Close())
	b.r = b.runner(tenants(spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, Sliding: true, USD: new(2 * exact.Dollar)}}}),
		func(c *runner.Config) { now := c.Now; c.Now = func() time.Time { return now().Add(late) } })
	b.cast.play("a", spending("again", cost(dollar/2), ""))
	b.cast.judge("judge", electFirst)
	m := b.machine(def{who: []string{web("a", estimated("1")), human("human"), arbFn("judge")}})
	first, second, rich := b.startOf(m, "acme"), b.startOf(m, "acme"), b.startOf(m, "rich")
	for range 3 {
		b.stepTo(first, runner.TickAdvanced) // half a dollar of what was reserved is there again
	}
	tick := b.stepTo(second, runner.TickStopped)
	if o := b.now(second).Outcome(); tick.Code != "quota_exceeded" || !strings.Contains(o.Reason, "$2") || b.now(second).Spent().Calls != 0 {
		t.Errorf("stopped by %s: %s", tick.Code, o.Reason)
	}
	for range 9 {
		b.stepTo(rich, runner.TickAdvanced)
	}
	late = 2 * time.Hour
	_, err := b.r.Resume(b.ctx, second.ID, runner.ResumeOptions{RetryFailed: true})
	b.ok(err)
	b.stepTo(second, runner.TickAdvanced)
}

// TestQuotaByTheMinute: too fast is refused too; who costs nothing is asked.
func TestQuotaByTheMinute(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{USDPerMinute: new(exact.Dollar)}))
	b.cast.play("a", spending("again", cost(dollar), ""))
	b.cast.say("free", "again")
	b.cast.judge("judge", electFirst)
	s := b.startOf(b.machine(def{top: `"quorum":"any"`, who: []string{web("a", estimated("1")), fn("free"), human("human"), arbFn("judge")}}), "acme")
	b.stepTo(s, runner.TickAdvanced)
	b.cast.who()
	b.stepTo(s, runner.TickAdvanced)
	if who := strings.Join(b.cast.who(), " "); who != "free judge" || !strings.Contains(b.log(s, 0), "ask_failed a quota_velocity") {
		t.Errorf("asked were %s; the log:\n%s", who, b.log(s, 0))
	}
}

// TestQuotaOfSessions: so many at once; one that ends makes room.
func TestQuotaOfSessions(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{MaxSessions: new(int64(1))}))
	b.cast.say("a", "finish")
	m := b.desk(fn("a"), human("human"), half)
	s := b.startOf(m, "acme")
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{Meta: []byte(`{"tenant":"acme"}`)})
	if e, ok := errors.AsType[*runner.Error](err); !ok || e.Code != "quota_exceeded" || !errors.Is(err, runner.ErrQuota) {
		t.Errorf("the second session: %v", err)
	}
	b.startOf(m, "another")
	b.startOf(m, "rich")
	b.startOf(m, "rich")
	b.stepTo(s, runner.TickAdvanced)
	b.startOf(m, "acme")
}

// TestQuotaOfSessionsThatGoOn: a session that stopped makes room, and needs it again
// to go on.
func TestQuotaOfSessionsThatGoOn(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{MaxSessions: new(int64(1))}))
	b.cast.say("a", "again")
	m := b.desk(fn("a"), human("human"), half)
	first := b.startOf(m, "acme")
	result, err := b.r.Run(b.ctx, first.ID, runner.RunOptions{MaxSteps: 1})
	b.ok(err)
	if result.Status != "stopped" {
		t.Fatalf("the run came to %s", result.Status)
	}
	second := b.startOf(m, "acme")
	if _, err := b.r.Resume(b.ctx, first.ID, runner.ResumeOptions{}); !errors.Is(err, runner.ErrQuota) || b.now(first).Status != session.Stopped {
		t.Errorf("resumed beside another: %v", err)
	}
	b.force(second, "finish")
	_, err = b.r.Resume(b.ctx, first.ID, runner.ResumeOptions{})
	b.ok(err)
	if _, err := b.r.Start(b.ctx, m, runner.StartOptions{Meta: []byte(`{"tenant":"acme"}`)}); !errors.Is(err, runner.ErrQuota) {
		t.Errorf("started beside one that was resumed: %v", err)
	}
}

// TestQuotaOfSessionsWithCallsNeverMade: a reservation that the round did without
// does not keep the room of a session that has ended.
func TestQuotaOfSessionsWithCallsNeverMade(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{MaxSessions: new(int64(1))}))
	b.cast.say("a", "finish")
	b.cast.say("b", "finish")
	m := b.machine(def{who: []string{fn("a", estimated("1")), fn("b", estimated("1")), fn("c", estimated("1")), arb("firstProposal")}})
	b.stepTo(b.startOf(m, "acme"), runner.TickAdvanced)
	if who := strings.Join(b.cast.who(), " "); who != "a" {
		t.Fatalf("asked were %s: the test shows nothing", who)
	}
	b.startOf(m, "acme")
}

// TestQuotaOfEverybody: arbiters and what guards ask count like proposers.
func TestQuotaOfEverybody(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(exact.Dollar)}}}))
	b.cast.say("a", "again")
	b.cast.judge("judge", costing(electFirst, dollar))
	s := b.startOf(b.machine(def{who: []string{fn("a"), human("human"), paidArbiter("1")}}), "acme")
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "quota_exceeded" {
		t.Errorf("the arbiter: stopped by %s", tick.Code)
	}
	var o oracle
	b = newBench(t, o.with, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: new(int64(4))}}}))
	b.cast.say("a", "again")
	s = b.startOf(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"truth":{"model":"m"}}`}), "acme")
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "quota_exceeded" || o.asked() != 4 {
		t.Errorf("the truth gate: stopped by %s after %d calls", tick.Code, o.asked())
	}
}

// TestQuotaHoldsForParallelSessions: sessions that run at once never use together
// what one of them alone could not.
func TestQuotaHoldsForParallelSessions(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(10 * exact.Dollar)}}}))
	for _, id := range []string{"p", "q", "r"} {
		b.cast.play(id, spending("again", cost(dollar), ""))
	}
	b.cast.judge("judge", costing(electFirst, dollar))
	m := b.machine(def{who: []string{web("p", estimated("1")), web("q", estimated("1")), web("r", estimated("1")), human("human"), paidArbiter("1")}})
	var sessions []*session.Session
	var wg sync.WaitGroup
	for range 6 {
		s := b.startOf(m, "acme")
		sessions = append(sessions, s)
		wg.Go(func() {
			for range 8 {
				if tick, err := b.r.Step(b.ctx, s.ID); err != nil || tick.Status != runner.TickAdvanced {
					return
				}
			}
		})
	}
	wg.Wait()
	var spent exact.Money
	for _, s := range sessions {
		spent += b.now(s).Spent().Money
	}
	if spent > 10*dollar || spent < 7*dollar {
		t.Errorf("together they spent $%s of $10", spent)
	}
}

// An unreadable store loses a race for its caller, and then cannot be read.
type unreadable struct {
	session.Store
	lost bool
}

func (u *unreadable) Commit(context.Context, *session.Change) error {
	u.lost = true
	return session.ErrStale
}

func (u *unreadable) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if u.lost {
		return nil, errDisk
	}
	return u.Store.Load(ctx, p, id)
}

var errDisk = errors.New("the disk has failed")

// TestQuotaWhereTheStoreFailsAfterALostRace: the session could not be read again after
// somebody else was faster, and giving its ticket back panicked.
func TestQuotaWhereTheStoreFailsAfterALostRace(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{who: []string{web("a", estimated("1")), human("human"), half}}))
	limited := tenants(spend.Quota{Windows: []spend.Window{{Msec: 3_600_000, USD: new(2 * exact.Dollar)}}})
	other, err := runner.New(func() runner.Config {
		c := runner.Config{Store: &unreadable{Store: b.store}, Resolver: strategies.Resolvers{b.cast.registry(), b.cast}, Now: b.clock}
		limited(&c)
		return c
	}())
	b.ok(err)
	if _, err := other.Step(b.ctx, s.ID); !errors.Is(err, errDisk) {
		t.Errorf("the step came to %v, want the failure of the disk", err)
	}
	if used, _ := other.QuotaUsed(""); used != [3]int64{} {
		t.Errorf("used is %v, and nobody was asked", used)
	}
}

// TestQuotaHoldsWhileAnAskWaitsItsTurn: who waited for its turn longer than a minute had
// lost its place in the quota, was sent all the same, and somebody else had it too.
func TestQuotaHoldsWhileAnAskWaitsItsTurn(t *testing.T) {
	var late atomic.Int64
	b := newBench(t)
	b.ok(b.r.Close())
	b.r = b.runner(tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 50, Calls: new(int64(2))}}}),
		func(c *runner.Config) {
			c.Now = func() time.Time { return b.clock().Add(time.Duration(late.Load())) }
		})
	first := b.startOf(b.machine(def{who: []string{web("a"), web("b"), human("human"), arbFn("judge")}, top: `"solicit":{"maxParallel":1}`}), "acme")
	second := b.startOf(b.machine(def{name: "other", who: []string{web("c"), human("human"), arbFn("judge")}}), "acme")
	b.cast.say("c", "again")
	b.cast.judge("judge", electFirst)
	b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		late.Store(int64(2 * time.Minute))
		if tick, err := b.r.Step(b.ctx, second.ID); err != nil || tick.Status != runner.TickStopped {
			t.Errorf("the other session came to %s, %v", tick.Status, err)
		}
		return saying("again")(ctx, q)
	})
	b.cast.say("b", "again")
	b.stepTo(first, runner.TickAdvanced)
	if who := strings.Join(b.cast.who(), " "); who != "a b judge" {
		t.Errorf("asked were %s where two calls are what the quota has", who)
	}
}

// A racing store loses the first race for who is to be asked.
type racing struct {
	session.Store
	lost bool
}

func (r *racing) Commit(ctx context.Context, c *session.Change) error {
	if c.Before != nil && !r.lost {
		r.lost = true
		return session.ErrStale
	}
	return r.Store.Commit(ctx, c)
}

// TestQuotaAfterALostRace: who has to look again whom to ask held the places of the
// first look beside those of the second, and was refused for want of room.
func TestQuotaAfterALostRace(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{web("a"), human("human"), arbFn("judge")}}))
	r := b.runner(tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 50, Calls: new(int64(1))}}}), func(c *runner.Config) { c.Store = &racing{Store: b.store} })
	tick, err := r.Step(b.ctx, s.ID)
	b.ok(err)
	if tick.Status != runner.TickAdvanced || strings.Join(b.cast.who(), " ") != "a judge" {
		t.Errorf("the step came to %s, %s", tick.Status, tick.Code)
	}
}

// TestQuotaOfAsksThatAreHandedOut: what is handed out is charged as expected until it is answered, and what it
// cost more then. Nothing of it was.
func TestQuotaOfAsksThatAreHandedOut(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(9 * exact.Dollar)}}}))
	_, asks := b.handedOut(web("v", estimated("1")), web("w", estimated("1")))
	if used, _ := b.r.QuotaUsed(""); used != [3]int64{2, 0, 2 * int64(dollar)} {
		t.Errorf("until they are answered: %v", used)
	}
	if code := b.answer(asks[0].AskRef, "again", cost(3*dollar)); code != "" {
		t.Errorf("the answer is refused: %s", code)
	}
	if used, _ := b.r.QuotaUsed(""); used != [3]int64{2, 0, 4 * int64(dollar)} {
		t.Errorf("once one is answered: %v", used)
	}
}

// TestQuotaOfAWaveThatDoesNotFit: of those who are asked together, those are asked for whom there is room, and
// each other one is refused by itself.
func TestQuotaOfAWaveThatDoesNotFit(t *testing.T) {
	b := newBench(t, tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, USD: new(2 * exact.Dollar)}}}))
	for _, id := range []string{"a", "b", "c"} {
		b.cast.say(id, "again")
	}
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{top: `"quorum":"any"`, who: []string{web("a", estimated("1")), web("b", estimated("1")), web("c", estimated("1")), human("human"), arbFn("judge")}}))
	b.stepTo(s, runner.TickAdvanced)
	if who := strings.Join(slices.Sorted(slices.Values(b.cast.who())), " "); who != "a b judge" || strings.Count(b.log(s, 0), "ask_failed") != 1 {
		t.Errorf("asked were %s; the log:\n%s", who, b.log(s, 0))
	}
	if held := b.r.QuotaHeld(""); held != 0 {
		t.Errorf("%d calls hold something after the step", held)
	}
}
