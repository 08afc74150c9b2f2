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

// One step of a session, and what follows from it: its turn comes again, or it is looked at at some time, or a commit of
// somebody says that it goes on. A step that fails is tried again, later each time.

// A Stepped is a step that has ended.
type Stepped struct {
	Tenant, MachineName string
	Status              runner.TickStatus // "" if there is an error
	Err                 error
	Delay               time.Duration // for how long the session was ready before
	Took                time.Duration
}

// step carries a session one step further.
func (d *Driver) step(ctx context.Context, j *job) {
	began := time.Now()
	delay := began.Sub(j.since)
	tick, err := d.stepped(ctx, j)
	if err == nil {
		tick, err = d.limited(ctx, j, tick, time.Since(began))
	}
	if d.config.Stepped != nil && err != errUndriven {
		d.config.Stepped(Stepped{j.tenant.Name, j.machine, tick.Status, err, delay, time.Since(began)})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	d.steps++
	d.finished = time.Now()
	d.end(j)
	d.followed(ctx, j, tick, err)
	if j.lease != nil {
		j.lease.cancel(nil)
	}
	d.nudge()
}

// stepped makes a step of a session, unless that is for others.
func (d *Driver) stepped(ctx context.Context, j *job) (runner.Tick, error) {
	if !j.mine.Load() {
		s, err := j.tenant.Runner.Session(ctx, j.id)
		if err != nil {
			return runner.Tick{}, err
		}
		if s.Options().Driver != session.DriverPool {
			return runner.Tick{Session: s}, errUndriven
		}
		j.mine.Store(true)
	}
	tick, err := j.tenant.Runner.StepApart(ctx, j.id)
	if err == nil && tick.Session.Options().Driver != session.DriverPool { // as somebody has said meanwhile
		j.mine.Store(false)
	}
	return tick, err
}

// limited stops a session whose steps were too many or have taken too long.
func (d *Driver) limited(ctx context.Context, j *job, tick runner.Tick, took time.Duration) (runner.Tick, error) {
	over, err := d.times.add(ctx, j.tenant.Name, tick.Session, took)
	if err != nil {
		d.config.Log.Warn("how long a session was stepped is not kept", "tenant", j.tenant.Name, "session", j.id.String(), "error", err)
	}
	switch {
	case tick.Session.Status != session.Running:
		return tick, nil
	case tick.Status == runner.TickAdvanced && int(tick.Session.SinceResumed) >= d.config.MaxSteps:
		return j.tenant.Runner.StopAtLimit(ctx, j.id, d.config.MaxSteps)
	case over:
		return j.tenant.Runner.StopAtTime(ctx, j.id, d.config.MaxTime)
	}
	return tick, nil
}

// errUndriven is the error of a step of a session that is left to others.
var errUndriven = errors.New("no driver carries the session on")

// followed says what comes after a step.
func (d *Driver) followed(ctx context.Context, j *job, tick runner.Tick, err error) {
	if j.failure = err; err == nil {
		j.tries = 0
		d.known.Put(j.name(), max(j.sequence, tick.Session.Sequence))
	}
	if j.lease != nil {
		j.tenant.pool.followed(ctx, j, tick, err)
		return
	}
	switch {
	case ctx.Err() != nil:
		d.drop(j)
	case err == errUndriven:
		d.undriven.Put(j.name(), tick.Session.Sequence)
		d.drop(j)
	case errors.Is(err, session.ErrStale):
		d.ready(j)
	case err != nil:
		d.failed(j, err)
	case j.sequence > tick.Session.Sequence: // somebody else has gone on
		d.ready(j)
	case tick.Session.Status != session.Running, tick.Session.Waits():
		d.drop(j)
	case tick.Status == runner.TickWaiting:
		at := tick.Session.WakeAt()
		if later := now() + specialist.Time(lookAgain.Milliseconds()); at == 0 || at > later {
			at = later
		}
		d.rest(j, at+1)
	default:
		d.ready(j)
	}
}

// failed tries a step again that has failed, later each time. A session whose log is
// damaged is not tried again before something is committed to it, one that a newer version has written to
// only in a minute.
func (d *Driver) failed(j *job, err error) {
	level := slog.LevelWarn
	if errors.As(err, new(*session.NewerError)) {
		d.rest(j, now()+specialist.Time(elsewhere.Milliseconds()))
	} else if _, damaged := errors.AsType[*session.CorruptError](err); damaged {
		d.drop(j)
		level = slog.LevelError
	} else {
		wait := backoff(j.tries)
		if errors.Is(err, session.ErrBusy) {
			wait = min(wait/20, longestBusy)
		}
		j.tries++
		d.rest(j, now()+specialist.Time(wait.Milliseconds()))
	}
	d.logFailure(j, level, err)
}

// logFailure tells of a step that has failed.
func (d *Driver) logFailure(j *job, level slog.Level, err error) {
	d.config.Log.Log(context.Background(), level, "a step failed", "tenant", j.tenant.Name, "session", j.id.String(), "machine", j.machine, "tries", j.tries, "error", err)
}

const (
	longest     = 5 * time.Minute
	longestBusy = 5 * time.Second
)

// backoff returns how long to wait after so many failures before: 1 s, and twice as long each time.
func backoff(tries int) time.Duration {
	return min(time.Second<<min(tries, 20), longest)
}
