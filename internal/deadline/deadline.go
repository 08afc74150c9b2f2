// Package deadline makes deadlines that cost nothing until somebody looks at them.
package deadline

import (
	"context"
	"sync"
	"time"
)

// A Lazy is a context with a timeout whose timer exists only if somebody looks at it: most
// functions never do. It may be used concurrently. Release must be called.
type Lazy struct {
	context.Context // without the timeout
	timeout         time.Duration

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
	over   bool
}

// New returns a context that is done after a timeout, or with ctx. The time begins when
// somebody looks.
func New(ctx context.Context, timeout time.Duration) *Lazy {
	return &Lazy{Context: ctx, timeout: timeout}
}

func (l *Lazy) arm() context.Context {
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
func (l *Lazy) Deadline() (time.Time, bool) { return l.arm().Deadline() }

// Done implements [context.Context].
func (l *Lazy) Done() <-chan struct{} { return l.arm().Done() }

// Err implements [context.Context].
func (l *Lazy) Err() error {
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

// Reuse makes l the context of another ask, unless somebody has looked at it and
// may still be doing so.
func (l *Lazy) Reuse(ctx context.Context, timeout time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner != nil || l.Context != ctx {
		return false
	}
	l.timeout, l.over = timeout, false
	return true
}

// Release ends the context.
func (l *Lazy) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.cancel != nil {
		l.cancel()
	}
}
