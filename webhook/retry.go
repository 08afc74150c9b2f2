package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/dialai/dialai/specialist"
)

// This is the only file that knows the retry library: one policy for every outbound call.
// An attempt that failed is repeated if it says so (Again), after a random time up to a
// ceiling that doubles with each wait ("full jitter"), or after as long as the service has
// asked for with Retry-After, up to MaxAfter. Attempts end after their number, after Within,
// where ctx has no time for the next wait, and where nobody wants the answer any more.
//
// The first attempt runs without the library, since hardly any call needs another. An
// attempt that ctx cut short says little, so the error is that of the one before.

// A Retry says how failed attempts are repeated: after a random time up to Base,
// doubled each time up to Cap (full jitter).
type Retry struct {
	Attempts int           // at most this many in all
	Within   time.Duration // none is begun after this
	Base     time.Duration
	Cap      time.Duration
	// MaxAfter is the longest wait that a service is granted by Retry-After.
	MaxAfter time.Duration
}

// DefaultRetry returns the rule for webhooks: 3 attempts within 55 s, a base of
// 500 ms, a cap of 10 s, and 30 s for Retry-After.
func DefaultRetry() Retry {
	return Retry{Attempts: 3, Within: 55 * time.Second, Base: 500 * time.Millisecond, Cap: 10 * time.Second, MaxAfter: 30 * time.Second}
}

// withDefaults returns r with those fields of DefaultRetry that are not positive
// in r.
func (r Retry) withDefaults() Retry {
	d := DefaultRetry()
	if r.Attempts <= 0 {
		r.Attempts = d.Attempts
	}
	for _, f := range []struct{ into, otherwise *time.Duration }{
		{&r.Within, &d.Within}, {&r.Base, &d.Base}, {&r.Cap, &d.Cap}, {&r.MaxAfter, &d.MaxAfter},
	} {
		if *f.into <= 0 {
			*f.into = *f.otherwise
		}
	}
	return r
}

// An againError is the failure of an attempt that another one may put right.
type againError struct {
	error
	after time.Duration // for which the service wants to be left alone
}

func (e *againError) Unwrap() error { return e.error }

func again(err error, after time.Duration) error { return &againError{err, after} }

// do calls f until it succeeds, fails for good (with anything but an
// againError), or the rule or ctx says no more. It does not wait for what ctx
// has no time for. An attempt that was cut short by ctx says little, so the
// error is that of the last one that was not, and the end of ctx. Before each attempt
// but the first the Caller in ctx says whether it is still wanted.
func (r Retry) do(ctx context.Context, jitter func(time.Duration) time.Duration, f func() error) error {
	start := time.Now()
	last := f()
	if _, retryable := errors.AsType[*againError](last); retryable {
		last = r.repeat(ctx, start, jitter, last, f)
	}
	if last == nil || ctx.Err() == nil || errors.Is(last, ctx.Err()) {
		return last
	}
	return fmt.Errorf("%w (%w)", last, ctx.Err())
}

// repeat is do after a first attempt that failed. It is apart because hardly any
// call needs it.
func (r Retry) repeat(ctx context.Context, start time.Time, jitter func(time.Duration) time.Duration, failed error, f func() error) error {
	var last error
	delays := &fullJitter{rule: r, jitter: jitter}
	delays.deadline, _ = ctx.Deadline()
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		err := failed
		if last != nil {
			if unwanted := specialist.CallerOf(ctx).StillWanted(ctx); unwanted != nil {
				last = fmt.Errorf("%w (it is not asked again: %w)", last, unwanted)
				return struct{}{}, backoff.Permanent(last)
			}
			err = f()
		}
		if err != nil && last != nil && ctx.Err() != nil {
			return struct{}{}, backoff.Permanent(last)
		}
		last = err
		if retryable, ok := errors.AsType[*againError](err); ok {
			last, delays.after = retryable.error, min(retryable.after, r.MaxAfter)
			return struct{}{}, last
		}
		return struct{}{}, backoff.Permanent(err) // nil stays nil
	}, backoff.WithBackOff(delays), backoff.WithMaxTries(uint(r.Attempts)), backoff.WithMaxElapsedTime(max(1, r.Within-time.Since(start))))
	return last
}

// waitAsked reads a Retry-After header: seconds, or a date.
func waitAsked(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, 1<<32)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// anyWait returns a random wait of at most ceiling.
func anyWait(ceiling time.Duration) time.Duration {
	return rand.N(ceiling + 1) //nolint:gosec // spreads load, keeps no secret
}

// fullJitter is a backoff.BackOff.
type fullJitter struct {
	rule     Retry
	jitter   func(ceiling time.Duration) time.Duration
	deadline time.Time     // zero if there is none
	after    time.Duration // asked for by the service; 0 if it asked for nothing
	tries    int
}

// NextBackOff implements backoff.BackOff.
func (b *fullJitter) NextBackOff() time.Duration {
	d := b.after
	if d <= 0 {
		d = b.jitter(b.rule.ceiling(b.tries))
	}
	b.after = 0
	b.tries++
	if !b.deadline.IsZero() && time.Until(b.deadline) <= d {
		return backoff.Stop
	}
	return d
}

// Reset implements backoff.BackOff.
func (b *fullJitter) Reset() { b.tries, b.after = 0, 0 }

// ceiling returns the longest wait after so many waits: Base, doubled for each
// of them, at most Cap.
func (r Retry) ceiling(waits int) time.Duration {
	d := r.Base
	for ; waits > 0 && d < r.Cap; waits-- {
		d = min(d, r.Cap/2+1) * 2
	}
	return min(d, r.Cap)
}
