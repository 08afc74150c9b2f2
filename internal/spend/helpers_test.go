package spend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// seed is of the random cases.
const seed = 20260301

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// codes returns the status and the codes of a verdict.
func codes(v verdict.Verdict) string {
	if len(v.Reasons) == 0 {
		return v.Status.String()
	}
	return fmt.Sprint(v.Status, " ", v.Codes())
}

// listed returns problems as text: path, code, message, hint.
func listed(problems []machine.Problem) string {
	var lines []string
	for _, p := range problems {
		line := fmt.Sprintf("%s %s %s", p.Path, p.Code, p.Message)
		if p.Hint != "" {
			line += " (" + p.Hint + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

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
	session  = spend.Scope{Tenant: "acme", Session: "s"}
	round    = spend.Scope{Tenant: "acme", Session: "s", Round: "1"}
	proposer = spend.Scope{Tenant: "acme", Session: "s", Round: "1", Proposer: "anna"}
	other    = spend.Scope{Tenant: "acme", Session: "s", Round: "1", Proposer: "bert"}
)

// testPrices: a dollar for a million input tokens, two for output.
func testPrices(unknown string) *spend.PriceTable {
	return &spend.PriceTable{Version: "v1", OnUnknownModel: unknown, Prices: map[string]spend.Price{
		"m": {InputPer1M: exact.Dollar, OutputPer1M: 2 * exact.Dollar}, "free": {},
	}}
}

func newLedger(t testing.TB, c spend.LedgerConfig) (*spend.Ledger, *clock) {
	t.Helper()
	now := newClock()
	c.Now = now.read
	if c.Prices == nil {
		c.Prices = testPrices("warn")
	}
	l, err := spend.NewLedger(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, now
}

func reserve(t testing.TB, l *spend.Ledger, s spend.Scope, e spend.Estimate) *spend.Handle {
	t.Helper()
	h, err := l.Reserve(context.Background(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// refused returns why a reservation is refused; nil if it is not.
func refused(t testing.TB, l *spend.Ledger, s spend.Scope, e spend.Estimate) *spend.BudgetError {
	t.Helper()
	h, err := l.Reserve(context.Background(), s, e)
	if err == nil {
		h.Release()
		return nil
	}
	refusal, ok := errors.AsType[*spend.BudgetError](err)
	if !ok {
		t.Fatalf("Reserve: %v", err)
	}
	return refusal
}

func code(e *spend.BudgetError) string {
	if e == nil {
		return "ok"
	}
	return e.Code
}

// need is a call of model m with so many tokens in and out.
func need(in, out int64) spend.Estimate { return spend.Estimate{Model: "m", Input: in, MaxOutput: out} }

func used(in, out int64) spend.Usage { return spend.Usage{Usage: tokens(in, out)} }

func withID(u spend.Usage, id string) spend.Usage {
	u.ID = id
	return u
}

func start(t testing.TB, h *spend.Handle) *spend.Handle {
	t.Helper()
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// allLevels checks that all scopes from the proposer's up have spent this.
func allLevels(t testing.TB, l *spend.Ledger, want spend.Book) {
	t.Helper()
	for _, s := range []spend.Scope{{Tenant: "acme"}, session, round, proposer} {
		if got := l.Balance(s).Spent; got != want {
			t.Errorf("%s has spent %+v, want %+v", s, got, want)
		}
	}
}
