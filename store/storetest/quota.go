package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What counts the quotas of tenants promises: a store that does, and what a process counts for itself
// beside a store that does not.

// A counter is one process that counts.
type counter struct {
	testing.TB
	session.QuotaStore
	shared bool // others may count the same
	maker  func() session.QuotaStore
	quota  *spend.Quota
}

// quotaOf limits tenants to so many tokens and calls in a window without end, so many dollars, and so many sessions at once;
// 0 limits nothing.
func quotaOf(tokens, calls int64, usd exact.Money, sessions int64) *spend.Quota {
	q := &spend.Quota{Windows: []spend.Window{{Msec: 1 << 45}, {Msec: 3_600_000, Sliding: true}}}
	for i := range q.Windows {
		w := &q.Windows[i]
		if tokens > 0 {
			w.Tokens = &tokens
		}
		if calls > 0 {
			w.Calls = &calls
		}
		if usd > 0 {
			w.USD = &usd
		}
	}
	if sessions > 0 {
		q.MaxSessions = &sessions
	}
	return q
}

// newCounter returns the first process that counts a tenant of no past.
func newCounter(t *testing.T, m Maker, q *spend.Quota) *counter {
	t.Helper()
	s := m.Open(t)
	c := &counter{TB: t, quota: q}
	if _, c.shared = s.(session.QuotaStore); c.shared {
		c.maker = func() session.QuotaStore { return m.Open(t).(session.QuotaStore) }
		c.QuotaStore = s.(session.QuotaStore)
	} else {
		counted, err := tenants.NewCounted(time.Now, func(string) *spend.Quota { return q })
		c.ok(err)
		c.QuotaStore, c.maker = counted, func() session.QuotaStore { return counted }
	}
	return c
}

// met is a counter for which a tenant of no past was recalled.
func met(t *testing.T, m Maker, q *spend.Quota) *counter {
	c := newCounter(t, m, q)
	c.ok(c.RecallQuota(t.Context(), tenant, q, func(context.Context) (spend.Past, error) { return spend.Past{}, nil }))
	return c
}

const tenant = "acme\x00ltd" // which came from outside

func (c *counter) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// scopeAt returns that of the n-th session of the tenant.
func scopeAt(n byte) spend.Scope {
	return spend.Scope{Tenant: tenant, Session: specialist.SessionID{15: n}.String()}
}

// tokens is a call that may need so many tokens, by some name.
func tokens(name string, n int64) session.QuotaCall {
	return session.QuotaCall{Name: name, Need: spend.Book{Calls: 1, TokensOut: n}}
}

// gave is what a call says that took so many tokens.
func gave(n int64) specialist.Usage {
	return specialist.Usage{NumOutputTokens: n, Given: specialist.OutputGiven | specialist.InputGiven}
}

// reserve holds a wave.
func (c *counter) reserve(s spend.Scope, wave ...session.QuotaCall) []session.QuotaHold {
	c.Helper()
	holds, err := c.ReserveQuota(c.Context(), s, c.quota, wave...)
	c.ok(err)
	return holds
}

// refused returns why a wave is refused.
func (c *counter) refused(s spend.Scope, wave ...session.QuotaCall) *spend.BudgetError {
	c.Helper()
	_, err := c.ReserveQuota(c.Context(), s, c.quota, wave...)
	over, ok := errors.AsType[*spend.BudgetError](err)
	if !ok {
		c.Fatalf("reserving came to %v, want that there is no room", err)
	}
	return over
}

// has fails unless so many tokens of the tenant are charged and held.
func (c *counter) has(why string, spent, held int64) {
	c.Helper()
	over := c.refused(scopeAt(1), tokens("", 1<<40))
	if over.Spent != spent || over.Reserved != held || over.Unit != spend.UnitTokens {
		c.Errorf("%s: charged are %d %s and held %d, want %d and %d", why, over.Spent, over.Unit, over.Reserved, spent, held)
	}
}

func (c *counter) settle(s spend.Scope, h session.QuotaHold, n int64) {
	c.EndQuota(c.Context(), s, session.QuotaEnd{Hold: h, Settled: true, Used: gave(n)})
}

func (c *counter) release(s spend.Scope, holds ...session.QuotaHold) {
	var ends []session.QuotaEnd
	for _, h := range holds {
		ends = append(ends, session.QuotaEnd{Hold: h})
	}
	c.EndQuota(c.Context(), s, ends...)
}

func testQuotaWaves(t *testing.T, m Maker) {
	c := met(t, m, quotaOf(100, 0, 0, 0))
	s := scopeAt(1)
	first := c.reserve(s, tokens("a", 30), tokens("b", 30))
	c.has("after a wave", 0, 60)
	over := c.refused(s, tokens("c", 30), tokens("d", 30))
	if over.Code != "budget_contended" || over.Limit != 100 || over.Estimate != 30 || over.Reserved != 90 || over.Scope.Tenant != tenant {
		t.Errorf("a wave beside another is refused with %+v", over)
	}
	c.has("after a wave that was refused", 0, 60)
	for _, h := range first {
		h.Start()
	}
	c.settle(s, first[0], 50)
	c.settle(s, first[1], 10)
	c.has("after the calls", 60, 0)
	if over := c.refused(s, tokens("e", 41)); over.Code != "quota_exceeded" || over.Spent != 60 || over.Estimate != 41 {
		t.Errorf("a call without room is refused with %+v", over)
	}
	c.release(s, c.reserve(s, tokens("e", 40))...)
	if other := (spend.Scope{Tenant: "other", Session: specialist.SessionID{15: 9}.String()}); c.shared {
		_, err := c.ReserveQuota(t.Context(), other, c.quota, tokens("a", 1))
		if !errors.Is(err, session.ErrQuotaUnknown) || !errors.Is(err, session.ErrBusy) {
			t.Errorf("the call of a tenant that was not recalled: %v", err)
		}
	}
}

func testQuotaEnds(t *testing.T, m Maker) {
	c := met(t, m, quotaOf(1000, 0, 0, 0))
	s := scopeAt(1)
	h := c.reserve(s, tokens("a", 10))[0]
	h.Start()
	c.settle(s, h, 25)
	c.settle(s, h, 25)
	c.release(s, h)
	c.has("a call that took more, and was settled twice", 25, 0)
	h = c.reserve(s, tokens("b", 10))[0]
	c.release(s, h)
	c.release(s, h)
	c.settle(s, h, 10)
	c.has("a call that was never made", 25, 0)
	if found, err := c.FindQuota(t.Context(), s, "b"); found != nil || err != nil {
		t.Errorf("found is %v, %v", found, err)
	}
	h = c.reserve(s, tokens("c", 10))[0]
	h.Start()
	c.release(s, h)
	c.release(s, h)
	c.has("a call of which nobody has said what it cost", 35, 0)
	found, err := c.FindQuota(t.Context(), s, "c")
	c.ok(err)
	if elsewhere, err := c.FindQuota(t.Context(), scopeAt(2), "c"); elsewhere != nil || err != nil {
		t.Errorf("another session finds %v, %v", elsewhere, err)
	}
	c.settle(s, found, 17)
	c.has("it has cost more", 42, 0)
	h = c.reserve(s, tokens("d", 10))[0]
	h.Start()
	c.release(s, h)
	c.settle(s, h, 1)
	c.has("it has cost less, and windows give nothing back", 52, 0)
	h = c.reserve(s, tokens("e", 10))[0]
	h.Start()
	c.EndQuota(t.Context(), s, session.QuotaEnd{Hold: h, Settled: true, Used: specialist.Usage{}}, session.QuotaEnd{Settled: true, Used: gave(3)})
	c.has("one that says nothing, and one that nobody reserved", 65, 0)
	spare := c.reserve(s, tokens("", 10), tokens("", 10))
	c.EndQuota(t.Context(), s, session.QuotaEnd{Hold: spare[0], Settled: true, Used: gave(5)}, session.QuotaEnd{Hold: spare[1]})
	c.has("one with a repair that was not needed", 70, 0)
}

func testQuotaUnits(t *testing.T, m Maker) {
	c := met(t, m, quotaOf(0, 3, exact.Dollar, 0))
	s := scopeAt(1)
	dear := session.QuotaCall{Need: spend.Book{Calls: 1, Money: exact.Dollar}}
	h := c.reserve(s, dear)[0]
	h.Start()
	if over := c.refused(s, dear); over.Unit != spend.UnitUSD {
		t.Errorf("a second dollar is refused with %+v", over)
	}
	c.EndQuota(t.Context(), s, session.QuotaEnd{Hold: h, Settled: true, Used: specialist.Usage{}.WithCost(2 * exact.Dollar)})
	free := c.reserve(s, tokens("", 5), tokens("", 5)) // no limit of dollars is in its way
	if over := c.refused(s, tokens("", 5)); over.Unit != spend.UnitCalls {
		t.Errorf("a fourth call is refused with %+v", over)
	}
	c.release(s, free...)
	minute := &spend.Quota{USDPerMinute: new(exact.Dollar)}
	if c.shared {
		c.ok(c.RecallQuota(t.Context(), tenant, minute, func(context.Context) (spend.Past, error) { return spend.Past{}, nil }))
		h, err := c.ReserveQuota(t.Context(), s, minute, dear)
		c.ok(err)
		h[0].Start()
		c.EndQuota(t.Context(), s, session.QuotaEnd{Hold: h[0], Settled: true, Used: specialist.Usage{}.WithCost(exact.Dollar)})
		_, err = c.ReserveQuota(t.Context(), s, minute, dear)
		if over, ok := errors.AsType[*spend.BudgetError](err); !ok || over.Code != "quota_velocity" {
			t.Errorf("a second dollar in a minute: %v", err)
		}
	}
	nobody := met(t, m, nil)
	for range 5 {
		if _, err := nobody.ReserveQuota(t.Context(), spend.Scope{Tenant: "rich", Session: s.Session}, nil, dear, dear); err != nil {
			t.Errorf("without a quota: %v", err)
		}
	}
}

func testQuotaSessions(t *testing.T, m Maker) {
	c := met(t, m, quotaOf(1000, 0, 0, 2))
	open := func(n byte) error { return c.OpenQuota(t.Context(), scopeAt(n), c.quota) }
	full := func(n byte) {
		t.Helper()
		if over, ok := errors.AsType[*spend.BudgetError](open(n)); !ok || over.Code != "quota_exceeded" || over.Unit != spend.UnitSessions || over.Limit != 2 || over.Spent != 2 {
			t.Errorf("session %d beside two: %+v", n, over)
		}
	}
	c.ok(open(1))
	c.ok(open(1))
	h := c.reserve(scopeAt(2), tokens("a", 10))[0] // opens it
	h.Start()
	full(3)
	if over := c.refused(scopeAt(3), tokens("a", 10)); over.Unit != spend.UnitSessions {
		t.Errorf("the call of a third session is refused with %+v", over)
	}
	c.ok(open(2))
	if err := c.CloseQuota(t.Context(), scopeAt(2)); !errors.Is(err, spend.ErrOpenCalls) {
		t.Errorf("closing a session with a call that is out: %v", err)
	}
	full(3)
	c.settle(scopeAt(2), h, 10)
	c.ok(c.CloseQuota(t.Context(), scopeAt(2)))
	c.ok(c.CloseQuota(t.Context(), scopeAt(2)))
	c.ok(c.CloseQuota(t.Context(), scopeAt(9)))
	c.ok(open(3))
	full(2)
	c.ok(c.CloseQuota(t.Context(), scopeAt(3)))
	c.has("what a session has spent that is closed", 10, 0)
}

func testQuotaPast(t *testing.T, m Maker) {
	b := newBench(t, m)
	live := b.start() // or there is no past, and nobody reads it
	c := newCounter(t, m, quotaOf(1000, 0, 0, 2))
	s := spend.Scope{Tenant: tenant, Session: live.ID.String()}
	now := specialist.TimeOf(time.Now())
	past := func(context.Context) (spend.Past, error) {
		return spend.Past{
			Sessions: []string{live.ID.String()},
			Spent:    []spend.Spending{{At: now, Book: spend.Book{Calls: 1, TokensIn: 5, TokensOut: 5}}, {At: now - 600_000, Book: spend.Book{Calls: 1, TokensIn: 7}}, {At: now + 3_600_000, Book: spend.Book{TokensIn: 1, Calls: -5}}},
			Calls:    []spend.CallState{{Scope: s, ID: "asked", At: now, Started: true, Entry: spend.Book{Calls: 1, TokensOut: 20, Estimated: 1}}, {Scope: s, ID: "not", At: now, Entry: spend.Book{Calls: 1, TokensOut: 20}}},
		}, nil
	}
	fails := errors.New("it cannot be read")
	if err := c.RecallQuota(t.Context(), tenant, c.quota, func(context.Context) (spend.Past, error) { return spend.Past{}, fails }); !errors.Is(err, fails) {
		t.Errorf("a past that cannot be read: %v", err)
	}
	c.ok(c.RecallQuota(t.Context(), tenant, c.quota, past))
	c.ok(c.OpenQuota(t.Context(), scopeAt(1), c.quota))
	c.has("the past", 38, 0)
	if over, ok := errors.AsType[*spend.BudgetError](c.OpenQuota(t.Context(), scopeAt(2), c.quota)); !ok || over.Spent != 2 {
		t.Errorf("a third session: %v", over)
	}
	found, err := c.FindQuota(t.Context(), s, "asked")
	c.ok(err)
	if found == nil {
		t.Fatal("the call that was out is not found")
	}
	c.settle(s, found, 21)
	c.has("it has cost more", 39, 0)
	if !c.shared {
		return
	}
	c.QuotaStore = c.maker()
	c.ok(c.RecallQuota(t.Context(), tenant, c.quota, func(context.Context) (spend.Past, error) {
		t.Error("the past is read again")
		return past(t.Context())
	}))
	c.has("what another process sees", 39, 0)
	old := &spend.Quota{Windows: []spend.Window{{Msec: 1000, Tokens: new(int64(1000))}}}
	c.ok(c.RecallQuota(t.Context(), tenant, old, func(context.Context) (spend.Past, error) {
		return spend.Past{Spent: []spend.Spending{{At: now - 100_000, Book: spend.Book{TokensIn: 7}}}}, nil
	}))
	c.quota = old
	c.has("another window, which that is not in", 0, 0)
}

// testQuotaOfMany: processes that ask at once use together what there is, and never more.
func testQuotaOfMany(t *testing.T, m Maker) {
	const room, processes, each, tries = 60, 4, 4, 8
	c := met(t, m, quotaOf(0, room, 0, 0))
	counters := []session.QuotaStore{c.QuotaStore}
	for range processes - 1 {
		counters = append(counters, c.maker())
	}
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for i, counts := range counters {
		for j := range each {
			wg.Go(func() {
				s := scopeAt(byte(i*each + j))
				for n := range tries {
					holds, err := counts.ReserveQuota(t.Context(), s, c.quota, tokens("", 1), tokens("", 1))
					switch _, over := errors.AsType[*spend.BudgetError](err); {
					case over:
						refused.Add(1)
						continue
					case errors.Is(err, session.ErrBusy):
						continue
					case err != nil:
						t.Error(err)
						return
					}
					if n%4 == 3 { // it was not made after all
						counts.EndQuota(t.Context(), s, session.QuotaEnd{Hold: holds[0]}, session.QuotaEnd{Hold: holds[1]})
						continue
					}
					for _, h := range holds {
						h.Start()
						made.Add(1)
						counts.EndQuota(t.Context(), s, session.QuotaEnd{Hold: h, Settled: true, Used: gave(1)})
					}
				}
			})
		}
	}
	wg.Wait()
	if made.Load() > room || made.Load() < room-2*processes*each || refused.Load() == 0 {
		t.Errorf("%d calls were made of %d, and %d refused", made.Load(), room, refused.Load())
	}
	left := 0
	for ; left <= room; left++ {
		if _, err := counters[1].ReserveQuota(t.Context(), scopeAt(1), c.quota, tokens("", 1)); err != nil {
			break
		}
	}
	if int64(left) != room-made.Load() {
		t.Errorf("there is room for %d more calls after %d of %d", left, made.Load(), room)
	}
}
