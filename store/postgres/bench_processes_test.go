package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	cmd "os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// Committers are processes of their own: this program, run again with these settings. Each begins as many sessions, says
// that it is ready, and commits to all of them at once whenever a line says for how long and how often.
const (
	committerStore    = "DIALAI_BENCH_COMMITTER_STORE"
	committerSessions = "DIALAI_BENCH_COMMITTER_SESSIONS"
	committerMuted    = "DIALAI_BENCH_COMMITTER_MUTED" // it wakes nobody
)

// committing is the program of a committer. It ends when there are no more lines.
func committing() int {
	err := func() error {
		ctx := context.Background()
		n, err := strconv.Atoi(os.Getenv(committerSessions))
		if err != nil {
			return err
		}
		s, err := postgres.Open(ctx, os.Getenv(committerStore), postgres.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		if os.Getenv(committerMuted) != "" {
			s.Mute()
		}
		writers, err := beginAll(ctx, s, n)
		if err != nil {
			return err
		}
		fmt.Println(0)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var length time.Duration
			var rate float64
			if _, err := fmt.Sscan(lines.Text(), &length, &rate); err != nil {
				return err
			}
			done, err := commitFor(ctx, writers, length, rate)
			if err != nil {
				return err
			}
			fmt.Println(done)
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// beginAll starts sessions, and returns writers of them.
func beginAll(ctx context.Context, s *postgres.Store, n int) (list []*writer, err error) {
	m, err := machine.Parse("looping.json", []byte(looping), runner.Checks())
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for range n {
		started, err := r.Start(ctx, m, runner.StartOptions{})
		if err != nil {
			return nil, err
		}
		w, err := writerOf(ctx, m, s, started.ID)
		if err != nil {
			return nil, err
		}
		if err := w.commit(ctx); err != nil { // it is stopped, so that nobody carries it on
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// commitFor has all writers commit at once for so long, rate times a second in all, evenly as far as they keep up; 0 is as often as
// they can. It returns how many commits there were in a second.
func commitFor(ctx context.Context, writers []*writer, length time.Duration, rate float64) (float64, error) {
	began, done := time.Now(), atomic.Int64{}
	errs := make(chan error, len(writers))
	for _, w := range writers {
		go func() {
			every, next := time.Duration(0), began
			if rate > 0 {
				every = time.Duration(float64(len(writers)) / rate * float64(time.Second))
				next = began.Add(time.Duration(rand.Float64() * float64(every)))
			}
			for ; ; next = next.Add(every) {
				time.Sleep(time.Until(next))
				if time.Since(began) >= length {
					errs <- nil
					return
				}
				if err := w.commit(ctx); err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// A committer is such a process.
type committer struct {
	testing.TB
	in  io.Writer
	out *bufio.Scanner
}

// commits starts a committer of so many sessions, with more settings, which ends with the benchmark.
func commits(b testing.TB, address string, sessions int, env ...string) *committer {
	b.Helper()
	p := cmd.Command(os.Args[0])
	p.Env, p.Stderr = append(os.Environ(), append(env, committerStore+"="+address, committerSessions+"="+fmt.Sprint(sessions))...), os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := p.Wait(); err != nil {
			b.Error(err)
		}
	})
	c := &committer{b, in, bufio.NewScanner(out)}
	c.read()
	return c
}

// read returns what it says next.
func (c *committer) read() (rate float64) {
	c.Helper()
	c.out.Scan()
	rate, err := strconv.ParseFloat(c.out.Text(), 64)
	if err != nil {
		c.Fatal("a committer has ended: ", err, c.out.Err())
	}
	return rate
}

// begin has it commit, as commitFor does; read returns what came of it.
func (c *committer) begin(length time.Duration, rate float64) {
	if _, err := fmt.Fprintln(c.in, length.Nanoseconds(), rate); err != nil {
		c.Error(err)
	}
}

// together has committers commit as fast as they can at the same time, and returns how many commits all have made in a second.
func together(length time.Duration, list ...*committer) (rate float64) {
	for _, c := range list {
		c.begin(length, 0)
	}
	for _, c := range list {
		rate += c.read()
	}
	return rate
}

// turn is how long committers of a benchmark commit before it is others' turn.
func turn() time.Duration {
	if testing.Short() {
		return 20 * time.Millisecond
	}
	return time.Second
}

// inTurns measures two sets of committers in turns, and reports the median of how much faster the second is, and what either does
// in a second.
func inTurns(b *testing.B, first, second []*committer, metric, one, two string) {
	together(turn()/4, first...) // so that nothing is looked up
	together(turn()/4, second...)
	var ratios, firsts, seconds []float64
	for n := 0; b.Loop(); n++ {
		var f, s float64
		if n%2 == 0 {
			f = together(turn(), first...)
		}
		s = together(turn(), second...)
		if n%2 == 1 {
			f = together(turn(), first...)
		}
		ratios, firsts, seconds = append(ratios, s/f), append(firsts, f), append(seconds, s)
	}
	b.ReportMetric(middle(ratios), metric)
	b.ReportMetric(middle(firsts), one)
	b.ReportMetric(middle(seconds), two)
}

// BenchmarkProcesses compares four processes that commit to 16 sessions each with one that commits to 64.
func BenchmarkProcesses(b *testing.B) {
	address := pgtest.Start(b, true).Database(b)
	var four []*committer
	for range 4 {
		four = append(four, commits(b, address, 16))
	}
	inTurns(b, []*committer{commits(b, address, 64)}, four, "x-one", "one/s", "four/s")
}

// BenchmarkWakeUps compares a process that commits to 64 sessions and tells others, one of whom listens as who
// carries sessions on and looks whenever it is told of one of them, with a process that tells nobody.
func BenchmarkWakeUps(b *testing.B) {
	address := pgtest.Start(b, true).Database(b)
	s := open(b, address, postgres.Options{})
	off, on := commits(b, address, 64, committerMuted+"=1"), commits(b, address, 64)
	w := join(b, s)
	watched := specialist.SessionID(ask[[16]byte](b, address, `SELECT session_id FROM sessions ORDER BY id DESC LIMIT 1`)) // of the process that tells
	ctx, cancel := context.WithCancel(b.Context())
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			select {
			case <-w.News():
			case <-ctx.Done():
				return
			}
		}
	})
	listening.Go(func() {
		if err := s.Watch(ctx, watched, math.MaxInt64); ctx.Err() == nil {
			b.Error("nobody waits any more: ", err)
		}
	})
	inTurns(b, []*committer{off}, []*committer{on}, "x-without", "without/s", "with/s")
	cancel()
	listening.Wait()
}
