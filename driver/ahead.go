package driver

import (
	"context"

	"github.com/dialai/dialai/session"
)

// What decisions are made by is a fold of what earlier ones have taught. The next decision reads what has come
// since, and makes what follows from it, which takes up to a tenth of a second now and then. Where a worker is free that is
// done before ([runner.Runner.ReadAhead]): when a session of a tenant has taught something, or a human has, one
// goroutine reads ahead, for one tenant after the other. What is taught meanwhile is read after that.
// What other processes teach is read with it.

// ahead is the goroutine that reads ahead.
type ahead struct {
	busy bool
	last int // of Driver.tenants, for which it did
}

// teaches reports whether decisions are made by an event.
func teaches(e session.Event) bool { return session.LessonOf(e.Data) != nil }

// readAhead has the next tenant read ahead of which something was learned, unless that is under way for one.
// d.mu is held.
func (d *Driver) readAhead(ctx context.Context) {
	if d.ahead.busy || !d.driving {
		return
	}
	for range d.tenants {
		d.ahead.last = (d.ahead.last + 1) % len(d.tenants)
		if t := d.tenants[d.ahead.last]; t.learned {
			t.learned, d.ahead.busy = false, true
			go d.reads(ctx, t)
			return
		}
	}
}

// reads has a tenant read ahead. What fails then fails again in the next decision, which says so.
func (d *Driver) reads(ctx context.Context, t *tenant) {
	_ = t.Runner.ReadAhead(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead.busy = false
	d.nudge()
}
