package driver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Where the store hands its sessions out ([session.WorkStore]) any number of processes carry them
// on, and this one lists nothing, follows no log and holds no lock. It claims as many sessions
// as there are free workers, whenever it hears of some, a worker becomes free, or a second is over; then
// they are in the same queue as all others, with the same turns. A session is kept as long as a step
// leads to another; while others wait, for 32 steps or 2 s at most. Then it is given back, and the store
// knows when it is to be stepped again. What is given back together goes in one way to the store.
//
// Where the store has lost this process, all its steps are cancelled, nothing is given back, for it is
// somebody else's, and the process joins again under another name.

const (
	claimEvery = time.Second
	keptSteps  = 32
	keptFor    = 2 * time.Second
	soonest    = 500 * time.Millisecond // when a session is looked at again that waits, or whose store is busy
	elsewhere  = time.Minute            // a session is left to others that cannot be stepped here
	never      = -time.Second
)

// A pool is what a tenant's store hands out to this process.
type pool struct {
	d    *Driver
	t    *tenant
	kick chan struct{} // there is something to give back, or a worker is free
	done chan struct{} // closed when no step is under way any more, and none begins

	// worker is changed by run alone, with d.mu held.
	worker session.Worker
	skew   time.Duration // the operator was told of; used by run alone

	// What follows is guarded by d.mu.
	releases []session.Release
	others   bool // others may wait
}

// A lease is what a job has that was handed out.
type lease struct {
	worker session.Worker
	since  time.Time
	steps  int
	cancel context.CancelCauseFunc // of the step under way
	lost   bool
}

// join begins to claim sessions of a tenant.
func (d *Driver) join(ctx context.Context, t *tenant, store session.WorkStore) error {
	worker, err := store.Join(ctx)
	if err != nil {
		return err
	}
	p := &pool{d: d, t: t, worker: worker, kick: make(chan struct{}, 1), done: make(chan struct{})}
	d.mu.Lock()
	t.pool = p
	d.mu.Unlock()
	p.watch()
	d.pools.Go(func() { p.run(ctx, store) })
	return nil
}

// watch has the steps under way end as soon as the worker is lost, whatever run waits for.
func (p *pool) watch() {
	worker := p.worker
	p.d.pools.Go(func() {
		select {
		case <-worker.Lost():
			p.lost(worker)
		case <-p.done:
		}
	})
}

// run claims and gives back until everything is given back after ctx is done.
func (p *pool) run(ctx context.Context, store session.WorkStore) {
	tick := time.NewTicker(claimEvery)
	defer tick.Stop()
	for {
		p.tellSkew(store)
		p.release()
		p.claim(ctx)
		select {
		case <-p.kick:
		case <-p.worker.News():
		case <-tick.C:
		case <-p.worker.Lost():
			_ = p.worker.Close(context.WithoutCancel(ctx)) // nothing of it is left
			for p.rejoin(ctx, store) != nil {
				select {
				case <-tick.C:
				case <-p.done:
					return
				}
			}
		case <-p.done:
			p.release()
			if err := p.worker.Close(context.WithoutCancel(ctx)); err != nil {
				p.warn("sessions are not given back before others notice", err)
			}
			return
		}
	}
}

// tellSkew tells the operator when the clock of this process is off, and when it is off by more than before.
func (p *pool) tellSkew(store session.WorkStore) {
	clock, ok := store.(session.Clock)
	if !ok {
		return
	}
	if skew := clock.Skew(); (skew - p.skew).Abs() > session.MaxSkew {
		p.skew = skew
		p.d.config.Log.Warn("the clock of this process is not that of the store, by which it goes", "tenant", p.t.Name, "ahead", skew.Round(time.Second).String())
	}
}

func (p *pool) warn(what string, err error) {
	p.d.config.Log.Warn(what, "tenant", p.t.Name, "error", err)
}

// lost gives up what others may have by now.
func (p *pool) lost(worker session.Worker) {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	p.warn("the steps under way end", session.ErrOwnerLost)
	if p.worker == worker {
		p.releases = nil
	}
	for _, j := range p.t.jobs {
		if j.lease.worker != worker {
			continue
		}
		if j.lease.lost = true; j.lease.cancel != nil {
			j.lease.cancel(session.ErrOwnerLost)
		}
		if j.state == queued {
			d.drop(j)
		}
	}
}

// rejoin joins again.
func (p *pool) rejoin(ctx context.Context, store session.WorkStore) error {
	worker, err := store.Join(ctx)
	if errors.As(err, new(*session.NewerError)) {
		p.d.outgrow(err)
		return err
	}
	if err != nil {
		if ctx.Err() == nil {
			p.warn("sessions are not claimed", err)
		}
		return err
	}
	p.d.mu.Lock()
	p.worker, p.releases = worker, nil
	p.d.mu.Unlock()
	p.watch()
	return nil
}

// claim claims sessions for the workers that are free.
func (p *pool) claim(ctx context.Context) {
	for ctx.Err() == nil {
		want := p.wanted()
		if want.Sessions <= 0 {
			return
		}
		leases, err := p.worker.Claim(ctx, want)
		p.take(leases, len(leases) >= want.Sessions)
		switch {
		case err == nil && len(leases) >= want.Sessions:
		case err == nil, ctx.Err() != nil, errors.Is(err, session.ErrOwnerLost):
			return
		case errors.As(err, new(*session.NewerError)):
			p.d.outgrow(err)
			return
		default:
			p.warn("sessions are not claimed", err) // again in a second
			return
		}
	}
}

// wanted returns how many sessions there is room for.
func (p *pool) wanted() session.Wanted {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.config.Workers - d.busy - d.queue.ready
	if p.t.Workers > 0 {
		n = min(n, p.t.Workers-p.t.busy-p.t.waiting)
	}
	if !d.driving {
		n = 0
	}
	if n <= 0 {
		p.others = true // for all that is known
	}
	held := make(map[string]int, len(p.t.lines))
	for name, l := range p.t.lines {
		held[name] = l.busy + len(l.jobs) - l.first
	}
	return session.Wanted{Sessions: n, PerMachine: d.config.PerMachine, Held: held}
}

// take puts what was claimed into the queue. more says that there may be more.
func (p *pool) take(leases []session.Lease, more bool) {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	p.others = more
	for i := range leases {
		l := &leases[i]
		j := &job{id: l.Session, tenant: p.t, machine: l.MachineName, sequence: l.Sequence, heap: -1, tries: l.Failures, lease: &lease{worker: p.worker, since: time.Now()}}
		if p.t.jobs[j.id] != nil { // a step of before it was lost has not ended
			p.give(j, session.Release{After: claimEvery})
			continue
		}
		p.t.jobs[j.id] = j
		d.ready(j)
	}
	for _, l := range p.t.lines {
		p.others = p.others || l.busy+len(l.jobs)-l.first >= d.config.PerMachine
	}
	d.nudge()
}

// release gives back what there is to give back.
func (p *pool) release() {
	p.d.mu.Lock()
	list := p.releases
	p.releases = nil
	p.d.mu.Unlock()
	if len(list) == 0 {
		return
	}
	if err := p.worker.Release(context.Background(), list...); err != nil {
		p.warn("sessions are given back later", err)
	}
}

// give has a session given back. d.mu is held.
func (p *pool) give(j *job, r session.Release) {
	if p.t.jobs[j.id] == j {
		p.d.drop(j)
	}
	if j.lease.lost || j.lease.worker != p.worker {
		return
	}
	r.Session = j.id
	p.releases = append(p.releases, r)
	p.wake()
}

// wake has sessions given back and claimed.
func (p *pool) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// keep has a session stepped again, unless it is others' turn. d.mu is held.
func (p *pool) keep(j *job) {
	if !p.d.driving || p.others && (j.lease.steps >= keptSteps || time.Since(j.lease.since) >= keptFor) {
		p.give(j, session.Release{Sequence: j.sequence})
		return
	}
	p.d.ready(j)
}

// drain gives those back that no step has begun with. d.mu is held.
func (p *pool) drain() {
	for _, j := range p.t.jobs {
		if j.state == queued {
			p.give(j, session.Release{Sequence: j.sequence})
		}
	}
}

// followed says what comes after a step of a session that was handed out. d.mu is held.
func (p *pool) followed(ctx context.Context, j *job, tick runner.Tick, err error) {
	defer p.wake() // a worker is free
	j.lease.steps++
	switch {
	case j.lease.lost:
		p.d.drop(j)
	case ctx.Err() != nil:
		p.give(j, session.Release{})
	case err == errUndriven:
		p.give(j, session.Release{Undriven: true})
	case errors.Is(err, session.ErrStale):
		p.keep(j)
	case err != nil:
		p.failed(j, err)
	case j.sequence > tick.Session.Sequence:
		p.keep(j)
	case tick.Session.Status != session.Running, tick.Session.Waits():
		p.give(j, session.Release{Sequence: tick.Session.Sequence, After: p.until(tick.Session.WakeAt())})
	case tick.Status == runner.TickWaiting:
		after := p.until(tick.Session.WakeAt())
		// An answer that comes later comes with a commit; whether who asks lives is to be looked at.
		if after < 0 || after > lookAgain && (len(tick.Session.OpenAsks()) == 0 || !tick.Session.OnlyLate()) {
			after = lookAgain
		}
		p.give(j, session.Release{Sequence: tick.Session.Sequence, After: after})
	default:
		p.keep(j)
	}
}

// until returns how long it takes until a moment at which a session is to be stepped again; never if
// there is none.
func (p *pool) until(at specialist.Time) time.Duration {
	if at == 0 {
		return never
	}
	return max(soonest, time.Duration(at-p.t.Runner.Now()+1)*time.Millisecond)
}

// failed gives a session back whose step has failed. What it has nothing to do with counts for nothing.
func (p *pool) failed(j *job, err error) {
	r := session.Release{Failed: err.Error()}
	_, here := errors.AsType[*runner.StartError](err)
	if here || errors.As(err, new(*session.NewerError)) {
		r = session.Release{Elsewhere: elsewhere}
	} else if errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrUnknown) {
		r = session.Release{After: soonest}
	}
	if r.Failed != "" {
		j.tries++
	}
	r.Sequence = j.sequence
	p.d.logFailure(j, slog.LevelWarn, err)
	p.give(j, r)
}
