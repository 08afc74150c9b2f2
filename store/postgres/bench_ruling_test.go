package postgres_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	cmd "os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// alternating is a machine whose sessions wait for a human in open, for two proposals differ, and go on by themselves from next.
const alternating = `{"machineName": "alternating", "initialState": "open", "goalState": "done",
	"states": {"open": {"transitions": {"agree": "next", "check": "next", "finish": "done"}}, "next": {"transitions": {"on": "open"}}, "done": {}},
	"specialists": [{"role": "proposer", "specialistId": "carol", "isHuman": true}, {"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
		{"role": "proposer", "specialistId": "last", "strategyFnName": "lastAvailable"}, {"role": "arbiter", "specialistId": "judge", "strategyFn": "= aheadBy == proposals ? leader : none"}]}`

// A stepped is a commit of a worker.
type stepped struct {
	id       string
	sequence int64
	at       time.Time
	status   string
}

// carries starts a worker (work), which ends with the benchmark, and returns what it commits.
func carries(b *testing.B, address string) <-chan stepped {
	b.Helper()
	p := cmd.Command(os.Args[0])
	p.Env, p.Stderr = append(os.Environ(), workerStore+"="+address), os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	list, ended := make(chan stepped, 1024), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s stepped
			var ns int64
			if _, err := fmt.Sscan(lines.Text(), &s.id, &s.sequence, &ns, &s.status); err != nil {
				b.Error(lines.Text(), err)
			}
			s.at = time.Unix(0, ns)
			list <- s
		}
	}()
	b.Cleanup(func() {
		p.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := p.Wait(); err != nil {
			b.Error(err)
		}
	})
	return list
}

// BenchmarkRuling measures what it takes from a ruling, which was committed by this process, to the step that it leads to, which
// another one has committed; while a third commits to 64 sessions, half as often as it can.
func BenchmarkRuling(b *testing.B) {
	address := pgtest.Start(b, true).Database(b)
	s := open(b, address, postgres.Options{})
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	m, err := machine.Parse("alternating.json", []byte(alternating), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	load := commits(b, address, 64)
	together(turn()/4, load) // so that nothing is looked up
	most := together(turn(), load)

	steps := carries(b, address)
	var ids []specialist.SessionID
	waiting := map[string]bool{}
	next := func() stepped {
		select {
		case is := <-steps:
			waiting[is.id] = is.status == session.NeedsHuman.String()
			return is
		case <-time.After(within):
			b.Fatalf("nothing was stepped for %s", within)
			return stepped{}
		}
	}
	for range 16 {
		is, err := r.Start(b.Context(), m, runner.StartOptions{})
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, is.ID)
	}
	done := make(chan struct{})
	var loading sync.WaitGroup
	var rates []float64
	loading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				load.begin(turn()/2, most/2)
				rates = append(rates, load.read())
			}
		}
	})
	stop := sync.OnceFunc(func() { close(done); loading.Wait() })
	defer stop()
	var took []float64
	for n := 0; b.Loop(); n++ {
		id := ids[n%len(ids)]
		for !waiting[id.String()] {
			next()
		}
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // so that it comes at no moment of others' choosing
		ruled, err := r.Decide(b.Context(), runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: "check", Reasoning: "as it is"})
		began := time.Now()
		if err != nil {
			b.Fatal(err)
		}
		for {
			if is := next(); is.id == id.String() && is.sequence > ruled.Session.Sequence {
				took = append(took, float64(is.at.Sub(began))/1e6)
				break
			}
		}
	}
	stop()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-p50")
	b.ReportMetric(took[len(took)*99/100], "ms-p99")
	b.ReportMetric(middle(rates)/most, "x-most")
	b.ReportMetric(most, "most/s")
}
