package store

import (
	"context"
	"database/sql"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
)

// sinceFrom is the migration from which on rows of sessions say since when each waits for a human.
const sinceFrom = 20

// fillSince writes into the rows of the sessions that wait for a human since when they do, which only the fold of a
// log says. One that cannot be folded stays as it is: it comes first where those that wait are listed, and verifying
// the store names it. told is told how far it is.
func fillSince(ctx context.Context, tx *sql.Tx, told func(part string, done, of int64)) error {
	var of int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sessions WHERE status='needs_human'`).Scan(&of); err != nil {
		return err
	}
	part := projection.NewPart("reading since when sessions wait", of, told)
	programs := session.NewPrograms()
	r := reader{tx}
	var row, sequence int64
	var id string
	var head []byte
	for after := int64(0); ; after = row {
		const next = `SELECT id, session_id, sequence, head FROM sessions WHERE status='needs_human' AND id>? ORDER BY id LIMIT 1`
		found := false
		for err := range scan(tx.QueryContext(ctx, next, after)).into(&row, &id, &sequence, &head) {
			if found = true; err != nil {
				return err
			}
		}
		if !found {
			part.End()
			return nil
		}
		part.Next()
		s, err := (&fold.Log{ID: sessionID(id), Sequence: sequence, Head: head,
			Records: func(from int64) iter.Seq2[session.StoredRecord, error] {
				return stored(tx.QueryContext(ctx, recordsQuery, row, from))
			},
			Definition: func(digest string) ([]byte, error) { return r.definition(ctx, digest) }}).Session(programs)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE sessions SET since=? WHERE id=?`, s.WaitingSince(), row); err != nil {
			return err
		}
	}
}

// sessionID returns the id that a text is; the zero one for another text, which is nobody's.
func sessionID(text string) specialist.SessionID {
	id, _ := session.ParseID(text)
	return id
}
