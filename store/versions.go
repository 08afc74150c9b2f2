package store

import (
	"context"
	"database/sql"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/dialai/dialai/store/internal/groupcommit"
)

// Whether what is cached of a machine name is what the file has. Every commit that teaches raises
// the machine's trust_version, and its roster has the sequence number of its last event; both
// are read before either is used, so that what another process has committed counts in the next
// decision of this one. SQLite tells at little cost whether anything was committed at all since a
// connection looked last (PRAGMA data_version): the machine is only looked up if something was.

const versionsQuery = `SELECT trust_version, coalesce((SELECT max(first) FROM roster_log WHERE machine=m.id), 0) FROM machines m WHERE machine_name=?`

// A look is a connection of its own, by which versions are read. It is used by one at a time.
type look struct {
	sync.Mutex
	conn    *sql.Conn
	all     []io.Closer
	file    hot // the version of the file: it changes whenever somebody else commits
	machine hot // versionsQuery
}

func (l *look) open(ctx context.Context, db *sql.DB) (err error) {
	if l.conn, err = db.Conn(ctx); err != nil {
		return err
	}
	p := preparer{ctx: ctx, conn: l.conn}
	p.hot(&l.file, `PRAGMA data_version`)
	p.hot(&l.machine, versionsQuery)
	l.all = p.all
	return p.err
}

func (l *look) close() {
	l.Lock()
	defer l.Unlock()
	if l.conn == nil {
		return
	}
	for _, s := range l.all {
		s.Close()
	}
	l.conn.Close()
	l.conn = nil
}

// A question is asked once for all who came before it was: on a busy store that is everybody whose
// commits became durable together.
type question struct {
	answered chan struct{}
	is       versions
	err      error
}

// known returns what is cached of a machine name, and the versions of what the file has: of all
// that was committed before the call.
func (s *SQLite) known(name string) (*cachedMachine, versions, error) {
	s.mu.Lock()
	known := s.cache.machine(name)
	q := known.asked
	if q == nil {
		q = &question{answered: make(chan struct{})}
		known.asked = q
		s.mu.Unlock()
		runtime.Gosched()
		s.ask(name, known, q)
	} else {
		s.mu.Unlock()
		<-q.answered
	}
	return known, q.is, q.err
}

// ask looks up the versions of a machine name, for all who have asked until now.
func (s *SQLite) ask(name string, known *cachedMachine, q *question) {
	s.look.Lock()
	defer s.look.Unlock()
	s.mu.Lock()
	known.asked = nil // who comes now may know of something that is committed now
	q.is = known.is
	at := known.at
	s.mu.Unlock()
	defer close(q.answered)
	if s.look.conn == nil {
		q.err = groupcommit.ErrClosed
		return
	}
	var now [1]int64
	if _, err := s.look.file.numbers(now[:]); err != nil {
		q.err = translate(err)
		return
	}
	if now[0] == at {
		return
	}
	var is [2]int64 // as they are if the machine is not known
	if _, err := s.look.machine.numbers(is[:], name); err != nil {
		q.err = translate(err)
		return
	}
	q.is = versions{is[0], is[1]}
	s.mu.Lock()
	defer s.mu.Unlock()
	known.at, known.is = now[0], q.is
}

// Staleness implements [session.TrustStore]: what other processes commit counts at once.
func (s *SQLite) Staleness() time.Duration { return 0 }
