package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/erase"
)

// How payloads are taken out of sessions that were archived (store/internal/erase says in which order): out of the log in the file that they
// were archived to, and out of what the store has kept of them.

// with returns the store with the archive that is to be erased in, too, if there is one, and what closes that.
func (e erasing) with(ctx context.Context, o EraseOptions, dry bool) (v erase.Store, done func() error, err error) {
	if o.Archive == "" {
		return e, func() error { return nil }, nil
	}
	if there, err := os.Stat(o.Archive); err == nil {
		if live, err := os.Stat(e.path); err == nil && os.SameFile(there, live) {
			return nil, nil, &OpenError{o.Archive, ErrSame}
		}
	}
	secret, err := e.Secret(ctx)
	if err != nil {
		return nil, nil, err
	}
	f, err := existingArchive(ctx, o.Archive, ofFile, secret, dry)
	if err != nil {
		return nil, nil, err
	}
	return erase.WithArchive(e, f.Erasing(&o), o.After), f.Close, nil
}

// OpenArchived opens a file that sessions of a database were archived to, which has that secret, to erase in it; dry says that it is only looked at. It returns
// [ErrNoArchive] for a file that is no archive of it.
func OpenArchived(ctx context.Context, path string, secret []byte, dry bool) (*ArchiveFile, error) {
	return existingArchive(ctx, path, ofDatabase, secret, dry)
}

// Erasing returns the archive as one in which sessions are erased, with the options of the run.
func (f *ArchiveFile) Erasing(o *EraseOptions) erase.Archive {
	return archived{erasing{SQLite: f.s, r: f.s.reader(), archive: o}}
}

// An archived is the file that sessions were archived to, in which they are erased.
type archived struct{ erasing }

// Path implements [erase.Archive].
func (a archived) Path() string { return a.path }

// firstOwnPlace is where records begin that an archive has and the store does not. The store gives none of these places.
const firstOwnPlace = 1 << 52

// behind returns the place of a record that is appended: nil, the next one, or in an archive one that the store does not give.
func (e erasing) behind(ctx context.Context, conn *sql.Conn) (place any, err error) {
	if e.archive == nil {
		return nil, nil
	}
	var last int64
	if err := conn.QueryRowContext(ctx, `SELECT max(id) FROM log`).Scan(&last); err != nil || last >= firstOwnPlace {
		return last + 1, err
	}
	_, err = conn.ExecContext(ctx, `INSERT OR REPLACE INTO gaps (place, last) VALUES (?, ?)`, last+1, firstOwnPlace-1)
	return firstOwnPlace, err
}

// Drop implements [erase.Archive]. What follows from the other logs is made anew at the end.
func (a archived) Drop(ctx context.Context, first session.Hash) error {
	return a.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		var row int64
		switch err := conn.QueryRowContext(ctx, `SELECT session FROM log WHERE first=1 AND hash=?`, first[:]).Scan(&row); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		if _, err := conn.ExecContext(ctx, `PRAGMA secure_delete=ON`); err != nil {
			return err
		}
		return inTransaction(ctx, conn, func() error {
			for _, query := range []string{`DELETE FROM log WHERE session=?`, `DELETE FROM agent_log WHERE session=?`, dropSnapshot, `DELETE FROM sessions WHERE id=?`} {
				if _, err := conn.ExecContext(ctx, query, row); err != nil {
					return err
				}
			}
			_, err := conn.ExecContext(ctx, `INSERT OR REPLACE INTO erasing (one, at) VALUES (1, ?)`, int64(a.archive.At))
			return err
		})
	}})
}

// Overwrite implements [erase.Store]. All of the archive is verified before it counts as erased.
func (a archived) Overwrite(ctx context.Context, overwritten func() error) error {
	var due bool
	if err := a.r.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM erasing)`).Scan(&due); err != nil || !due {
		return translate(err)
	}
	report, err := a.Rebuild(ctx, a.archive.Programs, RebuildOptions{AcceptCut: true}) // places are missing: they are elsewhere
	if err == nil && report.Difference != nil {
		err = &session.CorruptError{What: "the archive " + a.path, Problem: report.Difference.Error()}
	}
	if err != nil {
		return err
	}
	return a.erasing.Overwrite(ctx, overwritten)
}

// Among implements [erase.Keeper].
func (e erasing) Among(ctx context.Context, ids []string) ([]string, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	return e.r.texts(ctx, `SELECT session_id FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))`, string(list))
}

// Kept implements [erase.Keeper].
func (e erasing) Kept(ctx context.Context, id string) (k erase.Kept, err error) {
	err = e.r.q.QueryRowContext(ctx, `SELECT taught FROM archived WHERE session_id=?`, id).Scan(&k.Taught)
	if errors.Is(err, sql.ErrNoRows) {
		return k, nil
	}
	if err != nil {
		return k, translate(err)
	}
	for r, err := range e.audit(ctx, id) {
		if err != nil {
			return k, err
		}
		r.Body = bytes.Clone(r.Body)
		k.Audit = append(k.Audit, r)
	}
	return k, nil
}

// Forget implements [erase.Keeper].
func (e erasing) Forget(ctx context.Context, x *erase.Erasure) error {
	return e.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `PRAGMA secure_delete=ON`); err != nil {
			return err
		}
		return inTransaction(ctx, conn, func() error {
			if err := (reader{conn}).frozen(ctx); err != nil {
				return err
			}
			var machine int64
			var taught []byte
			err := conn.QueryRowContext(ctx, `SELECT machine, taught FROM archived WHERE session_id=?`, x.ID).Scan(&machine, &taught)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			now, exemplars, changed, err := x.Keep(taught)
			if err != nil || !changed {
				return err
			}
			exec := func(query string, args ...any) {
				if err == nil {
					_, err = conn.ExecContext(ctx, query, args...)
				}
			}
			exec(`UPDATE archived SET taught=? WHERE session_id=?`, now, x.ID)
			if x.Logged() {
				exec(`UPDATE archived SET sequence=?, head=? WHERE session_id=?`, x.Last.First, x.Last.Hash[:], x.ID)
			}
			for _, text := range exemplars {
				exec(`UPDATE exemplars SET exemplar='' WHERE machine=? AND exemplar=?`, machine, text)
			}
			for _, r := range x.Audit {
				exec(`UPDATE llm_audit SET entry=? WHERE id=?`, string(r.Now), r.Place)
			}
			exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=?`, machine)
			exec(`INSERT OR REPLACE INTO erasing (one, at) VALUES (1, ?)`, int64(x.At))
			return err
		})
	}})
}
