package bench_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// cpu returns the processor time this process has used: user and system, every
// thread, garbage collection included. Other processes disturb it little.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// loop returns a machine that goes back and forth between two states, with n
// proposers that are Go functions. extra transitions are added that are never
// taken.
func loop(tb testing.TB, n, extra int) *machine.Machine {
	tb.Helper()
	var more, states strings.Builder
	for i := range extra {
		if i%200 == 0 && i > 0 { // a state has 256 transitions at most
			fmt.Fprintf(&states, `,"s%d":{"transitions":{"x":"a"`, i)
			for j := i; j < min(i+200, extra); j++ {
				fmt.Fprintf(&states, `,"t%d":"done"`, j)
			}
			states.WriteString("}}")
		} else if i < 200 {
			fmt.Fprintf(&more, `,"t%d":"done"`, i)
		}
	}
	var who strings.Builder
	for i := range n {
		fmt.Fprintf(&who, `{"role":"proposer","specialistId":"p%d","strategyFn":"go"},`, i)
	}
	m, err := machine.Parse("loop.json", []byte(`{"machineName":"loop","initialState":"a","goalState":"done","consensusThreshold":0.5,
		"states":{"a":{"prompt":"On?","transitions":{"on":"b"`+more.String()+`}},"b":{"transitions":{"back":"a","end":"done"}},"done":{}`+states.String()+`},
		"specialists":[`+who.String()+`{"role":"arbiter","specialistId":"arbiter","strategyFnName":"alignmentMargin"}]}`), runner.Checks())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// account is loop for one proposer, with data: each round evaluates two conditions, which
// hold, and sets two members.
func account(tb testing.TB) *machine.Machine {
	tb.Helper()
	const (
		there = `"when":"= data.amount < 1000000.0","set":{"amount":"= data.amount + 1.0","by":"= by"}`
		end   = `"end":{"target":"done","when":"= data.amount >= 0.0 && visits < 1000"}`
	)
	m, err := machine.Parse("account.json", []byte(`{"machineName":"account","initialState":"a","goalState":"done","consensusThreshold":0.5,
		"input":{"type":"object","properties":{"amount":{"type":"number","default":0}}},
		"states":{"a":{"prompt":"On?","transitions":{"on":{"target":"b",`+there+`},`+end+`}},"b":{"transitions":{"back":{"target":"a",`+there+`},`+end+`}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"p0","strategyFn":"go"},{"role":"arbiter","specialistId":"arbiter","strategyFnName":"alignmentMargin"}]}`), runner.Checks())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// engine returns a runner whose proposers are Go functions and have earned some
// trust, so that several of them reach consensus.
func engine(tb testing.TB, s session.Store, m *machine.Machine) *runner.Runner {
	tb.Helper()
	registry := strategies.Registry{}.WithProposer("go", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		return q.Choose(q.State.Transitions[0], "the first will do"), nil
	}))
	r, err := runner.New(runner.Config{Store: s, Resolver: registry, AllowOperator: true})
	if err != nil {
		tb.Fatal(err)
	}
	ctx := context.Background()
	sess, err := r.Start(ctx, m, runner.StartOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.Step(ctx, sess.ID); err != nil {
		tb.Fatal(err)
	}
	if now, _ := r.Session(ctx, sess.ID); now.Status == session.NeedsHuman {
		a, err := r.Decide(ctx, runner.Ruling{SessionID: sess.ID, RoundID: runner.CurrentRound, SpecialistID: runner.Operator, TransitionName: "on"})
		if err != nil || !a.Executed {
			tb.Fatal(err, a.GuardReason)
		}
	}
	return r
}

// rounds runs n rounds, a new session every hundred.
func rounds(tb testing.TB, r *runner.Runner, m *machine.Machine, n int) {
	ctx := context.Background()
	var id specialist.SessionID
	for i := range n {
		if i%100 == 0 {
			s, err := r.Start(ctx, m, runner.StartOptions{})
			if err != nil {
				tb.Fatal(err)
			}
			id = s.ID
		}
		tick, err := r.Step(ctx, id)
		if err != nil || tick.Status != runner.TickAdvanced {
			tb.Fatalf("%v %s %s", err, tick.Status, tick.Reasoning())
		}
	}
}

func l1Rounds(e *l1Engine, m *l1Machine, n int) {
	ctx := context.Background()
	var s *l1Session
	for i := range n {
		if i%100 == 0 {
			s = e.start(m)
		}
		if !e.step(ctx, s) {
			panic("L1 refused a step")
		}
	}
}

func newL1(proposers int) (*l1Engine, *l1Machine) {
	m := &l1Machine{next: [][]int32{{1}, {0, 2}, {}}}
	m.limits.steps, m.limits.visits = 1000, 1000
	e := &l1Engine{}
	for range proposers {
		e.proposers = append(e.proposers, &l1First{"the first will do"})
	}
	return e, m
}

// TestRoundAllocates holds a round to what it allocates, which no load changes: a
// goroutine for each function that is asked once doubled it unnoticed.
func TestRoundAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget, so that they allocate")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pools
	for _, c := range []struct {
		m    *machine.Machine
		what string
		most float64
	}{{loop(t, 1, 0), "1 proposer", 12}, {loop(t, 3, 0), "3 proposers", 12}, {loop(t, 10, 0), "10 proposers", 18}, {account(t), "1 proposer with set and when", 24}} {
		r := engine(t, store.NewMemory(), c.m)
		rounds(t, r, c.m, 100)
		const batch = 1000
		if n := testing.AllocsPerRun(2, func() { rounds(t, r, c.m, batch) }) / batch; n > c.most+.5 {
			t.Errorf("a round of %s allocates %.1f times, more than %.0f", c.what, n, c.most)
		}
	}
}

// BenchmarkRound measures a whole round in memory, gate included, and how many
// times the lower bound it costs. Figure and bound alternate within one run.
func BenchmarkRound(b *testing.B) {
	for _, c := range []struct {
		name      string
		m         *machine.Machine
		proposers int
	}{{"proposers=1", loop(b, 1, 0), 1}, {"proposers=3", loop(b, 3, 0), 3}, {"proposers=10", loop(b, 10, 0), 10}, {"proposers=1,set,when", account(b), 1}} {
		b.Run(c.name, func(b *testing.B) {
			r := engine(b, store.NewMemory(), c.m)
			e, lm := newL1(c.proposers)
			b.ReportAllocs()
			const batch = 1000
			var ours, bound time.Duration
			n := 0
			for b.Loop() {
				if n%200 == 199 { // a store that is never emptied measures its own garbage
					b.StopTimer()
					r = engine(b, store.NewMemory(), c.m)
					b.StartTimer()
				}
				t0 := cpu()
				rounds(b, r, c.m, batch)
				t1 := cpu()
				b.StopTimer()
				l1Rounds(e, lm, batch)
				bound += cpu() - t1
				ours += t1 - t0
				b.StartTimer()
				n++
			}
			b.ReportMetric(float64(ours)/float64(n*batch), "cpu-ns/round")
			b.ReportMetric(float64(bound)/float64(n*batch), "L1-ns/round")
			b.ReportMetric(float64(ours)/float64(bound), "x-L1")
		})
	}
}
