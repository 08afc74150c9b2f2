package llm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits say how hard one provider is called. Members that are not positive are
// those of DefaultLimits.
type Limits struct {
	MaxConcurrent int // calls at the same time
	PerMinute     int // calls begun in a minute, evenly spread; 0 is no limit
}

// DefaultLimits returns the limits of a provider that nobody set any for: 64
// calls at once and no rate, since the provider says when it is too much.
func DefaultLimits() Limits { return Limits{MaxConcurrent: 64} }

// A lane is the way to one provider: so many at once, none while the provider
// wants to be left alone. It may be used concurrently.
type lane struct {
	slots    chan struct{}
	interval time.Duration // between two calls; 0 if there is no rate

	mu    sync.Mutex
	next  time.Time // when the next call may begin
	quiet time.Time // until when the provider wants to be left alone
}

func newLane(l Limits) *lane {
	if l.MaxConcurrent <= 0 {
		l.MaxConcurrent = DefaultLimits().MaxConcurrent
	}
	n := &lane{slots: make(chan struct{}, l.MaxConcurrent)}
	if l.PerMinute > 0 {
		n.interval = time.Minute / time.Duration(l.PerMinute)
	}
	return n
}

// enter waits until a call may begin. Whoever was let in must leave.
func (l *lane) enter(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := l.wait(ctx); err != nil {
		l.leave()
		return err
	}
	return nil
}

func (l *lane) leave() { <-l.slots }

// wait waits for the turn of a call, or returns an error at once if ctx has no
// time for that.
func (l *lane) wait(ctx context.Context) error {
	at := l.turn(time.Now())
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err()
	}
	if end, ok := ctx.Deadline(); ok && at.After(end) {
		return fmt.Errorf("the provider takes no call for another %s, which is longer than there is time: %w", d.Round(time.Millisecond), context.DeadlineExceeded)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn books the next turn and returns when that is.
func (l *lane) turn(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now
	if l.interval > 0 {
		if l.next.After(at) {
			at = l.next
		}
		l.next = at.Add(l.interval)
	}
	if l.quiet.After(at) {
		at = l.quiet
	}
	return at
}

// rest keeps everybody away from the provider for a while.
func (l *lane) rest(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(d); d > 0 && until.After(l.quiet) {
		l.quiet = until
	}
}
