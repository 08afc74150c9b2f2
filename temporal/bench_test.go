package temporal_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// BenchmarkSession measures sessions that Temporal drives, in turns with the same ones on the pool of this process, over a store
// in memory: one of 100 rounds that wait for nobody, and one that waits for a human in each of ten. A round takes so many
// milliseconds there and here, and so many of the CPU of Temporal's server and of this process, in which the worker is.
func BenchmarkSession(b *testing.B) {
	if _, err := cpuOf(os.Getpid()); err != nil {
		b.Skipf("what processes compute is read from Linux: %v", err)
	}
	for _, c := range []struct {
		name   string
		rounds int
		who    []string
	}{
		{"local=100", 100, []string{web("local", "5s"), first}},
		{"human=10", 10, []string{human, half}},
	} {
		b.Run(c.name, func(b *testing.B) { measure(b, c.rounds, c.who) })
	}
}

func measure(b *testing.B, rounds int, who []string) {
	var asked atomic.Int32
	s := newServer(b).site(func(context.Context, specialist.Question) (string, error) {
		if asked.Add(1)%int32(rounds) == 0 {
			return "finish", nil
		}
		return "again", nil
	})
	defer s.worker().Stop()
	d := driver.New(driver.Config{})
	tell := d.Observer("main")
	pool, err := runner.New(runner.Config{Store: s.store, Resolver: s.cast, Observer: func(c session.Change) { tell(c) }})
	s.ok(err)
	defer pool.Close()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, driver.Tenant{Name: "main", Runner: pool}) }()
	m := machineOf(b, "", who...)
	play(b, pool, m, rounds, session.DriverPool, nil) // what is done once is done
	play(b, s.c.Runner, m, rounds, session.DriverNone, s)
	sums := map[string]float64{}
	for b.Loop() {
		for on, run := range map[string]func(){
			"temporal": func() { play(b, s.c.Runner, m, rounds, session.DriverNone, s) },
			"pool":     func() { play(b, pool, m, rounds, session.DriverPool, nil) },
		} {
			server, here, began := must(cpuOf(s.process.Process.Pid)), must(cpuOf(os.Getpid())), time.Now()
			run()
			sums[on] += float64(time.Since(began))
			if sums[on+"-process-cpu"] += float64(must(cpuOf(os.Getpid())) - here); on == "temporal" {
				sums["server-cpu"] += float64(must(cpuOf(s.process.Process.Pid)) - server)
			}
		}
	}
	for what, sum := range sums {
		b.ReportMetric(sum/1e6/float64(b.N*rounds), what+"-ms/round")
	}
	b.ReportMetric(0, "ns/op")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// play runs a session to its end, which at stands for if a workflow drives it.
func play(b *testing.B, r *runner.Runner, m *machine.Machine, rounds int, d session.Driver, at *site) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	one, err := r.Start(ctx, m, runner.StartOptions{Driver: d})
	if err == nil && at != nil {
		_, err = at.c.Adopt(ctx, one.ID, nil)
	}
	for n := 0; err == nil; {
		now, lookErr := r.Session(ctx, one.ID)
		switch err = lookErr; {
		case err != nil || now.Status == session.Completed:
			if err != nil || int(now.Executed) != rounds {
				b.Fatalf("a session of %d rounds ends with %v", rounds, err)
			}
			return
		case now.Status == session.NeedsHuman && int(now.Executed) == n:
			n++
			choice := map[bool]string{true: "finish", false: "again"}[n == rounds]
			if _, err = r.Decide(ctx, runner.Ruling{SessionID: one.ID, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: choice}); err == nil && at != nil {
				now, _ = r.Session(ctx, one.ID)
				err = at.c.Changed(ctx, one.ID, now.Sequence)
			}
		default:
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
	b.Fatal(err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cpuOf returns what a process has computed, in nanoseconds.
func cpuOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behind)
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return (user + system) * int64(time.Second) / 100, err // in ticks of 10 ms, as Linux tells them
}
