package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A line is one webhook as the Notifier deals with it. Notifier.mu guards it, but for what
// walk does, which one goroutine does at a time.
type line struct {
	notifier *Notifier
	tenant   *tenant
	hook     control.Webhook // as it was read last; Cursor as it is stored
	at       int64           // up to where it is walked: Cursor, or past records of which it is told nothing
	saved    time.Time       // when the cursor was stored last
	walking  bool
	rest     time.Time // not walked before, since it has failed
	feeding  bool
	sending  map[string]bool // deliveries of which an attempt is under way
	ended    map[string]bool // those of which one has ended since it was last read what is due
	next     specialist.Time // when something is to be sent; 0 if that is not known
}

// seen takes up a webhook as it was read.
func (l *line) seen(w control.Webhook) {
	if !l.walking && w.Cursor != l.hook.Cursor {
		l.at = w.Cursor // somebody wants it to be told again
	}
	if l.walking {
		w.Cursor, w.Epoch = l.hook.Cursor, l.hook.Epoch
	}
	if l.hook = w; w.NextAt != 0 {
		l.next = w.NextAt
	}
}

// mayWalk reports whether there is something to walk over, or a cursor to store.
func (l *line) mayWalk() bool {
	head, known := l.tenant.head()
	return known && !l.walking && l.hook.Pending < maxPending && time.Now().After(l.rest) && (l.at < head || l.at != l.hook.Cursor && time.Since(l.saved) > saveEvery || !l.tenant.in(&l.hook, head))
}

// walk goes over one page of the log, and stores what the webhook is to be told of it.
func (l *line) walk(ctx context.Context) error {
	l.notifier.mu.Lock()
	hook, at, saved := l.hook, l.at, l.saved
	l.notifier.mu.Unlock()
	head, _ := l.tenant.head()
	if !l.tenant.in(&hook, head) {
		return l.begin(ctx, &hook, head)
	}
	page, err := page(ctx, l.tenant.runner.Store(), at)
	if err != nil {
		return err
	}
	var tell []control.Delivery
	for i := range page {
		list, err := l.tenant.happened(ctx, hook.ID, &page[i])
		if err != nil {
			return err
		}
		for j := range list {
			if h := &list[j]; hook.Covers(h.kind, page[i].MachineName) {
				d, err := l.notifier.delivery(&hook, h)
				if err != nil {
					return err
				}
				l.notifier.trace(&d, h)
				tell = append(tell, d)
			}
		}
		at = page[i].Place
	}
	l.tenant.reached(at) // it may be more than was known, and is no other log for that
	if len(tell) == 0 && time.Since(saved) < saveEvery {
		l.notifier.mu.Lock()
		defer l.notifier.mu.Unlock()
		l.at = at
		return nil
	}
	return l.commit(ctx, &hook, tell, at)
}

// commit stores what a webhook is to be told and its cursor, both or none.
func (l *line) commit(ctx context.Context, hook *control.Webhook, tell []control.Delivery, at int64) error {
	if len(tell) == 0 && at == hook.Cursor {
		return nil
	}
	return l.stored(ctx, control.Changes{Walk: &control.Walk{WebhookID: hook.ID, From: hook.Cursor, To: at, Epoch: hook.Epoch}, Deliveries: tell})
}

func (l *line) stored(ctx context.Context, changes control.Changes) error {
	w := changes.Walk
	err := l.notifier.config.Control.Commit(ctx, changes)
	var fresh control.Webhook
	if errors.Is(err, control.ErrStale) { // somebody else has moved the cursor
		var failed error
		if fresh, failed = l.notifier.config.Control.Webhook(ctx, w.WebhookID); failed != nil {
			return err
		}
	}
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	switch {
	case err == nil:
		l.hook.Cursor, l.hook.Epoch, l.at, l.saved = w.To, w.Epoch, w.To, time.Now()
		if l.hook.Pending += int64(len(changes.Deliveries)); len(changes.Deliveries) > 0 {
			l.next = now()
		}
	case fresh.ID != "":
		l.hook, l.at = fresh, fresh.Cursor
	}
	return err
}

// begin has a webhook begin where the log stands, whose cursor is none of it: its store was
// replaced, or an older copy was put in its place. Its messages have ids of their own from
// then on, since the same places stand for something else.
func (l *line) begin(ctx context.Context, hook *control.Webhook, head int64) error {
	at, epoch := head, l.tenant.epochName()
	if hook.Epoch == "" {
		at = min(head, hook.Cursor) // it is new
	} else {
		epoch += "+" + hex.EncodeToString(sum(hook.Epoch, time.Now().String())[:4])
		l.notifier.config.Log.Warn("the log is another than the one that a webhook was told of: it is told what happens from now on", "webhook", hook.ID, "cursor", hook.Cursor, "place", head)
	}
	return l.stored(ctx, control.Changes{Walk: &control.Walk{WebhookID: hook.ID, From: hook.Cursor, To: at, Epoch: epoch}})
}

// sum returns the SHA-256 of texts, each in a line.
func sum(texts ...string) []byte {
	h := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return h[:]
}

// page returns the next records after a place.
func page(ctx context.Context, from session.Store, after int64) (page []session.LogEntry, err error) {
	size := 0
	for e, err := range from.Log(ctx, "", after) {
		if err != nil {
			return nil, err
		}
		e.Events = bytes.Clone(e.Events)
		page, size = append(page, e), size+len(e.Events)
		if len(page) == pageSize || size >= pageBytes {
			break
		}
	}
	return page, nil
}

// A tenant is a store of whose sessions webhooks are told, and what is known of its log.
type tenant struct {
	name   string
	runner *runner.Runner

	mu    sync.Mutex
	epoch string // "" until it is known
	place int64  // of the newest record

	reading  sync.Mutex // guards what follows
	newest   int64      // the place up to which the log was read by any webhook
	happens  *lru.Cache[int64, []happening]
	sessions *lru.Cache[readerOf, *reader]
}

const (
	remembered = 4096 // records
	followed   = 512  // sessions
)

func newTenant(t Tenant) *tenant {
	return &tenant{name: t.Name, runner: t.Runner, happens: lru.New[int64, []happening](remembered), sessions: lru.New[readerOf, *reader](followed)}
}

// begin finds out where the log stands.
func (t *tenant) begin(ctx context.Context) (int64, error) {
	epoch, err := t.runner.Store().Epoch(ctx)
	if err != nil {
		return 0, err
	}
	place, err := t.runner.Store().Place(ctx)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.place = epoch, max(t.place, place)
	return place, nil
}

func (t *tenant) reached(place int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.place = max(t.place, place)
}

// head returns the place of the newest record, and whether it is known.
func (t *tenant) head() (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place, t.epoch != ""
}

func (t *tenant) epochName() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// in reports whether the cursor of a webhook is one of the log, which ends at head.
func (t *tenant) in(w *control.Webhook, head int64) bool {
	base, _, _ := strings.Cut(w.Epoch, "+")
	return base == t.epochName() && w.Cursor <= head
}
