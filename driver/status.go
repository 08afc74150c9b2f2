package driver

import (
	"time"

	"github.com/dialai/dialai/specialist"
)

// What a Driver says of itself: what it does, how much there is to do, and how it goes with a session.

// Modes of a Driver.
const (
	Driving = "driving"
	Standby = "standby" // other processes drive, or this one has ended
	Stalled = "stalled" // sessions are ready, and no step has ended for a minute
)

// A Status is what a Driver does.
type Status struct {
	Mode  string `json:"mode"`
	Ready int    `json:"ready"` // sessions in the queue
	Busy  int    `json:"busy"`  // steps under way
	Steps int64  `json:"steps"` // that have ended, since the Driver was made
}

// Status returns what the Driver does.
func (d *Driver) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{Mode: Standby, Ready: d.queue.ready, Busy: d.busy, Steps: d.steps}
	switch {
	case d.driving && s.Ready > 0 && time.Since(d.finished) > stalledFor:
		s.Mode = Stalled
	case d.driving:
		s.Mode = Driving
	}
	return s
}

// Drives reports whether the Driver carries the sessions of a tenant on, and no other process but
// those to which its store hands them out as well.
func (d *Driver) Drives(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.driving && d.tenant(tenant) != nil
}

// A Load is how much there is to do for a tenant.
type Load struct {
	Tenant      string
	Ready, Busy int // sessions in the queue, and steps under way
}

// Loads returns how much there is to do for each tenant.
func (d *Driver) Loads() []Load {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Load, len(d.tenants))
	for i, t := range d.tenants {
		list[i] = Load{t.Name, t.waiting, t.busy}
	}
	return list
}

// An Attempt is how it goes with a session that the Driver has to do with.
type Attempt struct {
	Next  specialist.Time `json:"nextAttempt,omitempty"` // when it is looked at; 0 if its turn comes or has come
	Tries int             `json:"tries,omitempty"`       // how often a step has failed in a row
	Error string          `json:"error,omitempty"`       // of the last step
}

// Attempt returns how it goes with a session; false if there is nothing to do with it.
func (d *Driver) Attempt(tenant string, id specialist.SessionID) (a Attempt, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tenant(tenant)
	if t == nil || t.jobs[id] == nil {
		return a, false
	}
	j := t.jobs[id]
	a.Tries = j.tries
	if j.state == waiting {
		a.Next = j.at
	}
	if j.failure != nil {
		a.Error = j.failure.Error()
	}
	return a, true
}
