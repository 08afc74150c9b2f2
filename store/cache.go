package store

import (
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A cache remembers sessions that were folded, and what belongs to machine
// names. Everything in it is checked against a version in the file before it is
// used, so it can be dropped at any time.
type cache struct {
	sessions *lru.Cache[specialist.SessionID, cached]
	machines *lru.Cache[string, *cachedMachine]
	known    *lru.Cache[string, bool] // digests whose definitions are stored
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
	return c.machines.GetOr(name, func() *cachedMachine { return &cachedMachine{} })
}

// remembered is how many sessions, machine names and definitions a cache has at least;
// it has twice as many at most.
const remembered = 2048

func newCache() cache {
	return cache{lru.New[specialist.SessionID, cached](remembered), lru.New[string, *cachedMachine](remembered), lru.New[string, bool](remembered)}
}

// put remembers a session unless a newer one is known.
func (c *cache) put(id specialist.SessionID, v cached) {
	if now, ok := c.sessions.Get(id); !ok || now.session.Sequence <= v.session.Sequence {
		c.sessions.Put(id, v)
	}
}

// forget forgets what another process may have changed.
func (c *cache) forget() {
	for _, m := range c.machines.All() {
		m.forget()
	}
}
