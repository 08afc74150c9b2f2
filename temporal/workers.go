package temporal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// The workers beside dialai serve, one for each tenant, while Temporal comes and goes. A worker that Temporal is gone from
// asks again by itself. One that could not be started, or has stopped since what it was told cannot be mended by asking
// again (its namespace is gone, say), is begun again, later each time until one has lasted. The server serves on
// meanwhile: rulings are taken, and what waits runs on when a worker does.

// How long it takes until a worker is begun again, and how long it has to last to be begun again as soon as at first.
const (
	retryFirst = 10 * time.Second
	retryMost  = time.Minute
	lasting    = 10 * time.Minute
)

// workers are the workers of a process.
type workers struct {
	mu      sync.Mutex
	wanted  int           // how many there are to be
	running int           // how many run
	client  client.Client // of one of them
	failure error         // why one does not run
}

// keep has a worker run until ctx is done. begin makes one that tells of the error after which it has stopped.
func (s *workers) keep(ctx context.Context, c client.Client, begin func(context.Context, func(error)) (worker.Worker, error)) {
	s.mu.Lock()
	s.wanted++
	s.client = c
	s.mu.Unlock()
	said, wait := "", retryFirst
	for {
		began := time.Now()
		err := s.work(ctx, begin)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.failure = err
		s.mu.Unlock()
		if now := err.Error(); now != said {
			said = now
			slog.WarnContext(ctx, "sessions do not run on Temporal", "error", err)
		}
		if time.Since(began) >= lasting {
			wait = retryFirst
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// work has one worker run until ctx is done or it has failed.
func (s *workers) work(ctx context.Context, begin func(context.Context, func(error)) (worker.Worker, error)) error {
	failed := make(chan error, 1)
	w, err := begin(ctx, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	s.runs(1)
	defer s.runs(-1)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

func (s *workers) runs(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += more
}

// ready says what is wrong: a worker that does not run, or Temporal does not answer.
func (s *workers) ready(ctx context.Context) error {
	s.mu.Lock()
	c, missing, err := s.client, s.running < s.wanted, s.failure
	s.mu.Unlock()
	switch {
	case c == nil:
		return errors.New("no worker was begun yet")
	case missing && err != nil:
		return err
	case missing:
		return errors.New("a worker has not started yet")
	}
	_, err = c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}

// ready is what /readyz looks at.
func (s *settings) ready() func(context.Context) error {
	if s.address == "" {
		return nil
	}
	return s.workers.ready
}
