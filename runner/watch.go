package runner

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/dialai/dialai/session"
)

// A commit is told to two kinds of listeners once it is durable. The observer of the
// Config is called with what this Runner has committed. A watcher only learns that there
// is something new, and reads it in the store, where it finds what other Runners have
// committed, too. So a slow watcher costs no memory and misses nothing: it reads later.

// watchEvery is how often a watcher looks for what others have committed.
const watchEvery = 250 * time.Millisecond

// A page is what a watcher reads at a time, so that no reader of the store waits for
// whoever handles the records.
const (
	pageRecords = 256
	pageBytes   = 1 << 20
)

// announce tells of a commit that is durable.
func (r *Runner) announce(c *session.Change) {
	if r.config.Observer != nil {
		r.config.Observer(*c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.watchers {
		select {
		case w <- struct{}{}:
		default: // it has not looked yet since the last word
		}
	}
}

// Watch yields the records of all sessions in commit order: first those that the store
// has after a place, 0 for all, then each that is committed, by whomever, without a gap
// and none twice. It ends when ctx does, or after it has yielded an error of the store.
// Whoever begins again after the place of the last record goes on where they were. What
// this Runner commits is yielded at once, what others commit within a quarter of a
// second. The records may be kept.
func (r *Runner) Watch(ctx context.Context, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		news := make(chan struct{}, 1)
		r.watch(news, true)
		defer r.watch(news, false)
		others := time.NewTicker(watchEvery)
		defer others.Stop()
		for ctx.Err() == nil {
			page, err := r.page(ctx, after)
			for _, e := range page {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
				after = e.Place
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(session.LogEntry{}, err)
				}
				return
			}
			if len(page) > 0 {
				continue // there may be more
			}
			select {
			case <-ctx.Done():
			case <-news:
			case <-others.C:
			}
		}
	}
}

// watch begins or ends to tell a watcher of commits.
func (r *Runner) watch(news chan struct{}, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.watchers[news] = true
	} else {
		delete(r.watchers, news)
	}
}

// page returns the next records after a place; none if there are none.
func (r *Runner) page(ctx context.Context, after int64) (page []session.LogEntry, err error) {
	size := 0
	for e, err := range r.store.Log(ctx, "", after) {
		if err != nil {
			return page, err
		}
		e.Events = bytes.Clone(e.Events)
		page, size = append(page, e), size+len(e.Events)
		if len(page) == pageRecords || size >= pageBytes {
			break
		}
	}
	return page, nil
}
