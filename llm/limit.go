package llm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// How hard a provider is called. Each has a lane: a call takes one of its slots, waits for its
// turn if there is a rate, and waits as long as the provider has asked everybody to (Retry-After).
// Calls that have no time left for the wait are refused at once, and lose nobody else a turn.

// Limits say how hard one provider is called. Members that are not positive are
// those of defaultLimits.
type Limits struct {
	MaxConcurrent int // calls at the same time
	PerMinute     int // calls begun in a minute, evenly spread; 0 is no limit
}

// defaultLimits returns the limits of a provider that nobody set any for: 64
// calls at once and no rate, since the provider says when it is too much.
func defaultLimits() Limits { return Limits{MaxConcurrent: 64} }

// A lane is the way to one provider: so many at once, none while the provider
// wants to be left alone. It may be used concurrently.
type lane struct {
	slots    chan struct{}
	first    chan struct{} // held by the first of those that wait for their turn, if there is a rate
	interval time.Duration // between two calls; 0 if there is no rate

	mu      sync.Mutex
	waiting int       // calls that wait for their turn
	next    time.Time // when the next call may begin
	quiet   time.Time // until when the provider wants to be left alone
}

func newLane(l Limits) *lane {
	if l.MaxConcurrent <= 0 {
		l.MaxConcurrent = defaultLimits().MaxConcurrent
	}
	n := &lane{slots: make(chan struct{}, l.MaxConcurrent), first: make(chan struct{}, 1)}
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
// time for that. Turns are taken in the order in which calls came, and none is lost
// with a call that is given up before.
func (l *lane) wait(ctx context.Context) error {
	if err := l.queue(ctx); err != nil {
		return err
	}
	defer l.unqueue()
	if l.interval > 0 {
		select {
		case l.first <- struct{}{}:
			defer func() { <-l.first }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		d, err := l.take(ctx)
		if d <= 0 || err != nil {
			return err
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// queue adds a call to those that wait for their turn, if ctx has time for all of them.
func (l *lane) queue(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reaches(ctx, l.opens(time.Now()).Add(time.Duration(l.waiting)*l.interval)); err != nil {
		return err
	}
	l.waiting++
	return nil
}

func (l *lane) unqueue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
}

// take takes the turn, or returns how long it is until it can be taken.
func (l *lane) take(ctx context.Context) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	at := l.opens(now)
	if at.After(now) {
		return at.Sub(now), l.reaches(ctx, at)
	}
	l.next = now.Add(l.interval)
	return 0, ctx.Err()
}

// opens returns when a call can begin, if none is before it.
func (l *lane) opens(now time.Time) time.Time {
	for _, t := range [...]time.Time{l.next, l.quiet} {
		if t.After(now) {
			now = t
		}
	}
	return now
}

// reaches returns an error unless ctx has time until then.
func (l *lane) reaches(ctx context.Context, at time.Time) error {
	if end, ok := ctx.Deadline(); ok && at.After(end) {
		return fmt.Errorf("the provider takes no call for another %s, which is longer than there is time: %w", time.Until(at).Round(time.Millisecond), context.DeadlineExceeded)
	}
	return nil
}

// rest keeps everybody away from the provider for a while.
func (l *lane) rest(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(d); d > 0 && until.After(l.quiet) {
		l.quiet = until
	}
}
