package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/store"
)

// Who may archive or erase: the role that owns the tables, in a store that was not copied elsewhere for good, and one process at a
// time. Whoever may not is told so before it waits for another one; and whom it waits for, and until when, since a process that
// was killed holds the lock (lock.go) until it counts as dead.

// archiving takes the lock of who archives or erases.
func (s *Store) archiving() (unlock func() error, err error) {
	lock := newLock(&s.database, "archiving")
	held, err := lock.TryLock()
	if err == nil && !held {
		if err = s.archivedBy(s.closing); err == nil { // whoever held it has just given it back
			err = store.ErrArchiving
		}
	}
	return lock.Unlock, err
}

// archivedBy returns who archives or erases, nil if nobody does.
func (s *Store) archivedBy(ctx context.Context) error {
	list, err := query(ctx, s, func(row pgx.CollectableRow) (e heldError, err error) {
		var left float64
		err = row.Scan(&e.by, &left)
		e.left = time.Duration(left*float64(time.Second)).Truncate(time.Second) + time.Second
		return e, err
	}, `SELECT o.about, extract(epoch FROM o.until-now())::float8 FROM locks l JOIN owners o ON o.name=l.owner WHERE l.name='archiving' AND o.until>now()`)
	if err != nil || len(list) == 0 {
		return err
	}
	return &list[0]
}

// A heldError says which process archives a store, or erases in it.
type heldError struct {
	by   string
	left time.Duration // after which it counts as dead, unless it is heard of
}

func (e *heldError) Error() string { return store.ErrArchiving.Error() + " (" + e.by + ")" }

func (e *heldError) Is(target error) bool { return target == store.ErrArchiving }

// Advice says what to do about it.
func (e *heldError) Advice() string {
	return fmt.Sprintf("wait until it is done; if it was killed, or cut off from the database, it counts as dead in %s, and to run this again finishes what it began", e.left)
}

// mayMove returns why records may be neither erased nor archived: somebody has copied the store, or the role does not own it.
func (s *Store) mayMove(ctx context.Context, tx pgx.Tx) error {
	if err := s.owned(ctx, tx); err != nil {
		return err
	}
	return refused(ctx, tx)
}

// owned returns an error unless the role owns the tables.
func (s *Store) owned(ctx context.Context, tx pgx.Tx) error {
	var owns bool
	var role, owner string
	if err := tx.QueryRow(ctx, `SELECT pg_has_role(relowner, 'USAGE'), current_user::text, pg_get_userbyid(relowner)::text FROM pg_class WHERE oid=to_regclass('log')`).Scan(&owns, &role, &owner); err != nil {
		return err
	}
	if !owns {
		e := notOwner("", role, owner)
		e.at = s.address
		return e
	}
	return nil
}
