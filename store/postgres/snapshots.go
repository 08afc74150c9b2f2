package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Snapshots of long sessions (store/internal/snapshots), one beside each. They are no part of what is
// copied to another store, and whoever deletes a session deletes its snapshot.

// keepSnapshot writes the snapshot of a session that lives.
func (s *Store) keepSnapshot(ctx context.Context, k *snapshots.Session) error {
	body, hash := k.Row()
	_, err := query(ctx, s, pgx.RowTo[int64], `INSERT INTO snapshots (session, sequence, format, head, body, hash)
		SELECT id, $2, $3, $4, $5, $6 FROM sessions WHERE session_id=$1 AND status<2 FOR SHARE
		ON CONFLICT (session) DO UPDATE SET sequence=excluded.sequence, format=excluded.format, head=excluded.head, body=excluded.body, hash=excluded.hash`,
		[16]byte(k.ID), k.Sequence, k.Format, k.Head[:], body, hash)
	return err
}

// A keptRow is the snapshot of a session that was not read yet.
type keptRow struct {
	kept             snapshots.Session
	row              int64
	head, body, hash []byte
}

// read returns the snapshot of a session that it is; nil if it cannot be read.
func (k *keptRow) read(id specialist.SessionID) *snapshots.Session {
	if k.kept.ID = id; k.kept.Read(k.head, k.body, k.hash) != nil {
		return nil
	}
	return &k.kept
}

func scanKept(row pgx.CollectableRow) (k keptRow, err error) {
	err = row.Scan(&k.row, &k.kept.Sequence, &k.kept.Format, &k.head, &k.body, &k.hash)
	return k, err
}

const keptQuery = `SELECT session, sequence, format, head, body, hash FROM snapshots WHERE session=$1`

// kept returns the snapshot of a session; nil if there is none that can be read.
func (s *Store) kept(ctx context.Context, id specialist.SessionID, row int64) (*snapshots.Session, error) {
	list, err := query(ctx, s, scanKept, keptQuery, row)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0].read(id), nil
}

// after returns what the cache is to have of a session after a commit, and of what a snapshot is to be made.
// s.mu is held.
func (s *Store) after(id specialist.SessionID, row int64, change *session.Change) (v cached, due *session.Session) {
	v = cached{row: row, session: change.After}
	if was, ok := s.sessions.Get(id); ok && change.Before != nil && was.session.Sequence == change.Before.Sequence {
		v.snapshots = was.snapshots
	}
	v.snapshots, due = v.snapshots.After(change)
	return v, due
}

// readSessionSnapshots reads where the snapshots of sessions are: each is read with its log.
func (a *audit) readSessionSnapshots(ctx context.Context) error {
	a.kept = map[int64]int64{}
	var row, sequence int64
	var known bool
	return a.each(ctx, `SELECT n.session, n.sequence, s.id IS NOT NULL FROM snapshots n LEFT JOIN sessions s ON s.id=n.session`, []any{&row, &sequence, &known}, func() {
		if a.kept[row] = sequence; !known {
			delete(a.kept, row)
			a.differs(inRows, "snapshots", sequence, "the snapshot of row %d is of no session", row)
		}
	})
}

// readKept reads the snapshot of a session, nil if there is none or what is wrong with it was said.
func (a *audit) readKept(ctx context.Context, row *sessionRow) (*snapshots.Session, error) {
	if _, ok := a.kept[row.id]; !ok {
		return nil, nil
	}
	rows, _ := a.tx.Query(ctx, keptQuery, row.id) // the error comes with the rows
	k, err := pgx.CollectExactlyOneRow(rows, scanKept)
	if err != nil {
		return nil, err
	}
	if k.kept.ID, err = session.ParseID(row.ID); err == nil {
		err = k.kept.Read(k.head, k.body, k.hash)
	}
	if err != nil {
		a.differs(inRows, "snapshots", k.kept.Sequence, "the snapshot of session %s: %v", row.ID, err)
		delete(a.kept, row.id)
		return nil, nil
	}
	return &k.kept, nil
}

// holdSnapshot holds the snapshot of a session against its log, as far as that was read.
func (a *audit) holdSnapshot(k *snapshots.Session, row, sequence int64, f *session.Folder, head session.Hash) {
	if _, waits := a.kept[row]; k == nil || !waits || k.Sequence > sequence {
		return
	}
	delete(a.kept, row)
	problem := "it ends inside of a record"
	if k.Sequence == sequence {
		problem = k.Wrong(f.Session(), head)
	}
	if problem != "" {
		a.differs(inRows, "snapshots", k.Sequence, "the snapshot of session %s: %s", k.ID, problem)
	}
}

// checkSessionSnapshots says which snapshots no log has come to.
func (a *audit) checkSessionSnapshots(context.Context) error {
	for row, at := range a.kept {
		if !a.broken {
			a.differs(inRows, "snapshots", at, "the snapshot of the session of row %d: there is no such event", row)
		}
	}
	return nil
}
