package spend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/verdict"
)

// restart writes the state as JSON and reads it into a new ledger.
func restart(t testing.TB, state spend.LedgerState, c spend.LedgerConfig) *spend.Ledger {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var read spend.LedgerState
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, state) {
		t.Fatalf("the state does not survive JSON:\n%+v\n%+v", state, read)
	}
	l, err := spend.NewLedger(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(read); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRestoreIsIdentity: after random work, a ledger without open calls is
// restored as it was; with open calls it is restored as if those that had been
// started were charged as estimated, and once restored it stays the same. No
// scope has spent less than before.
func TestRestoreIsIdentity(t *testing.T) {
	for trial := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, trial))
		now := newClock()
		config := spend.LedgerConfig{Now: now.read, Prices: testPrices("estimate_max"), Quota: func(string) *spend.Quota {
			return &spend.Quota{USDPerMinute: new(exact.Dollar), Windows: []spend.Window{{Msec: 5000}, {Msec: 70_000, Sliding: true, Tokens: new(int64(1 << 40))}}}
		}}
		l, err := spend.NewLedger(config)
		if err != nil {
			t.Fatal(err)
		}
		open := work(t, rng, l, now)
		before := l.Snapshot()
		next := restart(t, before, config)
		if again := restart(t, next.Snapshot(), config); !reflect.DeepEqual(again.Snapshot(), next.Snapshot()) {
			t.Fatalf("seed %d, trial %d: restored twice differs:\n%+v\n%+v", seed, trial, again.Snapshot(), next.Snapshot())
		}
		for _, s := range before.Scopes {
			b, a := s.Spent, next.Balance(s.Scope)
			if a.Spent.TokensIn < b.TokensIn || a.Spent.Calls < b.Calls || a.Spent.Money < b.Money || a.Tokens != 0 || a.OpenCalls != 0 {
				t.Fatalf("seed %d, trial %d: %s had spent %+v, after the restart %+v", seed, trial, s.Scope, b, a)
			}
		}
		for _, h := range open {
			h.Release()
		}
		settled := l.Snapshot()
		if !reflect.DeepEqual(restart(t, settled, config).Snapshot(), settled) {
			t.Fatalf("seed %d, trial %d: without open calls the restored ledger differs", seed, trial)
		}
		if trial%2 == 0 { // released calls are charged as a restart would
			for _, s := range settled.Scopes {
				if got := next.Balance(s.Scope).Spent; got != s.Spent {
					t.Fatalf("seed %d, trial %d: %s: restarted %+v, released %+v", seed, trial, s.Scope, got, s.Spent)
				}
			}
		}
	}
}

// work does random things with a ledger and returns the handles it left open.
func work(t *testing.T, rng *rand.Rand, l *spend.Ledger, now *clock) (open []*spend.Handle) {
	budget := &spend.Budget{SoftTokens: new(int64(500)), ReserveMode: spend.ReserveAdaptive, DebitProbes: true, Bounded: true}
	if err := l.Open(session, spend.Opening{Budget: budget}); err != nil {
		t.Fatal(err)
	}
	if err := l.Open(spend.Scope{Tenant: "acme", Session: "child"}, spend.Opening{Parent: "s"}); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		s := spend.Scope{Tenant: pick(rng, "acme", ""), Session: pick(rng, "s", "child"), Round: pick(rng, "", "1", "2")}
		e := spend.Estimate{ID: fmt.Sprint("ask", i), Model: pick(rng, "m", "free", "nobody", ""), Input: rng.Int64N(100), Probe: rng.IntN(4) == 0}
		h, err := l.Reserve(context.Background(), s, e)
		if err != nil {
			continue
		}
		if rng.IntN(2) == 0 {
			start(t, h)
		}
		switch rng.IntN(5) {
		case 0:
			open = append(open, h)
		case 1:
			h.Release()
		default:
			h.Settle(withID(used(rng.Int64N(100), rng.Int64N(100)), fmt.Sprint("id", rng.IntN(50))))
		}
		now.pass(time.Duration(rng.IntN(300)) * time.Millisecond)
		if rng.IntN(10) == 0 {
			l.Close(spend.Scope{Tenant: "acme", Session: "s", Round: "1"})
			l.Progress(session)
		}
	}
	return open
}

// TestCrashes stops between any two steps of a call. What had been started is
// charged, what had not is not, and a budget is never fuller than before.
func TestCrashes(t *testing.T) {
	estimated := spend.Book{Calls: 1, TokensIn: 100, TokensOut: 50, Money: 200_000_000, Estimated: 1}
	real := spend.Book{Calls: 1, TokensIn: 10, TokensOut: 5, Money: 20_000_000}
	now := newClock()
	config := spend.LedgerConfig{Now: now.read, Prices: testPrices("warn"), Budget: &spend.Budget{HardTokens: new(int64(200))}}
	for _, c := range []struct {
		name  string
		steps []func(*spend.Handle)
		want  spend.Book
		found bool
	}{
		{"reserved", nil, spend.Book{}, false},
		{"started", []func(*spend.Handle){func(h *spend.Handle) { h.Start() }}, estimated, true},
		{"settled", []func(*spend.Handle){func(h *spend.Handle) { h.Start() }, func(h *spend.Handle) { h.Settle(withID(used(10, 5), "id")) }}, real, false},
		{"released", []func(*spend.Handle){(*spend.Handle).Release}, spend.Book{}, false},
		{"cleared", []func(*spend.Handle){func(h *spend.Handle) { h.Start() }, (*spend.Handle).Release}, estimated, true},
	} {
		l, err := spend.NewLedger(config)
		if err != nil {
			t.Fatal(err)
		}
		e := need(100, 50)
		e.ID = "ask"
		h := reserve(t, l, proposer, e)
		for _, step := range c.steps {
			step(h)
		}
		next := restart(t, l.Snapshot(), config)
		allLevels(t, next, c.want)
		room := 200 - c.want.TokensIn - c.want.TokensOut
		if got := code(refused(t, next, proposer, need(room-1, 1))); got != "ok" {
			t.Errorf("%s: the rest of the budget: %s", c.name, got)
		}
		if got := code(refused(t, next, proposer, need(room, 1))); got != "budget_tokens" {
			t.Errorf("%s: more than the rest: %s", c.name, got)
		}
		late := next.Find(round, "ask")
		if (late != nil) != c.found {
			t.Fatalf("%s: the call is found: %t", c.name, late != nil)
		}
		if late != nil {
			if r := late.Settle(withID(used(10, 5), "id")); !r.Late || r.Charged != real {
				t.Errorf("%s: a late answer: %+v", c.name, r)
			}
			allLevels(t, next, real)
		}
		if c.want == (spend.Book{}) {
			continue
		}
		if r, err := next.Charge(proposer, need(1, 1), withID(used(10, 5), "id")); err != nil || !r.Duplicate {
			t.Errorf("%s: the same usage again: %+v, %v", c.name, r, err)
		}
	}
}

func TestFind(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	e := need(1, 1)
	e.ID = "ask"
	h := reserve(t, l, proposer, e)
	if got := l.Find(session, "ask"); got == nil || got.Reserved() != h.Reserved() {
		t.Error("an open call is not found")
	}
	for _, c := range []struct {
		scope spend.Scope
		id    string
	}{{session, ""}, {session, "x"}, {spend.Scope{Tenant: "acme", Session: "x"}, "ask"}, {spend.Scope{Tenant: "x"}, "ask"}} {
		if l.Find(c.scope, c.id) != nil {
			t.Errorf("%v %q is found", c.scope, c.id)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	tenant := spend.ScopeState{Scope: spend.Scope{Tenant: "acme"}}
	for name, state := range map[string]spend.LedgerState{
		"nothing around it": {Scopes: []spend.ScopeState{{Scope: session}}},
		"twice":             {Scopes: []spend.ScopeState{tenant, tenant}},
		"a refund":          {Scopes: []spend.ScopeState{{Scope: tenant.Scope, Spent: spend.Book{Money: -1}}}},
		"no such parent":    {Scopes: []spend.ScopeState{tenant, {Scope: session, Parent: "x"}}},
		"a call of nowhere": {Scopes: []spend.ScopeState{tenant}, Calls: []spend.CallState{{Scope: session}}},
		"a bad scope":       {Scopes: []spend.ScopeState{tenant, {Scope: spend.Scope{Proposer: "p"}}}},
		"a bad budget":      {Scopes: []spend.ScopeState{{Scope: tenant.Scope, Budget: &spend.Budget{HardTokens: new(int64(-1))}}}},
	} {
		l, _ := newLedger(t, spend.LedgerConfig{})
		if err := l.Restore(state); !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, _ := newLedger(t, spend.LedgerConfig{})
	reserve(t, l, session, need(1, 1))
	if err := l.Restore(spend.LedgerState{}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("a ledger in use: %v", err)
	}
}
