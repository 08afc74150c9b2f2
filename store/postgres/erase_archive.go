package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/erase"
)

// How payloads are taken out of sessions that were archived from a database (store/internal/erase says in which order).

// with returns the store with the archive that is to be erased in, too, if there is one, and what closes that.
func (e *erasing) with(ctx context.Context, o *store.EraseOptions, dry bool) (v erase.Store, done func() error, err error) {
	if o.Archive == "" {
		return e, func() error { return nil }, nil
	}
	secret, err := e.Secret(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, err := store.OpenArchived(ctx, o.Archive, secret, dry)
	if err != nil {
		return nil, nil, err
	}
	return erase.WithArchive(e, f.Erasing(o), o.After), f.Close, nil
}

// Among implements [erase.Keeper].
func (e *erasing) Among(ctx context.Context, ids []string) (list []string, err error) {
	if e.tx == nil {
		err = e.seeing(ctx, func(e *erasing) (err error) { list, err = e.Among(ctx, ids); return err })
		return list, err
	}
	return texts(ctx, e.tx, `SELECT session_id::text FROM sessions WHERE session_id=ANY($1::text[]::uuid[])`, ids)
}

// Kept implements [erase.Keeper].
func (e *erasing) Kept(ctx context.Context, id string) (k erase.Kept, err error) {
	if e.tx == nil {
		err = e.seeing(ctx, func(e *erasing) (err error) { k, err = e.Kept(ctx, id); return err })
		return k, err
	}
	err = e.tx.QueryRow(ctx, `SELECT taught FROM archived WHERE session_id=$1::text::uuid`, id).Scan(&k.Taught)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	for r, err := range e.rows(ctx, auditOf, id) {
		if err != nil {
			return k, err
		}
		k.Audit = append(k.Audit, r)
	}
	return k, nil
}

// Forget implements [erase.Keeper].
func (e *erasing) Forget(ctx context.Context, x *erase.Erasure) error {
	forgotten := false
	err := pgx.BeginFunc(ctx, e.conn, func(tx pgx.Tx) (err error) {
		forgotten, err = e.forget(ctx, tx, x)
		return err
	})
	if err == nil && forgotten {
		e.gone(x.Machine)
	}
	return err
}

// forget is Forget in a transaction. It reports whether there was something.
func (e *erasing) forget(ctx context.Context, tx pgx.Tx, x *erase.Erasure) (bool, error) {
	if _, err := tx.Exec(ctx, inTurn, e.lock); err != nil {
		return false, err
	}
	if err := refused(ctx, tx); err != nil {
		return false, err
	}
	var machine int
	var taught []byte
	err := tx.QueryRow(ctx, `SELECT machine, taught FROM archived WHERE session_id=$1::text::uuid FOR UPDATE`, x.ID).Scan(&machine, &taught)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, exemplars, changed, err := x.Keep(taught)
	if err != nil || !changed {
		return false, err
	}
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(ctx, query, args...)
		}
	}
	exec(`UPDATE archived SET taught=$1 WHERE session_id=$2::text::uuid`, now, x.ID)
	if x.Logged() {
		exec(`UPDATE archived SET sequence=$1, head=$2 WHERE session_id=$3::text::uuid`, x.Last.First, x.Last.Hash[:], x.ID)
	}
	for _, text := range exemplars {
		exec(`UPDATE exemplars SET exemplar='' WHERE machine=$1 AND exemplar=$2`, machine, []byte(text))
	}
	for _, r := range x.Audit {
		exec(`UPDATE llm_audit SET entry=$1, hash=$2 WHERE id=$3`, r.Now, r.Hash[:], r.Place)
	}
	exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=$1`, machine)
	exec(sayErasing, int64(x.At))
	exec(raiseFormat, format)
	return err == nil, err
}
