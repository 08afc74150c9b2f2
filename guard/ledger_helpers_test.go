package guard_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
)

// A clock is a time that stands still until it is moved. It may be used
// concurrently.
type clock struct{ msec atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.msec.Store(1_767_225_600_000) // 2026 begins
	return c
}

func (c *clock) read() time.Time      { return time.UnixMilli(c.msec.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.msec.Add(d.Milliseconds()) }

var (
	session  = guard.Scope{Tenant: "acme", Session: "s"}
	round    = guard.Scope{Tenant: "acme", Session: "s", Round: "1"}
	proposer = guard.Scope{Tenant: "acme", Session: "s", Round: "1", Proposer: "anna"}
	other    = guard.Scope{Tenant: "acme", Session: "s", Round: "1", Proposer: "bert"}
)

// testPrices: a dollar for a million input tokens, two for output.
func testPrices(unknown string) *guard.PriceTable {
	return &guard.PriceTable{Version: "v1", OnUnknownModel: unknown, Prices: map[string]guard.Price{
		"m": {InputPer1M: exact.Dollar, OutputPer1M: 2 * exact.Dollar}, "free": {},
	}}
}

func newLedger(t testing.TB, c guard.LedgerConfig) (*guard.Ledger, *clock) {
	t.Helper()
	now := newClock()
	c.Now = now.read
	if c.Prices == nil {
		c.Prices = testPrices("warn")
	}
	l, err := guard.NewLedger(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, now
}

func reserve(t testing.TB, l *guard.Ledger, s guard.Scope, e guard.Estimate) *guard.Handle {
	t.Helper()
	h, err := l.Reserve(context.Background(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// refused returns why a reservation is refused; nil if it is not.
func refused(t testing.TB, l *guard.Ledger, s guard.Scope, e guard.Estimate) *guard.BudgetError {
	t.Helper()
	h, err := l.Reserve(context.Background(), s, e)
	if err == nil {
		h.Release()
		return nil
	}
	refusal, ok := errors.AsType[*guard.BudgetError](err)
	if !ok {
		t.Fatalf("Reserve: %v", err)
	}
	return refusal
}

func code(e *guard.BudgetError) string {
	if e == nil {
		return "ok"
	}
	return e.Code
}

// need is a call of model m with so many tokens in and out.
func need(in, out int64) guard.Estimate { return guard.Estimate{Model: "m", Input: in, MaxOutput: out} }

func used(in, out int64) guard.Usage { return guard.Usage{Usage: tokens(in, out)} }

func withID(u guard.Usage, id string) guard.Usage {
	u.ID = id
	return u
}

func start(t testing.TB, h *guard.Handle) *guard.Handle {
	t.Helper()
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// allLevels checks that all scopes from the proposer's up have spent this.
func allLevels(t testing.TB, l *guard.Ledger, want guard.Book) {
	t.Helper()
	for _, s := range []guard.Scope{{Tenant: "acme"}, session, round, proposer} {
		if got := l.Balance(s).Spent; got != want {
			t.Errorf("%s has spent %+v, want %+v", s, got, want)
		}
	}
}
