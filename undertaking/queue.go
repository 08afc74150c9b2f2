package undertaking

import (
	"context"
	"sync"
)

// An input is something that happened. handle is called on the loop's goroutine, and reports
// whether the session may have to be stepped.
type input interface {
	handle(ctx context.Context, l *Loop) bool
}

// A queue holds what has happened until the loop takes it. Nobody who puts something in
// waits: an agent whose events waited for the loop could not take what the loop sends it.
type queue struct {
	filled chan struct{}
	mu     sync.Mutex
	list   []input
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

func (q *queue) put(e input) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take takes what has happened first, nil if nothing has.
func (q *queue) take() (e input) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return nil
	}
	e, q.list = q.list[0], q.list[1:]
	return e
}
