// Package driver carries every session of a store on.
package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Driver steps sessions until they end, need a human, or wait. Which ones it learns in
// three ways, and looks at no others:
//
//   - When it begins to drive it lists the running sessions that do not wait for a timer.
//   - Each commit names its session: those of the Runner through [Driver.Observer], those
//     of other processes through the log of the store.
//   - Twice a second an index says whose timers and reminders have come. What is to be
//     looked at otherwise at some time (an answer that is late, a step that failed) has a
//     place in a heap.
//
// Where a store hands its sessions out to several processes it is asked for those with which there
// is something to do instead (pool.go).
//
// So a session that waits for a human, or for a timer, costs nothing at all: no goroutine,
// no timer, no query. A session is stepped once at a time; then it goes to the end of its
// queue (queue.go), so that no session, machine or tenant keeps others waiting. A step that
// fails harms no other session: it is tried again, later each time.
//
// What the store holds is decided by its compare-and-swap alone. A second driver would
// waste work and double nothing; leases, or the Lock of a tenant, keep it from wasting work. A Lock that
// another process holds keeps no other tenant waiting.
type Driver struct {
	config Config
	wake   chan struct{} // there is something to do
	times  *times

	mu       sync.Mutex
	tenants  []*tenant
	queue    queue
	busy     int
	ahead    ahead
	wakes    wakes
	known    *lru.Cache[name, int64] // up to which event this process knows a session
	undriven *lru.Cache[name, int64] // sessions that were for another driver, or for none, as of an event
	driving  bool
	tooOld   error          // a store is for newer versions only
	pools    sync.WaitGroup // that claim sessions
	steps    int64          // that have ended
	finished time.Time      // when the last one did, or driving began
}

// A name is that of a session among those of all tenants, whose stores may be copies of each other.
type name struct {
	tenant string
	id     specialist.SessionID
}

// A Config says how much a Driver does at a time. The zero value has the defaults.
type Config struct {
	Workers    int           // steps at a time; 0 means 256
	PerMachine int           // steps at a time of the sessions of one machine of one tenant; 0 means 64
	MaxSteps   int           // transitions of a session since it was started or resumed; 0 means [runner.DefaultMaxSteps]
	MaxTime    time.Duration // of all the steps of a session since it was started or resumed, to the minute; 0 means [runner.DefaultTimeout]
	Times      Times         // keep that over restarts; nil forgets it with the Driver
	Grace      time.Duration // how long steps may go on when the Driver ends; 0 means 20 s
	Log        *slog.Logger  // is told of steps that fail; nil is told nothing
	Stepped    func(Stepped) // is told of each step that has ended, and must not block; nil is told nothing
}

// A Lock is held by one process at a time, and free when that has ended.
type Lock interface {
	TryLock() (bool, error)
	Unlock() error
}

// A Tenant is a store whose sessions are carried on, and the Runner that does it.
type Tenant struct {
	Name   string
	Runner *runner.Runner
	// Shared says that other processes write to the store, too. A store that is a
	// [session.WorkStore] says so itself.
	Shared bool
	// Workers is how many of Config.Workers the tenant may have at a time; 0 means all.
	Workers int
	// Lock keeps other processes from driving the tenant; nil if there are none. It is not
	// taken where the store is a [session.WorkStore], which other processes drive as well.
	Lock Lock
}

const (
	dueEvery   = 500 * time.Millisecond // how often the index of timers is asked, and locks of others are tried
	lookAgain  = 10 * time.Second       // when a session is looked at again that waits for what no commit may tell
	stalledFor = time.Minute
	dueAtOnce  = 256     // sessions of a page of a list
	remembered = 1 << 16 // sessions that are known without a step under way
)

// New returns a Driver that does nothing before it is run.
func New(c Config) *Driver {
	if c.Workers <= 0 {
		c.Workers = 256
	}
	if c.PerMachine <= 0 {
		c.PerMachine = 64
	}
	if c.MaxSteps <= 0 {
		c.MaxSteps = runner.DefaultMaxSteps
	}
	if c.MaxTime <= 0 {
		c.MaxTime = runner.DefaultTimeout
	}
	if c.Grace <= 0 {
		c.Grace = 20 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Driver{config: c, wake: make(chan struct{}, 1), times: newTimes(c.Times, c.MaxTime), known: lru.New[name, int64](remembered), undriven: lru.New[name, int64](remembered)}
}

// Observer returns what a tenant's Runner tells of its commits: it is the Observer of the
// Runner's Config, or is called by it. It does not block.
func (d *Driver) Observer(tenant string) func(session.Change) {
	return func(c session.Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		s := c.After
		d.known.Put(name{tenant, s.ID}, s.Sequence)
		t := d.tenant(tenant)
		if t != nil && slices.ContainsFunc(c.Events, teaches) {
			t.learned = true
			d.nudge()
		}
		if t != nil && t.pool != nil {
			if j := t.jobs[s.ID]; j != nil {
				j.sequence = max(j.sequence, s.Sequence)
			}
		} else if t != nil && s.Options().Driver == session.DriverPool {
			d.changed(t, s.ID, s.Machine().Name(), s.Sequence, s.Status == session.Running)
			if j := t.jobs[s.ID]; j != nil {
				j.mine.Store(true)
			}
		}
	}
}

// Run carries the sessions of tenants on until ctx ends, each while no other process holds
// its Lock: then it begins no step any more, and returns once those that are under way have
// ended. They have Config.Grace for that, and are interrupted after it: what was answered by
// then is recorded, the rest is asked for again by whoever drives next. The error is one of a
// lock or of a store at the start, nil if ctx ended it; what fails later is tried again, but for
// a [session.NewerError] of a store that hands sessions out: that ends it as ctx does. A
// Driver is run once.
func (d *Driver) Run(ctx context.Context, tenants ...Tenant) error {
	steps, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	defer interrupt()
	var watchers sync.WaitGroup
	defer d.unlock()
	defer watchers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.leave()
	idle := make([]*tenant, len(tenants))
	for i := range tenants {
		idle[i] = &tenant{Tenant: tenants[i], jobs: map[specialist.SessionID]*job{}, lines: map[string]*line{}}
	}
	idle, err := d.lead(ctx, idle, &watchers)
	if err != nil && ctx.Err() == nil {
		return err
	}
	d.look(ctx)
	due := time.NewTicker(dueEvery)
	defer due.Stop()
	for ctx.Err() == nil && d.outgrown() == nil {
		d.dispatch(steps)
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-due.C:
			if idle, err = d.lead(ctx, idle, &watchers); err != nil && ctx.Err() == nil {
				d.config.Log.Warn("a tenant is not driven", "error", err) // again in half a second
			}
			d.look(ctx)
		}
	}
	d.drain(interrupt)
	return d.outgrown()
}

// outgrow has the Driver end, for a store is for newer versions only.
func (d *Driver) outgrow(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tooOld == nil {
		d.config.Log.Error("this version is too old for the store: the steps under way end, and others go on", "error", err)
		d.tooOld = err
	}
	d.nudge()
}

// outgrown returns why the Driver is to end; nil if it is not.
func (d *Driver) outgrown() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tooOld
}

// lead begins to drive those tenants that no other process drives, and returns the others.
func (d *Driver) lead(ctx context.Context, tenants []*tenant, watchers *sync.WaitGroup) (idle []*tenant, failed error) {
	for _, t := range tenants {
		begun, err := d.begin(ctx, t, watchers)
		if !begun {
			idle = append(idle, t)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("tenant %s: %w", t.Name, err))
		}
	}
	return idle, failed
}

// begin finds what there is to do for a tenant, and follows the commits from there on; false if
// another process drives it.
func (d *Driver) begin(ctx context.Context, t *tenant, watchers *sync.WaitGroup) (bool, error) {
	work, shared := t.Runner.Store().(session.WorkStore)
	if shared {
		if err := d.join(ctx, t, work); err != nil {
			return false, err
		}
	} else if t.Lock != nil && !t.held {
		if ok, err := t.Lock.TryLock(); !ok || err != nil {
			return false, err
		}
	}
	if !t.held {
		t.held = true
		d.mu.Lock()
		if d.tenants = append(d.tenants, t); !d.driving {
			d.driving, d.finished = true, time.Now()
		}
		d.mu.Unlock()
	}
	if shared {
		t.pool.wake()
		return true, nil
	}
	place, err := t.Runner.Store().Place(ctx)
	if err != nil {
		return false, err
	}
	q := session.ListQuery{Statuses: []session.Status{session.Running}, Awake: max(1, now()), Limit: dueAtOnce}
	if err := d.list(ctx, t, q); err != nil {
		return false, err
	}
	if t.Shared {
		watchers.Go(func() { d.watch(ctx, t, place) })
	}
	return true, nil
}

// unlock has other processes drive.
func (d *Driver) unlock() {
	for _, t := range d.tenants {
		if t.Lock != nil && t.pool == nil {
			_ = t.Lock.Unlock() // the end of the process does
		}
	}
}

// leave gives all sessions back that were handed out. No step is under way.
func (d *Driver) leave() {
	d.mu.Lock()
	for _, t := range d.tenants {
		if t.pool != nil {
			close(t.pool.done)
		}
	}
	d.mu.Unlock()
	d.pools.Wait()
}

// list puts the sessions of a query into the queue, page by page.
func (d *Driver) list(ctx context.Context, t *tenant, q session.ListQuery) error {
	for {
		page, err := t.Runner.Store().List(ctx, q)
		if err != nil {
			return err
		}
		d.mu.Lock()
		for i := range page {
			if as, _ := d.undriven.Get(name{t.Name, page[i].SessionID}); as < page[i].Sequence && t.jobs[page[i].SessionID] == nil { // or it has its moment already
				d.changed(t, page[i].SessionID, page[i].MachineName, page[i].Sequence, true)
			}
		}
		d.mu.Unlock()
		if q.After = q.Next(page); q.After == "" {
			return nil
		}
	}
}

// look puts those into the queue whose moment has come.
func (d *Driver) look(ctx context.Context) {
	at := now()
	d.mu.Lock()
	for len(d.wakes) > 0 && d.wakes[0].at <= at {
		j := d.wakes.pop()
		d.ready(j)
	}
	tenants := d.tenants
	d.mu.Unlock()
	for _, t := range tenants {
		if t.pool != nil {
			continue // the store knows
		}
		q := session.ListQuery{Statuses: session.LiveStatuses(), Wake: at, Limit: dueAtOnce}
		if err := d.list(ctx, t, q); err != nil && ctx.Err() == nil {
			d.config.Log.Warn("timers are not looked at", "tenant", t.Name, "error", err) // again in half a second
		}
	}
}

// watch follows what is committed to a store by whomever. It goes on after an error.
func (d *Driver) watch(ctx context.Context, t *tenant, place int64) {
	for wait := backoff(0); ctx.Err() == nil; wait = min(2*wait, longest) {
		for e, err := range t.Runner.Watch(ctx, place) {
			if err != nil {
				d.config.Log.Warn("the log cannot be followed", "tenant", t.Name, "error", err)
				break
			}
			place, wait = e.Place, backoff(0)
			d.committed(t, e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// committed takes up a commit that is in the log. This process's own are known by then.
func (d *Driver) committed(t *tenant, e session.LogEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, _ := d.known.Get(name{t.Name, e.Session}); known < e.First {
		d.changed(t, e.Session, e.MachineName, e.First, true)
	}
}

// changed notes that a session has changed: it runs, or whoever says so does not know.
func (d *Driver) changed(t *tenant, id specialist.SessionID, machineName string, sequence int64, runs bool) {
	j := t.jobs[id]
	switch {
	case j != nil:
		if j.sequence = max(j.sequence, sequence); j.state != waiting {
			return
		}
		d.wakes.remove(j)
		if !runs {
			d.drop(j)
			return
		}
	case !runs:
		return
	default:
		j = &job{id: id, tenant: t, machine: machineName, sequence: sequence, heap: -1}
		t.jobs[id] = j
	}
	d.ready(j)
	d.nudge()
}

// nudge has what is ready be dispatched.
func (d *Driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// dispatch begins as many steps as there are workers and sessions for them.
func (d *Driver) dispatch(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy < d.config.Workers {
		j := d.next()
		if j == nil {
			d.readAhead(ctx)
			return
		}
		if j.lease != nil && j.lease.lost {
			d.end(j)
			continue
		}
		d.busy++
		steps := ctx
		if j.lease != nil {
			steps, j.lease.cancel = context.WithCancelCause(ctx)
		}
		go d.step(steps, j)
	}
}

// drain waits for the steps that are under way.
func (d *Driver) drain(interrupt func()) {
	grace := time.AfterFunc(d.config.Grace, interrupt)
	defer grace.Stop()
	d.mu.Lock()
	d.driving = false
	for _, t := range d.tenants {
		if t.pool != nil {
			t.pool.drain()
		}
	}
	for d.busy > 0 || d.ahead.busy {
		d.mu.Unlock()
		<-d.wake
		d.mu.Lock()
	}
	d.mu.Unlock()
	if err := d.times.keepAll(); err != nil {
		d.config.Log.Warn("how long sessions were stepped is not kept", "error", err)
	}
}

// tenant returns the tenant of a name; nil if this process does not drive it.
func (d *Driver) tenant(name string) *tenant {
	for _, t := range d.tenants {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func now() specialist.Time { return specialist.TimeOf(time.Now()) }
