package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
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
	at       places          // up to where it is walked: Cursor and Roster, or past records of which it is told nothing
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
	if !l.walking && placesOf(&w) != placesOf(&l.hook) {
		l.at = placesOf(&w) // somebody wants it to be told again
	}
	if l.walking {
		w.Cursor, w.Roster, w.Epoch = l.hook.Cursor, l.hook.Roster, l.hook.Epoch
	}
	if l.hook = w; w.NextAt != 0 {
		l.next = w.NextAt
	}
}

// mayWalk reports whether there is something to walk over, or a cursor to store.
func (l *line) mayWalk() bool {
	head, known := l.tenant.head()
	return known && !l.walking && l.hook.Pending < maxPending && time.Now().After(l.rest) && (l.at.before(head) || l.at != placesOf(&l.hook) && time.Since(l.saved) > saveEvery || !l.tenant.in(&l.hook, head))
}

// walk goes over one page of each log, and stores what the webhook is to be told of it.
func (l *line) walk(ctx context.Context) error {
	l.notifier.mu.Lock()
	hook, at, saved := l.hook, l.at, l.saved
	l.notifier.mu.Unlock()
	head, _ := l.tenant.head()
	if !l.tenant.in(&hook, head) || hook.Roster < 0 {
		return l.begin(ctx, &hook, head)
	}
	var tell []control.Delivery
	of := func(list []happening) error {
		for i := range list {
			if h := &list[i]; hook.Covers(h.kind, h.machine) {
				d, err := l.notifier.delivery(&hook, h)
				if err != nil {
					return err
				}
				l.notifier.trace(&d, h)
				tell = append(tell, d)
			}
		}
		return nil
	}
	logs, rosters, err := l.tenant.page(ctx, at)
	for i := 0; err == nil && i < len(logs); i++ {
		var list []happening
		if list, err = l.tenant.happened(ctx, hook.ID, &logs[i]); err == nil {
			at.log, err = logs[i].Place, of(list)
		}
	}
	for i := 0; err == nil && i < len(rosters); i++ {
		at.roster, err = rosters[i].Place, of(staged(&rosters[i]))
	}
	if err != nil {
		return err
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
func (l *line) commit(ctx context.Context, hook *control.Webhook, tell []control.Delivery, at places) error {
	if len(tell) == 0 && at == placesOf(hook) {
		return nil
	}
	return l.stored(ctx, control.Changes{Walk: walkTo(hook, at), Deliveries: tell})
}

// walkTo returns the walk of a webhook from where it is to other places in the same logs.
func walkTo(hook *control.Webhook, to places) *control.Walk {
	return &control.Walk{WebhookID: hook.ID, From: hook.Cursor, To: to.log, FromRoster: hook.Roster, ToRoster: to.roster, Epoch: hook.Epoch}
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
		l.hook.Cursor, l.hook.Roster, l.hook.Epoch, l.at, l.saved = w.To, w.ToRoster, w.Epoch, places{w.To, w.ToRoster}, time.Now()
		if l.hook.Pending += int64(len(changes.Deliveries)); len(changes.Deliveries) > 0 {
			l.next = now()
		}
	case fresh.ID != "":
		l.hook, l.at = fresh, placesOf(&fresh)
	}
	return err
}

// begin has a webhook begin where the logs stand, whose cursor is none of theirs: its store was
// replaced, or an older copy was put in its place. Its messages have ids of their own from
// then on, since the same places stand for something else. One that was made before webhooks
// were told of machine names only begins in the logs of these.
func (l *line) begin(ctx context.Context, hook *control.Webhook, head places) error {
	at, epoch := head, l.tenant.epochName()
	switch {
	case hook.Epoch == "": // it is new
		at.log = min(head.log, hook.Cursor)
		if hook.Roster >= 0 {
			at.roster = min(head.roster, hook.Roster)
		}
	case l.tenant.in(hook, head):
		at.log, epoch = hook.Cursor, hook.Epoch
	default:
		epoch += "+" + hex.EncodeToString(sum(hook.Epoch, time.Now().String())[:4])
		l.notifier.config.Log.Warn("the log is another than the one that a webhook was told of: it is told what happens from now on", "webhook", hook.ID, "cursor", hook.Cursor, "place", head.log)
	}
	walk := walkTo(hook, at)
	walk.Epoch = epoch
	return l.stored(ctx, control.Changes{Walk: walk})
}

// sum returns the SHA-256 of texts, each in a line.
func sum(texts ...string) []byte {
	h := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return h[:]
}

// page returns the next records of both logs.
func (t *tenant) page(ctx context.Context, after places) (logs []session.LogEntry, rosters []session.RosterEntry, err error) {
	logs, err = first(t.runner.Store().Log(ctx, "", after.log), func(e *session.LogEntry) *[]byte { return &e.Events })
	if err == nil {
		rosters, err = first(t.runner.Store().RosterLog(ctx, "", after.roster), func(e *session.RosterEntry) *[]byte { return &e.Events })
	}
	return logs, rosters, err
}

// first returns so many of the first records of a log as a page has. They may be kept.
func first[T any](log iter.Seq2[T, error], events func(*T) *[]byte) (page []T, err error) {
	size := 0
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		record := events(&e)
		*record = bytes.Clone(*record)
		page, size = append(page, e), size+len(*record)
		if len(page) == pageSize || size >= pageBytes {
			break
		}
	}
	return page, nil
}

// Places say how much of the log of sessions and of the logs of machine names somebody has seen.
type places struct{ log, roster int64 }

// before reports whether there is something up to q that was not seen at p.
func (p places) before(q places) bool { return p.log < q.log || p.roster < q.roster }

func placesOf(w *control.Webhook) places { return places{w.Cursor, w.Roster} }

// standing returns where the logs of a store stand.
func standing(ctx context.Context, from session.Store) (at places, err error) {
	if at.log, err = from.Place(ctx); err == nil {
		at.roster, err = from.RosterPlace(ctx)
	}
	return at, err
}

// A tenant is a store of whose sessions webhooks are told, and what is known of its log.
type tenant struct {
	name   string
	runner *runner.Runner

	mu    sync.Mutex
	epoch string // "" until it is known
	place places // of the newest records

	reading  sync.Mutex // guards what follows
	newest   int64      // the place up to which the log was read by any webhook
	happens  *lru.Cache[int64, []happening]
	sessions *lru.Cache[readerOf, *reader]
	promises promises
}

const (
	remembered = 4096 // records
	followed   = 512  // sessions
)

func newTenant(t Tenant) *tenant {
	return &tenant{name: t.Name, runner: t.Runner, happens: lru.New[int64, []happening](remembered), sessions: lru.New[readerOf, *reader](followed)}
}

// begin finds out where the logs stand, and returns the place in that of sessions.
func (t *tenant) begin(ctx context.Context) (int64, error) {
	epoch, err := t.runner.Store().Epoch(ctx)
	if err != nil {
		return 0, err
	}
	at, err := standing(ctx, t.runner.Store())
	if err != nil {
		return 0, err
	}
	t.reached(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch = epoch
	return at.log, nil
}

func (t *tenant) reached(at places) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.place = places{max(t.place.log, at.log), max(t.place.roster, at.roster)}
}

// head returns the places of the newest records, and whether they are known.
func (t *tenant) head() (places, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place, t.epoch != ""
}

func (t *tenant) epochName() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch
}

// in reports whether the cursor of a webhook is one of the logs, which end at head.
func (t *tenant) in(w *control.Webhook, head places) bool {
	base, _, _ := strings.Cut(w.Epoch, "+")
	return base == t.epochName() && !head.before(placesOf(w))
}
