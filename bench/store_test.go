package bench_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// Disks change their speed from second to second, so every figure here is a
// ratio to bare appends measured just before and just after it.

// rawLog is the bound: a file that is appended to and synced, alone or by a
// committer that writes whatever has gathered.
type rawLog struct {
	file *os.File
	jobs chan chan struct{}
	done chan struct{}
	data []byte
}

// eventBytes is about what one transition takes in the log.
const eventBytes = 1500

func newRawLog(tb testing.TB) *rawLog {
	f, err := os.Create(filepath.Join(tb.TempDir(), "raw.log"))
	if err != nil {
		tb.Fatal(err)
	}
	l := &rawLog{file: f, jobs: make(chan chan struct{}, 256), done: make(chan struct{}), data: make([]byte, eventBytes)}
	go l.commit()
	tb.Cleanup(func() {
		close(l.jobs)
		<-l.done
		f.Close()
	})
	return l
}

func (l *rawLog) commit() {
	defer close(l.done)
	var waiting []chan struct{}
	for first := range l.jobs {
		waiting = append(waiting[:0], first)
		for grown := true; grown; {
			grown = false
			for drained := false; !drained; {
				select {
				case j, ok := <-l.jobs:
					if !ok {
						drained = true
						break
					}
					waiting, grown = append(waiting, j), true
				default:
					drained = true
				}
			}
			if grown {
				runtime.Gosched()
			}
		}
		for range waiting {
			if _, err := l.file.Write(l.data); err != nil {
				panic(err)
			}
		}
		if err := l.file.Sync(); err != nil {
			panic(err)
		}
		for _, w := range waiting {
			close(w)
		}
	}
}

// run has so many writers append n records in all and returns the rate.
func (l *rawLog) run(writers, n int) float64 {
	start := time.Now()
	parallel(writers, n, func(int) {
		if writers == 1 {
			if _, err := l.file.Write(l.data); err != nil {
				panic(err)
			}
			if err := l.file.Sync(); err != nil {
				panic(err)
			}
			return
		}
		ready := make(chan struct{})
		l.jobs <- ready
		<-ready
	})
	return float64(n) / time.Since(start).Seconds()
}

func parallel(workers, n int, f func(worker int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(w)
			}
		})
	}
	wg.Wait()
}

// sqliteRounds runs n rounds on so many sessions at once, each a session of its
// own in a loop of Run with one transition, and returns rate and CPU per round.
func sqliteRounds(tb testing.TB, r *runner.Runner, m *machine.Machine, sessions, n int) (rate float64, cpuEach time.Duration) {
	ctx := context.Background()
	ids := make([]specialist.SessionID, sessions)
	for i := range ids {
		s, err := r.Start(ctx, m, runner.StartOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		ids[i] = s.ID
	}
	start, used := time.Now(), cpu()
	parallel(sessions, n, func(w int) {
		if tick, err := r.Step(ctx, ids[w]); err != nil || tick.Status != runner.TickAdvanced {
			tb.Errorf("%v %s", err, tick.Status)
		}
	})
	return float64(n) / time.Since(start).Seconds(), (cpu() - used) / time.Duration(n)
}

// BenchmarkSQLite measures durable transitions, each fully synced, against bare
// appends.
func BenchmarkSQLite(b *testing.B) {
	for _, c := range []struct {
		name           string
		sessions, each int
	}{{"sessions=1", 1, 300}, {"sessions=64", 64, 6400}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := store.OpenSQLite(context.Background(), filepath.Join(b.TempDir(), "bench.db"), store.SQLiteOptions{})
			if err != nil {
				b.Fatal(err)
			}
			size := func() int64 {
				is, err := s.Status(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				return is.SizeBytes
			}
			empty, written := size(), 0
			defer s.Close()
			m := loop(b, 3, 0)
			r := engine(b, s, m)
			raw := newRawLog(b)
			var ratios, single []float64
			var used time.Duration
			for b.Loop() {
				before := raw.run(c.sessions, c.each)
				rate, each := sqliteRounds(b, r, m, c.sessions, c.each)
				after := raw.run(c.sessions, c.each)
				ratios = append(ratios, rate/((before+after)/2))
				used += each
				written += c.each
				if c.sessions > 1 {
					alone, _ := sqliteRounds(b, r, m, 1, 200)
					single = append(single, rate/alone)
					written += 200
				}
			}
			b.ReportMetric(median(ratios), "x-raw")
			b.ReportMetric(float64(size()-empty)/float64(written), "B/transition")
			b.ReportMetric(float64(used.Microseconds())/float64(len(ratios)), "cpu-µs/transition")
			if single != nil {
				b.ReportMetric(median(single), "x-one-session")
			}
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
