package spend_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
)

// TestNeverPastACap: whatever many goroutines reserve in shared scopes, what is
// spent and held never passes a limit of any of them, as long as no call needs
// more than was estimated; and in the end nothing is held and the sums agree.
func TestNeverPastACap(t *testing.T) {
	const workers, rounds = 8, 300
	caps := map[spend.Scope]*spend.Budget{
		{Tenant: "acme", Session: "s0"}:              {HardTokens: new(int64(9000)), HardCalls: new(int64(300))},
		{Tenant: "acme", Session: "s1"}:              {HardUSD: new(exact.Money(9_000_000_000))},
		{Tenant: "acme", Session: "s0", Round: "r0"}: {HardCalls: new(int64(40))},
	}
	calls := int64(500)
	l, now := newLedger(t, spend.LedgerConfig{Quota: func(string) *spend.Quota {
		return &spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: &calls}}}
	}})
	scopes := slices.SortedFunc(maps.Keys(caps), func(a, b spend.Scope) int { return cmp.Compare(a.String(), b.String()) })
	for _, s := range scopes { // a scope before those in it
		if err := l.Open(s, spend.Opening{Budget: caps[s]}); err != nil {
			t.Fatal(err)
		}
	}
	within := func() {
		for s, b := range caps {
			got := l.Balance(s)
			if b.HardTokens != nil && got.Spent.TokensIn+got.Spent.TokensOut+got.Tokens > *b.HardTokens ||
				b.HardCalls != nil && got.Spent.Calls+got.Calls > *b.HardCalls ||
				b.HardUSD != nil && got.Spent.Money+got.USD > *b.HardUSD {
				t.Errorf("%s holds %+v", s, got)
			}
		}
		if got := l.Balance(spend.Scope{Tenant: "acme"}); got.Spent.Calls+got.Calls > calls {
			t.Errorf("the tenant holds %+v", got)
		}
	}
	var admitted, refusals, tokensSpent atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range rounds {
				s := spend.Scope{Tenant: "acme", Session: fmt.Sprint("s", rng.IntN(3)), Round: fmt.Sprint("r", rng.IntN(2)), Proposer: fmt.Sprint("p", w)}
				in, out := 1+rng.Int64N(100), 1+rng.Int64N(50)
				h, err := l.Reserve(context.Background(), s, need(in, out))
				if err != nil {
					if _, ok := errors.AsType[*spend.BudgetError](err); !ok {
						t.Error(err)
					}
					refusals.Add(1)
					continue
				}
				within()
				switch rng.IntN(4) {
				case 0:
				case 1: // forgotten by the caller, cleared by time
					if h.Start() == nil {
						tokensSpent.Add(in + out)
					}
					now.pass(time.Minute)
					l.Expire()
					continue
				default:
					if h.Start() != nil { // cleared by another's clock: the call must not be made
						break
					}
					r := h.Settle(used(rng.Int64N(in+1), rng.Int64N(out+1)))
					tokensSpent.Add(r.Charged.TokensIn + r.Charged.TokensOut)
					admitted.Add(1)
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	now.pass(time.Hour)
	l.Expire()
	within()
	if admitted.Load() == 0 || refusals.Load() == 0 {
		t.Errorf("seed %d: %d admitted, %d refused: the test tests nothing", seed, admitted.Load(), refusals.Load())
	}
	sum := spend.Book{}
	for i := range 3 {
		b := l.Balance(spend.Scope{Tenant: "acme", Session: fmt.Sprint("s", i)})
		sum = sum.Plus(b.Spent)
		if b.OpenCalls != 0 || b.Tokens != 0 || b.Calls != 0 || b.USD != 0 {
			t.Errorf("seed %d: session %d still holds %+v", seed, i, b)
		}
	}
	if got := l.Balance(spend.Scope{Tenant: "acme"}).Spent; got != sum || got.TokensIn+got.TokensOut != tokensSpent.Load() {
		t.Errorf("seed %d: the tenant has spent %+v, its sessions %+v, the receipts say %d tokens", seed, got, sum, tokensSpent.Load())
	}
}

// TestSettleOnce: many goroutines settle the same call and the same usage; it is
// charged once.
func TestSettleOnce(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	shared := reserve(t, l, proposer, need(5, 5))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			defer shared.Release()
			shared.Settle(withID(used(5, 5), "one"))
			own := reserve(t, l, proposer, need(5, 5))
			own.Settle(withID(used(5, 5), "one"))
			own = reserve(t, l, proposer, need(5, 5))
			own.Settle(withID(used(1, 0), fmt.Sprint("own", i)))
			own.Settle(withID(used(1, 0), fmt.Sprint("own", i)))
		})
	}
	wg.Wait()
	allLevels(t, l, spend.Book{Calls: 9, TokensIn: 13, TokensOut: 5, Money: 23_000_000})
}

// TestScopesComeAndGo: scopes are opened and closed while others reserve in them
// and look at the whole.
func TestScopesComeAndGo(t *testing.T) {
	l, _ := newLedger(t, spend.LedgerConfig{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				reserve(t, l, proposer, need(1, 1)).Settle(used(1, 1))
				if err := l.Close(round); err != nil && !errors.Is(err, spend.ErrOpenCalls) {
					t.Error(err)
				}
				l.Check(proposer)
				l.Progress(session)
				l.Snapshot()
			}
		})
	}
	wg.Wait()
	if got := l.Balance(session).Spent.Calls; got != 800 {
		t.Errorf("%d calls", got)
	}
}
