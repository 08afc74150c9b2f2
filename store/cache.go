package store

import (
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/snapshots"
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

	snapshots snapshots.Progress
}

type cachedMachine struct {
	id     int64           // machines.id; 0 if it is not known
	at     int64           // the version of the file in which is was read
	is     versions        // of what the file has
	asked  *question       // nobody has begun to look up the answer
	book   *trust.Book     // nil if it has to be read
	trust  int64           // version of book
	roster *session.Roster // nil if it has to be read; its version is its sequence number
}

// versions are those of what belongs to a machine name: they grow with each change of it.
type versions struct{ trust, roster int64 }

// machine returns what is known of a machine name.
func (c *cache) machine(name string) *cachedMachine {
	return c.machines.GetOr(name, func() *cachedMachine { return &cachedMachine{at: -1} })
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
