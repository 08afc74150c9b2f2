package temporal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/worker"
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
