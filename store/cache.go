package store

import (
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// A cache remembers sessions that were folded, and what belongs to machine
// names. Everything in it is checked against a version in the file before it is
// used, so it can be dropped at any time.
type cache struct {
	young, old map[specialist.SessionID]cached // two generations: the old one is dropped when the young is full
	machines   map[string]*cachedMachine
	known      map[string]bool // digests whose definitions are stored
}

type cached struct {
	row     int64 // sessions.id
	session *session.Session
}

type cachedMachine struct {
	id     int64           // machines.id; 0 if it is not known
	book   *trust.Book     // nil if it has to be read
	trust  int64           // version of book
	roster *session.Roster // nil if it has to be read
	epoch  int64           // raised whenever something is forgotten
}

// forget makes the next reader read again, and keeps one that is reading now
// from caching what it got.
func (m *cachedMachine) forget() {
	m.book, m.roster = nil, nil
	m.epoch++
}

// machine returns what is known of a machine name.
func (c *cache) machine(name string) *cachedMachine {
	m := c.machines[name]
	if m == nil {
		m = &cachedMachine{}
		c.machines[name] = m
	}
	return m
}

// generation is how many sessions one generation holds.
const generation = 2048

func newCache() cache {
	return cache{young: map[specialist.SessionID]cached{}, machines: map[string]*cachedMachine{}, known: map[string]bool{}}
}

func (c *cache) get(id specialist.SessionID) (cached, bool) {
	v, ok := c.young[id]
	if !ok {
		if v, ok = c.old[id]; ok {
			c.put(id, v)
		}
	}
	return v, ok
}

// put remembers a session unless a newer one is known.
func (c *cache) put(id specialist.SessionID, v cached) {
	if now, ok := c.young[id]; ok && now.session.Sequence > v.session.Sequence {
		return
	}
	if len(c.young) >= generation {
		c.old, c.young = c.young, make(map[specialist.SessionID]cached, generation)
	}
	c.young[id] = v
}

// drop forgets a session.
func (c *cache) drop(id specialist.SessionID) {
	delete(c.young, id)
	delete(c.old, id)
}

// forget forgets what another process may have changed.
func (c *cache) forget() {
	for _, m := range c.machines {
		m.forget()
	}
}
