package temporal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A stand is a worker that does nothing.
type stand struct {
	worker.Worker
	stopped *int
	err     error
}

func (s stand) Start() error { return s.err }
func (s stand) Stop()        { *s.stopped++ }

// TestWorkersBeginAgain: a worker that has stopped after a fatal error, or could not start, is begun again, later each time;
// one that has lasted is begun as soon as at first.
func TestWorkersBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var began []time.Duration
		var fail func(error)
		start, stopped := time.Now(), 0
		s := &workers{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.keep(ctx, nil, func(_ context.Context, fatal func(error)) (worker.Worker, error) {
				began = append(began, time.Since(start))
				fail = fatal
				if len(began) == 2 {
					return stand{stopped: &stopped, err: errors.New("Temporal is down")}, nil
				}
				return stand{stopped: &stopped}, nil
			})
		}()
		synctest.Wait()
		fail(errors.New("the namespace is gone"))
		fail(errors.New("the namespace is gone")) // nobody waits for it any more
		time.Sleep(retryFirst + 2*retryFirst)     // the second could not start
		synctest.Wait()
		time.Sleep(lasting)
		fail(errors.New("the namespace is gone"))
		time.Sleep(retryFirst)
		synctest.Wait()
		if want := []time.Duration{0, retryFirst, 3 * retryFirst, 4*retryFirst + lasting}; len(began) != len(want) || began[1] != want[1] || began[2] != want[2] || began[3] != want[3] {
			t.Errorf("workers were begun after %v, want %v", began, want)
		}
		if s.running != 1 || stopped != 2 {
			t.Errorf("%d run, %d were stopped", s.running, stopped)
		}
		cancel()
		<-done
		if s.running != 0 || stopped != 3 {
			t.Errorf("at the end %d run, %d were stopped", s.running, stopped)
		}
	})
}

// A deaf is a Temporal that is down for a while, and knows one workflow.
type deaf struct {
	client.Client
	back  time.Time
	heard []any
}

func (d *deaf) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	if time.Now().Before(d.back) {
		return serviceerror.NewUnavailable("down")
	}
	d.heard = append(d.heard, arg)
	if arg == int64(2) {
		return serviceerror.NewNotFound("no such workflow")
	}
	return nil
}

// TestTellsWhenBack: what workflows could not be told while Temporal was down they are told, in order, when it is back.
func TestTellsWhenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: strategies.Registry{}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ctx, cancel := context.WithCancel(t.Context())
		at := &deaf{back: time.Now().Add(time.Hour)}
		changes, done := make(chan change, 3), make(chan struct{})
		for n := range int64(3) {
			changes <- change{specialist.SessionID{1}, n + 1}
		}
		go func() {
			(&settings{}).tell(ctx, &Client{Temporal: at, Runner: r}, changes)
			close(done)
		}()
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if len(at.heard) != 3 || at.heard[0] != int64(1) || at.heard[2] != int64(3) {
			t.Errorf("workflows were told %v", at.heard)
		}
		cancel()
		<-done
	})
}
