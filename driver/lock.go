package driver

// Locks, and what becomes of a tenant whose Lock is lost: a process that was not heard of for too long may find
// that another drives the tenant by now.

// A Lock is held by one process at a time, and free when that has ended. One that a process may lose has a
// method Holds() bool, which says at once whether it is still held.
type Lock interface {
	TryLock() (bool, error)
	Unlock() error
}

// holds reports whether a Lock that was taken, or nil, is still held.
func holds(l Lock) bool {
	lease, lost := l.(interface{ Holds() bool })
	return !lost || lease.Holds()
}

// resign ends driving those tenants whose Locks this process has lost, for it was not heard of in time, and
// returns them anew. Steps of theirs that are under way end as they would: what they commit is what nobody has
// overtaken.
func (d *Driver) resign() (lost []*tenant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var kept []*tenant
	for _, t := range d.tenants {
		if holds(t.Lock) {
			kept = append(kept, t)
			continue
		}
		d.config.Log.Warn("a tenant is driven by others: this process was not heard of for too long", "tenant", t.Name)
		d.leave(t)
		lost = append(lost, newTenant(t.Tenant))
	}
	if d.tenants = kept; len(kept) == 0 {
		d.driving = false
	}
	return lost
}

// leave forgets what there is to do for a tenant.
func (d *Driver) leave(t *tenant) {
	t.left = true
	if t.unwatch != nil {
		t.unwatch()
	}
	for _, j := range t.jobs {
		if j.state == waiting {
			d.wakes.remove(j)
		}
	}
	for _, l := range t.lines {
		n := len(l.jobs) - l.first
		t.waiting -= n
		d.queue.ready -= n
		l.jobs, l.first = nil, 0
		d.settle(t, l)
	}
}
