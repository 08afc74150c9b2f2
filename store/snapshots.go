package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Snapshots of long sessions (store/internal/snapshots), one beside each. They are no part of what is
// copied to another store, and whoever deletes or erases a session deletes its snapshot.

const (
	putSnapshot = `INSERT OR REPLACE INTO snapshots (session, sequence, format, head, body, hash)
		SELECT id, ?2, ?3, ?4, ?5, ?6 FROM sessions WHERE session_id=?1 AND status IN ('running', 'needs_human')`
	keptSnapshot = `SELECT sequence, format, head, body, hash FROM snapshots WHERE session=?`
	dropSnapshot = `DELETE FROM snapshots WHERE session=?`
)

// keepSnapshot writes the snapshot of a session that lives. It waits for its turn with the commits.
func (s *SQLite) keepSnapshot(ctx context.Context, k *snapshots.Session) error {
	body, hash := k.Row()
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		_, err := s.stmts.putSnapshot.ExecContext(ctx, k.ID.String(), k.Sequence, k.Format, k.Head[:], body, hash)
		return err
	}})
}

// kept returns the snapshot of a session; nil if there is none that can be read.
func (s *SQLite) kept(ctx context.Context, id specialist.SessionID, row int64) (*snapshots.Session, error) {
	k := &snapshots.Session{ID: id}
	var head, body, hash []byte
	err := s.snapshot.QueryRowContext(ctx, row).Scan(&k.Sequence, &k.Format, &head, &body, &hash)
	if errors.Is(err, sql.ErrNoRows) || err == nil && k.Read(head, body, hash) != nil {
		return nil, nil
	}
	return k, translate(err)
}

// after returns what the cache is to have of a session after a commit, and of what a snapshot is to be made.
func (c *cache) after(id specialist.SessionID, row int64, change *session.Change) (v cached, due *session.Session) {
	v = cached{row: row, session: change.After}
	if was, ok := c.sessions.Get(id); ok && change.Before != nil && was.session.Sequence == change.Before.Sequence {
		v.snapshots = was.snapshots
	}
	v.snapshots, due = v.snapshots.After(change)
	return v, due
}

// readSessionSnapshots reads where the snapshots of sessions are: each is read when its log has come there.
func (a *audit) readSessionSnapshots(ctx context.Context) error {
	a.kept = map[int64]int64{}
	var row, sequence int64
	var known bool
	return each(scan(a.q.QueryContext(ctx, `SELECT n.session, n.sequence, s.id IS NOT NULL FROM snapshots n LEFT JOIN sessions s ON s.id=n.session`)).
		into(&row, &sequence, &known), func() error {
		if a.kept[row] = sequence; !known {
			delete(a.kept, row)
			a.find(differs(inRows, "snapshots", "the snapshot of row %d is of no session", row))
		}
		return nil
	})
}

// readKept reads the snapshot of the session whose first record was read, or says what is wrong with it.
func (f *folding) readKept() {
	if _, ok := f.a.kept[f.row]; !ok {
		return
	}
	k := &snapshots.Session{ID: f.Session().ID}
	var head, body, hash []byte
	err := f.a.q.QueryRowContext(context.Background(), keptSnapshot, f.row).Scan(&k.Sequence, &k.Format, &head, &body, &hash)
	if err == nil {
		err = k.Read(head, body, hash)
	}
	if err != nil {
		f.a.find(differs(inRows, "snapshots", "the snapshot of session %s: %v", f.stream, err))
		delete(f.a.kept, f.row)
		return
	}
	f.kept = k
}

// holdSnapshot holds the snapshot of a session against its log, as far as that was read.
func (f *folding) holdSnapshot() {
	k := f.kept
	if k == nil || k.Sequence > f.sequence {
		return
	}
	f.kept = nil
	delete(f.a.kept, f.row)
	problem := "it ends inside of a record"
	if k.Sequence == f.sequence {
		problem = k.Wrong(f.Session(), f.head)
	}
	if problem != "" {
		f.a.find(differs(inRows, "snapshots", "the snapshot of session %s at event %d: %s", f.stream, k.Sequence, problem))
	}
}

// compareSessionSnapshots says which snapshots no log has come to.
func (a *audit) compareSessionSnapshots(context.Context) error {
	if a.damaged() {
		return nil
	}
	for row, at := range a.kept {
		return differs(inRows, "snapshots", "the snapshot of the session of row %d at event %d: there is no such event", row, at)
	}
	return nil
}
