package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// timedFile is a machine in which sessions wait for a timer, far away or soon.
const timedFile = `{"machineName":"timed","initialState":"cooling","goalState":"done",
	"states":{"cooling":{"due":{"in":"%s","then":"again"},"specialists":[],"transitions":{"again":"cooling","end":"done"}},"done":{}},
	"specialists":[{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`

// timerStore fills a store with sessions that wait for timers: so many for one that is far away, and ten
// for one that comes each minute.
func timerStore(tb testing.TB, s session.Store, far int) (r *runner.Runner, pass func() time.Time) {
	ctx := context.Background()
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	r, err := runner.New(runner.Config{Store: s, Now: clock})
	if err != nil {
		tb.Fatal(err)
	}
	start := func(in string, n int) {
		m, err := machine.Parse("timed.json", fmt.Appendf(nil, timedFile, in), runner.Checks())
		if err != nil {
			tb.Fatal(err)
		}
		var wg sync.WaitGroup
		for part := range min(n, 100) {
			wg.Go(func() {
				for i := part; i < n; i += 100 {
					if _, err := r.Start(ctx, m, runner.StartOptions{}); err != nil {
						tb.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	start("8760h", far)
	start("1m", 10)
	return r, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Minute)
		return now
	}
}

// BenchmarkTickOfTimers measures a tick with ten timers that have come, and listing whose they
// are (ns-due), alone and among 100,000 sessions that wait for others (1,000 with -short): what
// waits costs a tick nothing.
func BenchmarkTickOfTimers(b *testing.B) {
	crowd := 100_000
	if testing.Short() {
		crowd = 1_000
	}
	for _, far := range []int{0, crowd} {
		for _, kind := range []string{"memory", "sqlite"} {
			b.Run(fmt.Sprintf("%s/waiting=%d", kind, far), func(b *testing.B) {
				var s session.Store = store.NewMemory()
				if kind == "sqlite" {
					file, err := store.OpenSQLite(context.Background(), filepath.Join(b.TempDir(), "dialai.db"), store.SQLiteOptions{})
					if err != nil {
						b.Fatal(err)
					}
					defer file.Close()
					s = file
				}
				r, pass := timerStore(b, s, far)
				var lists []float64
				b.ReportAllocs()
				for b.Loop() {
					now := pass()
					b.StopTimer()
					t0 := time.Now()
					if list, err := r.Due(context.Background(), specialist.TimeOf(now), 0); err != nil || len(list) != 10 {
						b.Fatal(len(list), err)
					}
					lists = append(lists, float64(time.Since(t0)))
					b.StartTimer()
					n := 0
					for result, err := range r.Tick(context.Background()) {
						if n++; err != nil || result.Tick.Status != runner.TickAdvanced {
							b.Fatal(result, err)
						}
					}
					if n != 10 {
						b.Fatal(n)
					}
				}
				b.ReportMetric(median(lists), "ns-due")
				if list, err := r.Due(context.Background(), 1<<60, 0); err != nil || len(list) != far+10 {
					b.Fatal(len(list), err)
				}
			})
		}
	}
}
