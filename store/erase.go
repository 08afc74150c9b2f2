package store

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"os"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/erase"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// How payloads are taken out of sessions in a file (store/internal/erase says which, and in which order). At its end the
// file is written anew, for what was erased still stands on free pages and in the write-ahead log.

// What is erased, and what was.
type (
	EraseOptions   = erase.Options
	Erased         = erase.Erased
	ErasedSession  = erase.Session
	EraseLiveError = erase.LiveError
)

// Errors of erasing.
var (
	ErrEraseArchive = erase.ErrArchive
	ErrStillRead    = erase.ErrStillRead
)

// Erasable returns what [SQLite.Erase] would erase, and changes nothing.
func (s *SQLite) Erasable(ctx context.Context, o EraseOptions) (Erased, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return Erased{}, translate(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one snapshot for everything
		return Erased{}, translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	e := erasing{SQLite: s, r: reader{conn}}
	v, done, err := e.with(ctx, o, true)
	if err != nil {
		return Erased{}, err
	}
	defer done()
	return erase.Erasable(ctx, v, o, func(ctx context.Context, ids []string) (int64, error) { return e.remembered(ctx, false, ids) })
}

// Erase takes payloads out of ended sessions, while others read and write the store. Interrupted, it can be
// run again. It returns [EraseLiveError] if one of them, or of their forks, lives, and then changes
// nothing, [session.ErrNotFound] if there is none, [session.ArchivedError] for one that was archived, [ErrArchiving] if another process archives or erases, and
// [ErrStillRead] if it has to be run again for the rest.
func (s *SQLite) Erase(ctx context.Context, o EraseOptions) (done Erased, err error) {
	lock, err := s.lock("archiving")
	if err != nil {
		return done, err
	}
	switch held, err := lock.TryLock(); {
	case err != nil:
		return done, err
	case !held:
		return done, ErrArchiving
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	v, closed, err := erasing{SQLite: s, r: s.reader()}.with(ctx, o, false)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	return erase.Run(ctx, v, o)
}

// An erasing is a file in which sessions are erased, as a connection sees it.
type erasing struct {
	*SQLite
	r       reader
	archive *erase.Options // by which sessions are erased in an archive; nil if it is none
}

// Look implements [erase.View].
func (e erasing) Look(ctx context.Context, o *EraseOptions) (l erase.Looked, err error) {
	if err := e.r.frozen(ctx); err != nil {
		return l, err
	}
	is, err := e.r.identity(ctx)
	if err == nil && is.ArchiveOf != nil && e.archive == nil {
		err = &OpenError{e.path, ErrEraseArchive}
	}
	if err != nil {
		return l, translate(err)
	}
	query, what := `SELECT session_id FROM sessions WHERE session_id=?`, o.Session.String()
	if o.Subject != "" {
		query, what = `SELECT session_id FROM sessions WHERE subject=?`, o.Subject
	}
	if l.Named, err = e.r.texts(ctx, query, what); err != nil {
		return l, err
	}
	if len(l.Named) == 0 && o.Subject == "" {
		l.Missing = e.r.elsewhere(ctx, o.Session)
	}
	if err := e.r.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM erasing)`).Scan(&l.Unfinished); err != nil {
		return l, translate(err)
	}
	l.Archives, err = e.r.texts(ctx, `SELECT DISTINCT archive FROM archived ORDER BY archive`)
	return l, err
}

// Families implements [erase.View].
func (e erasing) Families(ctx context.Context, after erase.Family, n int) (page []erase.Family, err error) {
	var f erase.Family
	var packed, buffer, hash []byte
	err = each(scan(e.r.q.QueryContext(ctx, `SELECT s.id, s.session_id, s.status, l.events, l.hash FROM sessions s CROSS JOIN log l ON l.session=s.id AND l.first=1 WHERE s.id>? ORDER BY s.id LIMIT ?`, after.Row, n)).
		into(&f.Row, &f.ID, &f.Status, &packed, &hash), func() error {
		copy(f.First[:], hash)
		if buffer, err = f.Began(buffer, packed); err == nil {
			page = append(page, f)
		}
		return err
	})
	return page, err
}

// texts returns the texts that a query yields.
func (r reader) texts(ctx context.Context, query string, args ...any) (list []string, err error) {
	var text string
	err = each(scan(r.q.QueryContext(ctx, query, args...)).into(&text), func() error { list = append(list, text); return nil })
	return list, err
}

// Stored implements [erase.View].
func (e erasing) Stored(ctx context.Context, f erase.Family) (*erase.Stored, error) {
	s := &erase.Stored{Definition: func(digest string) ([]byte, error) { return e.r.definition(ctx, digest) }}
	err := e.r.q.QueryRowContext(ctx, `SELECT s.status, m.machine_name, s.head FROM sessions s JOIN machines m ON m.id=s.machine WHERE s.id=?`, f.Row).Scan(&s.Status, &s.Machine, &s.Head)
	if errors.Is(err, sql.ErrNoRows) {
		id, _ := session.ParseID(f.ID) // it was read
		err = e.r.elsewhere(ctx, id)
	}
	if err != nil {
		return nil, translate(err)
	}
	for r, err := range e.rows(ctx, `SELECT id, first, events, NULL, hash FROM log WHERE session=? ORDER BY first`, f.Row) {
		if err == nil {
			r.Body, err = fold.Unpack(nil, r.Body, r.First)
		}
		if err != nil {
			return nil, err
		}
		s.Log = append(s.Log, r)
	}
	s.Agents = e.rows(ctx, `SELECT id, seq, event, NULL, hash FROM agent_log WHERE session=? ORDER BY seq`, f.Row)
	s.Audit = e.audit(ctx, f.ID)
	return s, nil
}

// audit yields the entries of a session in the audit of models.
func (e erasing) audit(ctx context.Context, id string) iter.Seq2[erase.Row, error] {
	return e.rows(ctx, `SELECT a.id, 0, a.entry, (SELECT hash FROM llm_audit p WHERE p.id<a.id ORDER BY p.id DESC LIMIT 1), a.hash
		FROM llm_audit a WHERE a.session_id=? ORDER BY a.id`, id)
}

// rows yields rows as they are stored. One is valid until the next one.
func (e erasing) rows(ctx context.Context, query string, of any) iter.Seq2[erase.Row, error] {
	return func(yield func(erase.Row, error) bool) {
		var r erase.Row
		var prev, hash []byte
		for err := range scan(e.r.q.QueryContext(ctx, query, of)).into(&r.Place, &r.First, &r.Body, &prev, &hash) {
			r.Prev, r.Hash = session.Hash{}, session.Hash{}
			copy(r.Prev[:], prev)
			copy(r.Hash[:], hash)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Write implements [erase.Store].
func (e erasing) Write(ctx context.Context, f erase.Family, prepare func(erase.View) (*erase.Erasure, error)) error {
	err := e.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `PRAGMA secure_delete=ON`); err != nil {
			return err
		}
		return inTransaction(ctx, conn, func() error {
			if err := (reader{conn}).frozen(ctx); err != nil {
				return err
			}
			x, err := prepare(erasing{e.SQLite, reader{conn}, e.archive})
			if err != nil || x.Nothing() {
				return err
			}
			return e.write(ctx, conn, x)
		})
	}})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if id, err := session.ParseID(f.ID); err == nil {
		e.cache.sessions.Delete(id)
	}
	return nil
}

// write writes all of what is left of a session, in a transaction.
func (e erasing) write(ctx context.Context, conn *sql.Conn, x *erase.Erasure) (err error) {
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = conn.ExecContext(ctx, query, args...)
		}
	}
	packed := func(events []byte) []byte {
		if e.plain {
			return events
		}
		return pack.Append(nil, events)
	}
	var machine int64
	if err := conn.QueryRowContext(ctx, `SELECT machine FROM sessions WHERE id=?`, x.Row).Scan(&machine); err != nil {
		return err
	}
	for _, r := range x.Records {
		exec(`UPDATE log SET events=? WHERE id=?`, packed(r.Now), r.Place)
	}
	for _, r := range x.Agents {
		exec(`UPDATE agent_log SET event=? WHERE id=?`, string(r.Now), r.Place)
	}
	for _, r := range x.Audit {
		exec(`UPDATE llm_audit SET entry=? WHERE id=?`, string(r.Now), r.Place)
	}
	place, err := e.behind(ctx, conn)
	exec(insert("log", append([]string{"id"}, projection.LogColumns...)), place, x.Row, x.Last.First, nil, int64(x.At), packed(x.Last.Events), x.Last.Hash[:])
	head := x.Last.Hash[:]
	fields := projection.Values(x.Session.Fields(nil, &machine, &head))
	exec(`UPDATE sessions SET `+strings.Join(projection.SessionColumns, "=?, ")+`=? WHERE id=?`, append(fields, x.Row)...)
	exec(dropSnapshot, x.Row)
	for _, prefix := range x.Exemplars {
		exec(`UPDATE exemplars SET exemplar='' WHERE machine=? AND instr(exemplar, ?)=1`, machine, prefix)
	}
	exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=?`, machine)
	exec(`INSERT OR REPLACE INTO erasing (one, at) VALUES (1, ?)`, int64(x.At))
	return err
}

// Overwrite implements [erase.Store]. It writes the file anew, and empties the write-ahead log.
func (e erasing) Overwrite(ctx context.Context, overwritten func() error) error {
	return e.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		var due bool
		if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM erasing)`).Scan(&due); err != nil || !due {
			return err
		}
		if err := overwrite(ctx, conn); err != nil {
			return err
		}
		if err := overwritten(); err != nil {
			return err
		}
		if lock, err := e.DriverLock(); err == nil { // else a rebuild may be under way
			if free, err := lock.TryLock(); err == nil && free {
				_, err = os.Stat(e.path + ".rebuild")
				if err == nil { // one that was killed
					err = removeStore(e.path + ".rebuild")
				}
				if err = errors.Join(lock.Unlock(), err); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
		}
		_, err := conn.ExecContext(ctx, `DELETE FROM erasing`)
		return err
	}})
}

// overwrite writes a file anew.
func overwrite(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	var busy, frames, written int64
	if err := conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &written); err != nil {
		return err
	}
	if busy != 0 {
		return ErrStillRead
	}
	return nil
}

// Remembered implements [erase.Store].
func (e erasing) Remembered(ctx context.Context, ids []string) (int64, error) {
	return e.remembered(ctx, true, ids)
}

// remembered counts, or deletes, what a server keeps of the sessions in the control file beside the store.
func (e erasing) remembered(ctx context.Context, forget bool, ids []string) (n int64, err error) {
	path := ControlPath(e.path)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || len(ids) == 0 {
		return 0, nil
	}
	c, err := OpenControl(ctx, path, SQLiteOptions{ReadOnly: !forget, BusyTimeout: e.how.busy})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if !forget {
		return c.naming(ctx, ids)
	}
	return c.forgetSessions(ctx, ids)
}
