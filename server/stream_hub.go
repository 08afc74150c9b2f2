package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What is committed to a store, by this process and by others, for all who follow it. One
// goroutine reads the logs of sessions and of machine names, as long as anybody follows, and
// keeps the newest records. Whoever follows has a place in the logs and no queue: they are
// woken, and take what comes behind their place. Who falls behind what is kept reads the store
// instead, page by page, and comes back; nobody waits for them, and nothing is lost.

const (
	maxKept   = 4096    // records
	keptBytes = 8 << 20 // of records, and of what is shown of them
	lookEvery = 100 * time.Millisecond
	pageKept  = 256 // records at a time
	catchUp   = 8   // who may read the store at a time because they have fallen behind
)

// A place says how much of the two logs of a store somebody has seen.
type place struct{ log, roster int64 }

// covers reports whether somebody at the place has seen all that is at another.
func (p place) covers(q place) bool { return p.log >= q.log && p.roster >= q.roster }

// past returns the place behind an entry.
func (p place) past(e *entry) place { return place{max(p.log, e.at.log), max(p.roster, e.at.roster)} }

// lacks reports whether an entry is behind the place.
func (p place) lacks(e *entry) bool {
	if e.isRoster() {
		return e.at.roster > p.roster
	}
	return e.at.log > p.log
}

// A hub follows a store.
type hub struct {
	runner *runner.Runner
	log    *slog.Logger
	told   func(specialist.SessionID) // is told of the session of each record
	missed func()                     // is told that there may have been records before the first
	wake   chan struct{}              // this process has committed something
	slots  chan struct{}              // of those who catch up
	work   sync.WaitGroup

	mu        sync.Mutex
	followers int
	stop      context.CancelFunc // ends the goroutine
	news      chan struct{}      // closed when there is something new
	begun     bool
	closed    bool
	start     place // of what is kept
	first     int64 // how many entries there were before those that are kept
	kept      []*entry
	size      int
	heads     map[specialist.SessionID]*entry // the newest that is kept of each session
}

func newHub(r *runner.Runner, log *slog.Logger) *hub {
	return &hub{runner: r, log: log, wake: make(chan struct{}, 1), slots: make(chan struct{}, catchUp), news: make(chan struct{}), heads: map[specialist.SessionID]*entry{}}
}

// committed tells the hub that this process has committed something.
func (h *hub) committed() {
	select {
	case h.wake <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// follow begins to follow the store, until leave is called.
func (h *hub) follow() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers++; h.followers == 1 && !h.closed {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		h.begun, h.kept, h.size = false, nil, 0
		clear(h.heads)
		h.work.Go(func() { h.run(ctx) })
	}
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.followers--; h.followers == 0 && h.stop != nil {
			h.stop()
		}
	})
}

// close ends following for good.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	if h.stop != nil {
		h.stop()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// run reads what is new until ctx ends.
func (h *hub) run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	read := newFolds(h.runner)
	var at place
	begun := false
	for ctx.Err() == nil {
		var page []*entry
		var err error
		if begun {
			page, err = readPage(ctx, h.runner.Store(), read, at)
		} else if at, err = newestPlace(ctx, h.runner.Store()); err == nil {
			begun = true
			h.begin(ctx, at)
		}
		if len(page) > 0 {
			at = at.past(page[len(page)-1])
			h.keep(ctx, page)
			continue // there may be more
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("the log cannot be followed", "error", err)
			h.rest(ctx, time.Second)
			continue
		}
		h.await(ctx, look.C, at)
	}
}

// await returns once there is something behind a place, or ctx has ended.
func (h *hub) await(ctx context.Context, look <-chan time.Time, at place) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			return
		case <-look:
			if now, err := newestPlace(ctx, h.runner.Store()); err != nil || now != at {
				return
			}
		}
	}
}

func (h *hub) rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// begin says from where on records are kept.
func (h *hub) begin(ctx context.Context, at place) {
	h.mu.Lock()
	if ctx.Err() == nil { // another one may have begun since
		h.begun, h.start = true, at
		h.tell()
	}
	h.mu.Unlock()
	h.missed()
}

// keep adds entries to those that are kept, and wakes who follows.
func (h *hub) keep(ctx context.Context, page []*entry) {
	h.mu.Lock()
	for _, e := range page {
		if ctx.Err() != nil {
			break
		}
		if !e.isRoster() {
			if e.newest = new(atomic.Int64); h.heads[e.session] != nil {
				e.newest = h.heads[e.session].newest
			}
			e.newest.Store(e.at.log)
			h.heads[e.session] = e
		}
		h.kept, h.size = append(h.kept, e), h.size+e.size()
	}
	h.forget()
	h.tell()
	h.mu.Unlock()
	for _, e := range page {
		if !e.isRoster() {
			h.told(e.session)
		}
	}
}

// forget drops the oldest entries while too much is kept. The caller holds mu.
func (h *hub) forget() {
	n := 0
	for ; len(h.kept)-n > maxKept || h.size > keptBytes && n < len(h.kept); n++ {
		e := h.kept[n]
		h.size -= e.size()
		h.start = h.start.past(e)
		if h.heads[e.session] == e {
			delete(h.heads, e.session)
		}
		h.kept[n] = nil
	}
	h.first += int64(n)
	h.kept = h.kept[n:]
}

// tell wakes who follows. The caller holds mu.
func (h *hub) tell() {
	close(h.news)
	h.news = make(chan struct{})
}

// wakeAll wakes who follows, though nothing is committed.
func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell()
}

// after returns some of the entries behind a place, where to look for the next, and what is
// closed when there are others. from is what it returned before, -1 at first. ok is false if
// what comes next is not kept: it is in the store, and from then on the place counts alone.
func (h *hub) after(at place, from int64) (entries []*entry, next int64, news <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun || from < h.first && !at.covers(h.start) {
		return nil, -1, h.news, false
	}
	i := int(max(from-h.first, 0))
	for i < len(h.kept) && !at.lacks(h.kept[i]) {
		i++
	}
	end := min(i+pageKept, len(h.kept))
	return h.kept[i:end:end], h.first + int64(end), h.news, true
}

// newestPlace returns the place behind all that is in a store.
func newestPlace(ctx context.Context, from session.Store) (at place, err error) {
	if at.log, err = from.Place(ctx); err == nil {
		at.roster, err = from.RosterPlace(ctx)
	}
	return at, err
}
