package spend_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

// BenchmarkLedger measures one reservation and its settlement, by 16 goroutines.
// The goal is two million pairs a second on one core (use -cpu 1) and no
// allocation.
func BenchmarkLedger(b *testing.B) {
	for _, c := range []struct {
		name            string
		scopes          int
		adaptive, whole bool
	}{{"reserve and settle", 1, false, false}, {"all four steps", 1, false, true}, {"adaptive", 1, true, false}, {"16 sessions", 16, false, false}} {
		b.Run(c.name, func(b *testing.B) { benchmarkPairs(b, c.scopes, c.adaptive, c.whole) })
	}
}

func benchmarkPairs(b *testing.B, scopes int, adaptive, whole bool) {
	const workers = 16
	now := time.UnixMilli(1_000_000)
	budget := &spend.Budget{HardTokens: new(int64(1 << 60)), HardUSD: new(exact.Money(1 << 62)), HardCalls: new(int64(1 << 60))}
	if adaptive {
		budget.ReserveMode = spend.ReserveAdaptive
	}
	l, err := spend.NewLedger(spend.LedgerConfig{
		Now:    func() time.Time { return now },
		Budget: budget,
		Prices: &spend.PriceTable{Prices: map[string]spend.Price{"m": {InputPer1M: exact.Dollar, OutputPer1M: 4 * exact.Dollar}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	use := spend.Usage{Usage: specialist.Usage{NumInputTokens: 900, NumOutputTokens: 300, Given: specialist.InputGiven | specialist.OutputGiven}}
	pairs := func(scope spend.Scope, n int) {
		for i := range n {
			h, err := l.Reserve(context.Background(), scope, spend.Estimate{Model: "m", Input: 1000, MaxOutput: 500})
			if err != nil {
				b.Error(err)
				return
			}
			if whole {
				h.Start()
			}
			u := use
			u.NumOutputTokens += int64(i % 100)
			h.Settle(u)
			if whole {
				h.Release()
			}
		}
	}
	names := make([]spend.Scope, workers)
	for i := range names {
		names[i] = spend.Scope{Tenant: "t", Session: fmt.Sprint("s", i%scopes), Round: "1", Proposer: "p"}
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
