package guard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
)

// BenchmarkLedger measures one reservation that is started and settled. The goal
// is two million a second on one core with 16 goroutines on one scope, and no
// allocation: use -cpu 1.
func BenchmarkLedger(b *testing.B) {
	for _, c := range []struct {
		name     string
		scopes   int
		adaptive bool
	}{{"one scope", 1, false}, {"one scope, adaptive", 1, true}, {"16 sessions", 16, false}} {
		b.Run(c.name, func(b *testing.B) { benchmarkPairs(b, c.scopes, c.adaptive) })
	}
}

func benchmarkPairs(b *testing.B, scopes int, adaptive bool) {
	const workers = 16
	now := time.UnixMilli(1_000_000)
	budget := &guard.Budget{HardTokens: new(int64(1 << 60)), HardUSD: new(exact.Money(1 << 62)), HardCalls: new(int64(1 << 60))}
	if adaptive {
		budget.ReserveMode = guard.ReserveAdaptive
	}
	l, err := guard.NewLedger(guard.LedgerConfig{
		Now:    func() time.Time { return now },
		Budget: budget,
		Prices: &guard.PriceTable{Prices: map[string]guard.Price{"m": {InputPer1M: exact.Dollar, OutputPer1M: 4 * exact.Dollar}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	use := guard.Usage{Usage: specialist.Usage{NumInputTokens: 900, NumOutputTokens: 300, Given: specialist.InputGiven | specialist.OutputGiven}}
	pairs := func(scope guard.Scope, n int) {
		for i := range n {
			h, err := l.Reserve(context.Background(), scope, guard.Estimate{Model: "m", Input: 1000, MaxOutput: 500})
			if err != nil {
				b.Error(err)
				return
			}
			h.Start()
			u := use
			u.NumOutputTokens += int64(i % 100)
			h.Settle(u)
			h.Release()
		}
	}
	names := make([]guard.Scope, workers)
	for i := range names {
		names[i] = guard.Scope{Tenant: "t", Session: fmt.Sprint("s", i%scopes), Round: "1", Proposer: "p"}
		pairs(names[i], 20)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { pairs(names[i], b.N/workers+1) })
	}
	wg.Wait()
}
