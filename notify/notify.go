// Package notify tells webhooks what happens in the sessions of a store, at least once.
//
//	notify.go     who delivers: one process, all webhooks
//	line.go       one webhook: how far it is walked, what is under way to it
//	happen.go     what of a record of the log somebody is told
//	trusted.go    the same of the stages of states, and of promises
//	message.go    the message, its id, and how it is sent
//	webhooks.go   how webhooks are made and changed
package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A Notifier walks the log for each webhook, from where its cursor is. What the webhook is to
// be told of a page of the log is stored in the commit that moves the cursor past it. Apart
// from that, what is stored is sent: several at once for each webhook, so that none waits for
// another, and again at the times of a schedule until it has arrived or is dead. Whatever
// interrupts that, a message that is sent again has the same id.
//
// It learns that there is something to do in two ways: from the log of the sessions of each tenant,
// which it follows, and by a look at all webhooks and the logs of machine names once a second, which
// also finds what other processes have changed. So that many messages to an address that does not answer fill no disk, a
// webhook is walked no further while it has maxPending of them; the log has the rest.
//
// One process among those that share a store delivers: the one that holds the Lock.
type Notifier struct {
	config Config
	post   poster
	wake   chan struct{}
	walks  chan struct{} // holds a token for each walk under way

	mu      sync.Mutex
	lines   map[string]*line
	traces  *lru.Cache[string, string] // by delivery
	tenants []*tenant
	work    sync.WaitGroup
}

// A Config says what a Notifier is made of. Control is required.
type Config struct {
	Control control.Store
	Seal    seal.Key // opens the secrets of webhooks
	// Policy says which addresses may be reached.
	Policy webhook.Policy
	// PublicURL is where people reach the server; "" leaves links out.
	PublicURL string
	Lock      Lock         // keeps other processes from delivering; nil if there are none
	Log       *slog.Logger // is told of what fails; nil is told nothing
	// Post sends a body to an address; nil sends it over package webhook's transport, under
	// the Policy.
	Post func(ctx context.Context, address string, headers []webhook.Header, body []byte) (webhook.Reply, error)
	// Attempted is told of each attempt once it is recorded: "delivered", "failed" if it is made
	// again, "dead" if not, "gone" if the address wants to be told nothing any more; nil is told
	// nothing. It is called concurrently.
	Attempted func(result string)
	// Traceparent returns the header traceparent of messages about what was just committed to a
	// session, "" for none. A message has the same on every attempt that this Notifier makes. nil
	// means none.
	Traceparent func(specialist.SessionID) string
}

type poster = func(ctx context.Context, address string, headers []webhook.Header, body []byte) (webhook.Reply, error)

// A Lock is held by one process at a time, and free when that has ended. One that a process may lose has a
// method Holds() bool, which says at once whether it is still held.
type Lock interface {
	TryLock() (bool, error)
	Unlock() error
}

// A Tenant is a store of whose sessions webhooks are told.
type Tenant struct {
	Name   string
	Runner *runner.Runner
}

const (
	lookEvery  = time.Second                              // how often all webhooks are looked at
	lockEvery  = time.Second                              // how often the lock is tried
	saveEvery  = 5 * time.Second                          // how often a cursor is stored that has passed nothing to tell
	atOnce     = 4                                        // attempts under way to a webhook
	maxWalks   = 8                                        // pages that are read at a time
	maxPending = 1000                                     // a webhook that has so many is walked no further
	pageSize   = 256                                      // records of a page
	pageBytes  = 1 << 20                                  // or so many bytes
	attemptFor = 15 * time.Second                         // an attempt may take so long
	tracedFor  = specialist.Time(60 * 1000)               // then it is not known any more what has led to an event
	failingFor = specialist.Time(5 * 24 * 60 * 60 * 1000) // then it is switched off
)

// MaxWebhooks is how many a tenant may have.
const MaxWebhooks = 200

// New returns a Notifier that does nothing before it is run.
func New(c Config) *Notifier {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	n := &Notifier{config: c, post: c.Post, wake: make(chan struct{}, 1), walks: make(chan struct{}, maxWalks), lines: map[string]*line{}, traces: lru.New[string, string](remembered)}
	if n.post == nil {
		n.post = outbound(c.Policy)
	}
	return n
}

// Run tells webhooks what happens until ctx ends. What was not sent by then is sent by whoever
// delivers next, also where this process has lost the lock, for it was not heard of in time: then it waits for
// it again. The error is one of the lock at the start, nil if ctx ended it. A Notifier is run once.
func (n *Notifier) Run(ctx context.Context, tenants ...Tenant) error {
	for first := true; ctx.Err() == nil; first = false {
		if ok, err := n.lead(ctx, first); !ok || err != nil {
			return err
		}
		n.deliver(ctx, tenants)
	}
	return nil
}

// deliver tells webhooks what happens until ctx ends or the lock is lost.
func (n *Notifier) deliver(ctx context.Context, tenants []Tenant) {
	if n.config.Lock != nil {
		defer n.config.Lock.Unlock()
	}
	defer n.work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	n.lines, n.tenants = map[string]*line{}, nil // of others it is not known how far they have come
	n.mu.Unlock()
	for _, t := range tenants {
		n.tenants = append(n.tenants, newTenant(t))
	}
	for _, t := range n.tenants {
		n.work.Go(func() { n.follow(ctx, t) })
	}
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	n.look(ctx)
	for ctx.Err() == nil {
		n.dispatch(ctx)
		select {
		case <-ctx.Done():
		case <-n.wake:
		case <-looks.C:
			if lease, lost := n.config.Lock.(interface{ Holds() bool }); lost && !lease.Holds() {
				n.config.Log.Warn("others deliver to webhooks: this process was not heard of for too long")
				return
			}
			n.look(ctx)
		}
	}
	n.save(context.WithoutCancel(ctx))
}

// lead returns once this process delivers, or ctx has ended. An error of the lock is returned at first only.
func (n *Notifier) lead(ctx context.Context, first bool) (bool, error) {
	for ; n.config.Lock != nil; first = false {
		ok, err := n.config.Lock.TryLock()
		if ok || err != nil && first {
			return ok, err
		}
		if err != nil {
			n.config.Log.Warn("it is not known who delivers to webhooks", "error", err) // again in a second
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(lockEvery):
		}
	}
	return ctx.Err() == nil, nil
}

// told says that there may be something to do.
func (n *Notifier) told() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// follow learns of what is committed to a tenant's store, by whomever. It goes on after an
// error.
func (n *Notifier) follow(ctx context.Context, t *tenant) {
	for ctx.Err() == nil {
		place, err := t.begin(ctx)
		if err == nil {
			n.told()
			for e, failed := range t.runner.Watch(ctx, place) {
				if err = failed; err != nil {
					break
				}
				t.reached(places{log: e.Place})
				n.told()
			}
		}
		if ctx.Err() == nil {
			n.config.Log.Warn("the log cannot be followed for webhooks", "tenant", t.name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// look reads all webhooks.
func (n *Notifier) look(ctx context.Context) {
	for _, t := range n.tenants {
		list, err := n.config.Control.Webhooks(ctx, control.Query{Tenant: t.name, Limit: 2 * MaxWebhooks})
		if err != nil {
			if ctx.Err() == nil {
				n.config.Log.Warn("webhooks are not looked at", "tenant", t.name, "error", err) // again in a second
			}
			continue
		}
		if place, err := t.runner.Store().RosterPlace(ctx); err == nil { // else the next look finds it
			t.reached(places{roster: place})
		}
		n.mu.Lock()
		there := map[string]bool{}
		for _, w := range list {
			if there[w.ID] = true; n.lines[w.ID] == nil {
				n.lines[w.ID] = &line{notifier: n, tenant: t, hook: w, at: placesOf(&w), saved: time.Now(), sending: map[string]bool{}, ended: map[string]bool{}}
			}
			n.lines[w.ID].seen(w)
		}
		for id, l := range n.lines {
			if l.tenant == t && !there[id] {
				delete(n.lines, id)
			}
		}
		n.mu.Unlock()
	}
}

// dispatch begins what there is to do.
func (n *Notifier) dispatch(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := now()
	for _, l := range n.lines {
		if l.hook.Off != "" {
			continue
		}
		if l.mayWalk() {
			select {
			case n.walks <- struct{}{}:
				l.walking = true
				n.work.Go(func() { n.walk(ctx, l) })
			default: // told again when one has ended
			}
		}
		if !l.feeding && len(l.sending) < atOnce && l.next != 0 && l.next <= at {
			l.feeding = true
			n.work.Go(func() { n.feed(ctx, l) })
		}
	}
}

// walk walks a webhook over one page of the log.
func (n *Notifier) walk(ctx context.Context, l *line) {
	err := l.walk(ctx)
	<-n.walks
	n.mu.Lock()
	defer n.mu.Unlock()
	l.walking = false
	if err != nil && ctx.Err() == nil && !errors.Is(err, control.ErrStale) {
		l.rest = time.Now().Add(lookEvery)
		n.config.Log.Warn("a webhook is not told what has happened", "webhook", l.hook.ID, "error", err)
	}
	n.told()
}

// feed sends what is due to a webhook, as far as there is room.
func (n *Notifier) feed(ctx context.Context, l *line) {
	n.mu.Lock()
	id := l.hook.ID
	clear(l.ended)
	n.mu.Unlock()
	due, err := n.config.Control.Deliveries(ctx, control.DeliveryQuery{WebhookID: id, Due: now(), Query: control.Query{Limit: 2 * atOnce}})
	n.mu.Lock()
	defer n.mu.Unlock()
	l.feeding, l.next = false, 0 // what comes later the next look finds
	if err != nil {
		if ctx.Err() == nil {
			n.config.Log.Warn("what a webhook is to be told cannot be read", "webhook", l.hook.ID, "error", err)
		}
		return
	}
	for _, d := range due {
		if l.sending[d.ID] || l.ended[d.ID] || len(l.sending) == atOnce { // what has ended may have been due when it was read
			continue
		}
		l.sending[d.ID] = true
		n.work.Go(func() { n.send(ctx, l, d) })
	}
}

// send makes an attempt at a delivery, and records what came of it.
func (n *Notifier) send(ctx context.Context, l *line, d control.Delivery) {
	n.mu.Lock()
	hook := l.hook
	traceparent, _ := n.traces.Get(d.ID)
	n.mu.Unlock()
	a := n.attempt(ctx, &hook, &d, traceparent)
	var err error
	if ctx.Err() == nil || a.Done {
		err = n.record(context.WithoutCancel(ctx), &hook, a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(l.sending, d.ID)
	l.ended[d.ID] = true
	l.next = now()
	switch {
	case errors.Is(err, control.ErrStale): // it was stored again meanwhile, or is gone
	case err != nil:
		l.next = 0 // the next look finds it
		n.config.Log.Warn("what came of an attempt is not recorded: it is made again", "webhook", hook.ID, "delivery", d.ID, "error", err)
	default:
		if a.Off != "" {
			l.hook.Off = a.Off
		}
		if n.config.Attempted != nil {
			n.config.Attempted(resultOf(&a))
		}
	}
	n.told()
}

// resultOf returns in a word what came of an attempt.
func resultOf(a *control.Attempt) string {
	switch {
	case a.Done:
		return "delivered"
	case a.Off == control.OffGone:
		return "gone"
	case a.NextAt == 0:
		return "dead"
	}
	return "failed"
}

// Backlog returns how many messages are to be delivered to webhooks that are on, as the last look
// found them: what of the log no webhook was walked over yet is not in it. It is 0 while another
// process delivers.
func (n *Notifier) Backlog() (messages int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if l.hook.Off == "" {
			messages += l.hook.Pending
		}
	}
	return messages
}

// record records what came of an attempt, in the audit log too if it switches the webhook off.
func (n *Notifier) record(ctx context.Context, hook *control.Webhook, a control.Attempt) error {
	if a.Off == "" && !a.Done && hook.FailingSince != 0 && a.At-hook.FailingSince >= failingFor {
		fresh, err := n.config.Control.Webhook(ctx, hook.ID) // something may have arrived meanwhile
		if err != nil {
			return err
		}
		if fresh.FailingSince != 0 && a.At-fresh.FailingSince >= failingFor {
			a.Off = control.OffFailing
		}
	}
	changes := control.Changes{Attempt: &a}
	if a.Off != "" {
		changes.Entries = []control.Entry{{At: a.At, Tenant: hook.Tenant, Subject: "dialai", Method: "none", Operation: "switchWebhookOff", Target: hook.ID, Result: a.Off}}
		n.config.Log.Warn("a webhook is switched off", "webhook", hook.ID, "why", a.Off)
	}
	return n.config.Control.Commit(ctx, changes)
}

// save stores the cursors that have passed nothing to tell.
func (n *Notifier) save(ctx context.Context) {
	n.mu.Lock()
	behind := map[*line]line{}
	for _, l := range n.lines {
		if !l.walking && l.hook.Off == "" {
			behind[l] = *l
		}
	}
	n.mu.Unlock()
	for l, is := range behind {
		if err := l.commit(ctx, &is.hook, nil, is.at); err != nil && !errors.Is(err, control.ErrStale) {
			n.config.Log.Warn("the cursor of a webhook is not stored: some of the log is walked again", "webhook", is.hook.ID, "error", err)
		}
	}
}

// trace notes of which trace a delivery is that is about something new.
func (n *Notifier) trace(d *control.Delivery, h *happening) {
	if n.config.Traceparent == nil || now()-h.at > tracedFor {
		return
	}
	if traceparent := n.config.Traceparent(h.session); traceparent != "" {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.traces.Put(d.ID, traceparent)
	}
}

func now() specialist.Time { return specialist.TimeOf(time.Now()) }
