package spend

import "time"

// The life of a call. Reserve gives it a slot: it is reserved, and holds what it needs
// in all scopes of its path. Start makes it started. Settle charges it and frees the
// slot. One that is too old before that is cleared by whoever uses the tenant next: if
// it was only reserved it has lapsed, and is charged nothing; if it was started it has
// expired, and is charged as estimated, as one is that was started and then released.
// Both no longer hold anything, but keep their slot, so that an answer that comes late
// is charged, or corrects what was.
//
// A slot is used again under another number, so that an old handle never settles a new
// call.

// A call is one reservation of a tenant. The lock of the tenant guards it, and
// those of its scope what it changes there.
type call struct {
	leaf     *node
	id       string
	model    *model // nil for no model
	entry    Book   // what it is charged if nobody settles it
	at       int64  // when it was reserved, in milliseconds since 1970
	ttl      int64  // for how many milliseconds
	number   uint32 // tells the calls of one slot apart
	state    callState
	probe    bool
	free     bool // known to cost nothing, so no limit of dollars is in its way
	unpriced bool
	waived   bool // a probe that is not charged
}

type callState uint8

// The states of a call. A slot without a call is free. A call that was cleared
// is kept, charged as estimated if it had been started and not at all if it had
// not: it may still be settled.
const (
	callFree callState = iota
	callReserved
	callStarted
	callExpired
	callLapsed
)

// calls are the calls of a tenant, in slots that are used again.
type calls struct {
	slots  []call
	unused []uint32
	next   int64 // no call is too old before; 0 if there is none
}

// take gives c a slot and returns where it is and its number.
func (s *calls) take(c *call) (slot, number uint32) {
	if n := len(s.unused); n > 0 {
		slot, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		slot = uint32(len(s.slots))
		s.slots = append(s.slots, call{})
	}
	number = s.slots[slot].number + 1
	s.slots[slot] = *c
	s.slots[slot].number, s.slots[slot].state = number, callReserved
	if due := c.due(); s.next == 0 || due < s.next {
		s.next = due
	}
	return slot, number
}

// of returns the call of a handle, or nil if it is over.
func (s *calls) of(h *Handle) *call {
	if c := &s.slots[h.slot]; c.state != callFree && c.number == h.call {
		return c
	}
	return nil
}

// drop frees a slot.
func (s *calls) drop(slot uint32) {
	s.slots[slot] = call{number: s.slots[slot].number}
	s.unused = append(s.unused, slot)
}

// forget drops the calls of a session that is closed.
func (s *calls) forget(n *node) {
	if n.depth != 2 || n.unsettled == 0 {
		return
	}
	for i := range s.slots {
		if c := &s.slots[i]; c.state != callFree && c.leaf.path[1] == n {
			s.drop(uint32(i))
		}
	}
}

// due returns when the call is too old.
func (c *call) due() int64 {
	if c.ttl > maxInt64-c.at {
		return maxInt64
	}
	return c.at + c.ttl
}

func (c *call) open() bool { return c.state == callReserved || c.state == callStarted }

// hold adds what c needs to what its scope and those around it hold.
func (n *node) hold(c *call) {
	held := c.entry.amount()
	for _, p := range n.path[:n.depth] {
		p.held = p.held.plus(held)
		p.open++
	}
	if c.probe {
		n.path[1].probesHeld = n.path[1].probesHeld.plus(held)
	}
}

// unhold takes back what an open call holds; its path is locked.
func (c *call) unhold() {
	held := c.entry.amount()
	for _, n := range c.leaf.path[:c.leaf.depth] {
		n.held = n.held.minus(held)
		n.open--
	}
	if c.probe {
		s := c.leaf.path[1]
		s.probesHeld = s.probesHeld.minus(held)
	}
}

// expire ends an open call that nobody settled: a started one is charged as
// estimated. Its path is locked.
func (c *call) expire(now int64) {
	c.unhold()
	c.leaf.kept(1)
	if c.state == callReserved {
		c.state = callLapsed
		return
	}
	c.state = callExpired
	c.leaf.charge(c.entry, c.probe, now)
}

// sweep ends the open calls of a tenant that are too old. Only the tenant is
// locked.
func (n *node) sweep(now int64) {
	s := &n.calls
	if s.next == 0 || now < s.next {
		return
	}
	s.next = 0
	for i := range s.slots {
		c := &s.slots[i]
		if !c.open() {
			continue
		}
		if due := c.due(); now < due {
			if s.next == 0 || due < s.next {
				s.next = due
			}
			continue
		}
		c.leaf.lockBelow()
		c.expire(now)
		c.leaf.unlockBelow()
	}
}

// Expire clears the reservations that are too old now: a call that was started
// is charged as estimated, one that was not costs nothing. Reserve and Check do
// so too, for their tenant.
func (l *Ledger) Expire() {
	now := l.config.Now().UnixMilli()
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, n := range l.scopes {
		if n.depth == 1 {
			n.mu.Lock()
			n.sweep(now)
			n.mu.Unlock()
		}
	}
}

// Find returns the handle of a call that is open, or that was cleared and never
// settled, by the id of its estimate and a scope whose session it belongs to. It
// returns nil if there is none. This is how an answer that comes after a restart
// corrects what was charged.
func (l *Ledger) Find(s Scope, id string) *Handle {
	n := l.nearest(s)
	if n == nil || id == "" {
		return nil
	}
	root := n.path[0]
	root.mu.Lock()
	defer root.mu.Unlock()
	for i := range root.calls.slots {
		c := &root.calls.slots[i]
		if c.state != callFree && c.id == id && c.leaf.scope.Session == s.Session {
			return &Handle{l, c.leaf, uint32(i), c.number}
		}
	}
	return nil
}

// windowTime returns the time if the tenant has windows that need it.
func (l *Ledger) windowTime(root *node) int64 {
	if len(root.windows) == 0 {
		return 0
	}
	return l.config.Now().UnixMilli()
}

// moment is the reverse of time.Time.UnixMilli.
func moment(msec int64) time.Time { return time.UnixMilli(msec).UTC() }
