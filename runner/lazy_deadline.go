package runner

import (
	"context"
	"sync"
	"time"
)

// A lazyDeadline is a context with a timeout whose timer exists only if somebody
// looks at it: most functions never do. release must be called.
type lazyDeadline struct {
	context.Context // of the step
	timeout         time.Duration

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
	over   bool
}

func (l *lazyDeadline) arm() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		l.inner, l.cancel = context.WithTimeout(l.Context, l.timeout)
		if l.over {
			l.cancel()
		}
	}
	return l.inner
}

// Deadline implements [context.Context].
func (l *lazyDeadline) Deadline() (time.Time, bool) { return l.arm().Deadline() }

// Done implements [context.Context].
func (l *lazyDeadline) Done() <-chan struct{} { return l.arm().Done() }

// Err implements [context.Context].
func (l *lazyDeadline) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.inner != nil:
		return l.inner.Err()
	case l.over:
		return context.Canceled
	}
	return l.Context.Err()
}

// reuse makes l the context of another ask, unless somebody has looked at it and
// may still be doing so.
func (l *lazyDeadline) reuse(ctx context.Context, timeout time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner != nil || l.Context != ctx {
		return false
	}
	l.timeout, l.over = timeout, false
	return true
}

func (l *lazyDeadline) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.cancel != nil {
		l.cancel()
	}
}
