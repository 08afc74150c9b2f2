package postgres

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
)

// fillSince writes into the rows of the sessions that wait for a human since when they do, which only the fold of a
// log says. One that cannot be folded stays as it is: it comes first where those that wait are listed, and verifying
// the store names it. The table is locked meanwhile by what has made the column.
// told is told how far it is.
func fillSince(ctx context.Context, tx *sql.Tx, told func(part string, done, of int64)) error {
	var of int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sessions WHERE status=1`).Scan(&of); err != nil {
		return err
	}
	part := projection.NewPart("reading since when sessions wait", of, told)
	programs := session.NewPrograms()
	var row int64
	for {
		var id string
		l := fold.Log{Definition: func(digest string) (text []byte, err error) {
			return text, tx.QueryRowContext(ctx, `SELECT definition FROM definitions WHERE machine_digest=$1`, digest).Scan(&text)
		}}
		err := tx.QueryRowContext(ctx, `SELECT id, session_id, sequence, head FROM sessions WHERE status=1 AND id>$1 ORDER BY id LIMIT 1`, row).Scan(&row, &id, &l.Sequence, &l.Head)
		if errors.Is(err, sql.ErrNoRows) {
			part.End()
			return nil
		}
		if err != nil {
			return err
		}
		part.Next()
		if l.ID, err = session.ParseID(id); err != nil {
			return err
		}
		records, err := recordsIn(ctx, tx, row)
		if err != nil {
			return err
		}
		l.Records = records
		s, err := l.Session(programs)
		if err != nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE sessions SET since=$1 WHERE id=$2`, int64(s.WaitingSince()), row); err != nil {
			return err
		}
	}
}

// recordsIn returns the log of a session, as [fold.Log] takes it.
func recordsIn(ctx context.Context, tx *sql.Tx, row int64) (func(int64) iter.Seq2[session.StoredRecord, error], error) {
	rows, err := tx.QueryContext(ctx, `SELECT first, events, hash FROM log WHERE session=$1 ORDER BY first`, row)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []session.StoredRecord
	var problem error // of the last of them
	for rows.Next() && problem == nil {
		var r session.StoredRecord
		var events, hash sql.RawBytes
		if err := rows.Scan(&r.First, &events, &hash); err != nil {
			return nil, err
		}
		if copy(r.Hash[:], hash); len(list) > 0 {
			r.Prev = list[len(list)-1].Hash
		}
		r.Events, problem = fold.Unpack(nil, events, r.First)
		list = append(list, r)
	}
	return func(int64) iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for i := range list {
				if i == len(list)-1 && problem != nil {
					yield(list[i], problem)
				} else if !yield(list[i], nil) {
					return
				}
			}
		}
	}, rows.Err()
}
