package postgres

import (
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
)

// A lock is a row with the name of an owner: it is held as long as that lives (owner.go). Whoever was killed
// has held it for 30 s more at the most, and who was cut off knows after 20 s that it holds it no more,
// before anybody else can take it. A lock of the session of a connection would be free sooner; but it
// outlives a partition, and means nothing behind a pool.

// A Lock is held by one process at a time. Its methods may be called concurrently.
type Lock struct {
	d    *database
	name string

	mu    sync.Mutex
	owner *owner // in whose name it is held; nil if it is not
}

func newLock(d *database, name string) *Lock { return &Lock{d: d, name: name} }

// Holds reports whether the lock is held, without asking the database.
func (l *Lock) Holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner != nil && l.owner.lives()
}

// TryLock takes the lock if it is free, and says whether it has. An error says that the database could not be
// asked.
func (l *Lock) TryLock() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != nil && l.owner.lives() {
		return true, nil
	}
	l.owner = nil // one that was lost is forgotten with those of all who were killed
	ctx := l.d.closing
	free, err := one[bool](ctx, l.d, `SELECT NOT EXISTS (SELECT FROM locks l JOIN owners o ON o.name=l.owner WHERE l.name=$1 AND o.until>now())`, l.name)
	if err != nil || !free {
		return false, err
	}
	o, err := l.d.claim(ctx)
	if err != nil {
		return false, err
	}
	taken := false
	ctx, cancel := l.d.answered(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, l.d.readers, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, l.d.lock+2); err != nil { // what follows has to see the owners of those who were first
			return err
		}
		done, err := tx.Exec(ctx, `INSERT INTO locks AS l (name, owner) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET owner=excluded.owner
			WHERE NOT EXISTS (SELECT FROM owners o WHERE o.name=l.owner AND o.until>now())`, l.name, o.name)
		taken = done.RowsAffected() > 0
		return err
	})
	if err != nil || !taken {
		return false, errors.Join(l.d.translate(err), o.Release())
	}
	l.owner = o
	return true, nil
}

// Unlock gives it back.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owner
	if l.owner = nil; o == nil || !o.lives() {
		return nil
	}
	return o.Release()
}

// lives reports whether an owner of this process lives, as far as this process can tell.
func (o *owner) lives() bool { return o.o.lives(o.name) }
