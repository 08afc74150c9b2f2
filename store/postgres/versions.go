package postgres

import (
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
)

// Whether what is cached of a machine name is what the store has. Every commit that teaches raises the
// machine's trust_version, and roster_version is the sequence number of its roster: both are read before
// either is used, unless that was done less than 200 ms ago and nothing was committed here since. So what
// this process has committed counts at once, and what others have, after that time at most.

// versions are those of what belongs to a machine name: they grow with each change of it.
type versions struct{ trust, roster int64 }

// A question is asked once for all who came before it was.
type question struct {
	answered chan struct{}
	is       versions
	err      error
}

// Staleness implements [session.TrustStore].
func (s *Store) Staleness() time.Duration { return staleness }

// changed has the versions of a machine name read before they are used again.
func (s *Store) changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.machine(name)
	known.read, known.asked = time.Time{}, nil // who asks now must not be told what was so before
	known.changes++
}

// known returns what is cached of a machine name, and the versions of what the store has.
func (s *Store) known(name string) (*cachedMachine, versions, error) {
	s.mu.Lock()
	known := s.machine(name)
	if time.Since(known.read) < staleness {
		defer s.mu.Unlock()
		return known, known.is, nil
	}
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
func (s *Store) ask(name string, known *cachedMachine, q *question) {
	defer close(q.answered)
	s.mu.Lock()
	if known.asked == q {
		known.asked = nil // who comes now may know of something that is committed now
	}
	changes := known.changes
	s.mu.Unlock()
	sent := time.Now()
	is, err := query(s.closing, s, func(row pgx.CollectableRow) (v versions, err error) {
		err = row.Scan(&v.trust, &v.roster)
		return v, err
	}, `SELECT trust_version, roster_version FROM machines WHERE machine_name=$1`, name)
	if q.err = err; err != nil {
		return
	}
	if len(is) > 0 {
		q.is = is[0]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.changes == changes {
		known.read, known.is = sent, q.is
	}
}
