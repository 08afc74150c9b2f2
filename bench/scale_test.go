package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// live is how many sessions "many" is.
const live = 100_000

// BenchmarkStart measures how long starting a session takes, on a machine of few
// and of many transitions.
func BenchmarkStart(b *testing.B) {
	for _, extra := range []int{0, 2995} {
		b.Run(fmt.Sprintf("transitions=%d", extra+5), func(b *testing.B) {
			m := loop(b, 3, extra)
			r := engine(b, store.NewMemory(), m)
			ctx := context.Background()
			b.ReportAllocs()
			used, n := cpu(), 0
			for b.Loop() {
				if n%live == live-1 {
					b.StopTimer()
					r = engine(b, store.NewMemory(), m)
					runtime.GC()
					b.StartTimer()
				}
				if _, err := r.Start(ctx, m, runner.StartOptions{}); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(cpu()-used)/float64(n), "cpu-ns/start")
		})
	}
}

// compare runs two cases in turn and reports the median of their CPU ratios.
func compare(b *testing.B, metric string, ours, base func()) {
	ours()
	base()
	var ratios []float64
	for b.Loop() {
		t0 := cpu()
		base()
		t1 := cpu()
		ours()
		t2 := cpu()
		ratios = append(ratios, float64(t2-t1)/float64(t1-t0))
	}
	b.ReportMetric(median(ratios), metric)
}

// BenchmarkOthers compares a round while 100,000 other sessions are live with
// one while there are none.
func BenchmarkOthers(b *testing.B) {
	m := loop(b, 3, 0)
	crowd, alone := engine(b, store.NewMemory(), m), engine(b, store.NewMemory(), m)
	ctx := context.Background()
	for range live {
		if _, err := crowd.Start(ctx, m, runner.StartOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	compare(b, "x-alone", func() { rounds(b, crowd, m, 20_000) }, func() { rounds(b, alone, m, 20_000) })
}

// BenchmarkMachineSize compares a round on a machine of 3,000 transitions with
// one on a machine of five.
func BenchmarkMachineSize(b *testing.B) {
	small, large := loop(b, 3, 0), loop(b, 3, 2995)
	rs, rl := engine(b, store.NewMemory(), small), engine(b, store.NewMemory(), large)
	compare(b, "x-small", func() { rounds(b, rl, large, 20_000) }, func() { rounds(b, rs, small, 20_000) })
}

// BenchmarkIdle measures what 100,000 live sessions that do nothing cost: bytes
// each, and a full garbage collection over all of them.
func BenchmarkIdle(b *testing.B) {
	m := loop(b, 3, 0)
	var bytes, pause float64
	n := 0
	for b.Loop() {
		r := engine(b, store.NewMemory(), m)
		ctx := context.Background()
		before := heap()
		for range live {
			if _, err := r.Start(ctx, m, runner.StartOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		bytes += float64(heap()-before) / live
		start := time.Now()
		runtime.GC()
		pause += float64(time.Since(start).Microseconds()) / 1000
		n++
		if _, err := r.Sessions(ctx, session.ListQuery{Limit: 1}); err != nil { // keeps them alive
			b.Fatal(err)
		}
	}
	b.ReportMetric(bytes/float64(n), "B/session")
	b.ReportMetric(pause/float64(n), "GC-ms")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
