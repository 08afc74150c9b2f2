package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// A store grows with every session, and most of it is asked for no more. Archive moves the whole
// logs of sessions that have ended to another file, an ordinary store that every command reads.
// What they taught stays: alignment, lessons and exemplars, what their decisions come to, and in the rows
// of archived what these follow from, so that verify and rebuild go on proving them.
//
// It goes in three steps, each of which can be interrupted and is done again by the next
// run. The logs are copied, with their places; then everything that follows from them is written in
// the archive, and all of that file verified; then those sessions are deleted whose last record is still the
// one that the archive has, some at a time, each in the transaction that says where it went. So at every
// moment a session is in at least one of the two.
//
// A store that was set back to a backup gives numbers and places a second time. So an archive takes only what
// goes on from what it has: it never loses a record, nor has two at a place.
//
// Numbers of rows are given on from the highest one, and places must never be given twice: so the session that
// began last, and those that hold the newest record of a log, stay.

// ArchiveOptions say what is archived.
type ArchiveOptions struct {
	Before      specialist.Time  // sessions that have changed since stay
	MachineName string           // "" for all
	Statuses    []session.Status // none means those that are completed; those that live stay in any case
	To          string           // path of the archive: a new file, or an archive of the same store
	At          specialist.Time  // now
	Programs    *session.Programs
	Compact     bool                    // the store's file gives back the room
	Copied      func(done, of int64)    // told of sessions that are copied; nil tells nobody
	Checked     func(done, of int64)    // of records of the archive that are verified
	Deleted     func(done, of int64)    // of sessions that are deleted
	batch       int                     // sessions of one transaction; 0 means archiveBatch
	after       func(step string) error // of tests: fails, or kills the process, after a step
}

// Archived is what was archived.
type Archived struct {
	Sessions int64  `json:"sessions"`
	Records  int64  `json:"records"`
	Bytes    int64  `json:"bytes"`             // of their events, as they are stored
	Archive  string `json:"archive,omitempty"` // the file; "" if nothing is to be moved
	// Kept counts the sessions that meet the conditions and stay: those that hold the newest record of
	// a log, and those that somebody changed meanwhile.
	Kept int64 `json:"kept"`
}

// ErrArchiving is the error of archiving a store that another process archives.
var ErrArchiving = errors.New("another process archives the store")

// ErrNoArchive is the error of archiving into a file that is no archive of the store, or that has other
// records than it at the same places: the store was set back to a backup since.
var ErrNoArchive = errors.New("it is no archive of this store, or the store was set back to a backup since")

// archiveBatch is how many sessions are moved in one transaction.
const archiveBatch = 1000

// Archivable returns what [SQLite.Archive] would move, and moves nothing.
func (s *SQLite) Archivable(ctx context.Context, o ArchiveOptions) (a Archived, err error) {
	where, args := o.where()
	err = s.read.QueryRowContext(ctx, `WITH old AS (SELECT s.id FROM sessions s WHERE `+where+`), kept AS (`+newest+`)
		SELECT count(DISTINCT o.id), count(l.id), coalesce(sum(length(l.events)), 0), (SELECT count(*) FROM old WHERE id IN kept)
		FROM old o JOIN log l ON l.session=o.id WHERE o.id NOT IN kept`, args...).Scan(&a.Sessions, &a.Records, &a.Bytes, &a.Kept)
	return a, translate(err)
}

// newest are the rows of the sessions that stay, whatever they are: see the top.
const newest = `SELECT max(id) FROM sessions UNION ALL SELECT * FROM (SELECT session FROM log ORDER BY id DESC LIMIT 1) UNION ALL SELECT * FROM (SELECT session FROM agent_log ORDER BY id DESC LIMIT 1)`

// where returns the condition that sessions s are to be archived, but for those that stay.
func (o *ArchiveOptions) where() (condition string, args []any) {
	statuses := o.Statuses
	if len(statuses) == 0 {
		statuses = []session.Status{session.Completed}
	}
	condition = `s.status NOT IN ('running', 'needs_human') AND s.updated_at<? AND s.reviews=0 AND s.status IN (` + strings.TrimSuffix(strings.Repeat("?,", len(statuses)), ",") + `)`
	args = append(args, int64(o.Before))
	for _, status := range statuses {
		args = append(args, status.String())
	}
	if o.MachineName != "" {
		condition += ` AND s.machine=(SELECT id FROM machines WHERE machine_name=?)`
		args = append(args, o.MachineName)
	}
	return condition, args
}

// Archive moves the logs of sessions that have ended to another file, while others read and write the
// store. Interrupted, it can be run again. It returns [ErrNoArchive] for a file that is no archive of this store,
// [ErrArchiving] if another process does the same, and [session.CorruptError] if the archive does not verify; nothing is deleted
// then.
func (s *SQLite) Archive(ctx context.Context, o ArchiveOptions) (done Archived, err error) {
	for _, told := range []*func(done, of int64){&o.Copied, &o.Checked, &o.Deleted} {
		if *told == nil {
			*told = func(int64, int64) {}
		}
	}
	if o.after == nil {
		o.after = func(string) error { return nil }
	}
	if o.batch == 0 {
		o.batch = archiveBatch
	}
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
	if err := s.reader().frozen(ctx); err != nil {
		return done, err
	}
	all, err := s.Archivable(ctx, o)
	switch {
	case err != nil:
		return done, err
	case all.Sessions == 0:
		done.Kept = all.Kept
	default:
		a, err := s.openArchive(ctx, o.To)
		if err != nil {
			return done, err
		}
		m := moving{live: s, archive: a, o: o, ctx: ctx, all: all}
		done, err = m.run()
		if err = errors.Join(err, a.Close()); err != nil {
			return done, err
		}
	}
	if o.Compact {
		err = s.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, `VACUUM`)
			return err
		}})
	}
	return done, err
}

// openArchive opens the file that sessions are archived to.
func (s *SQLite) openArchive(ctx context.Context, path string) (*SQLite, error) {
	if there, err := os.Stat(path); err == nil {
		if live, err := os.Stat(s.path); err == nil && os.SameFile(there, live) {
			return nil, &OpenError{path, ErrSame}
		}
	}
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	of := sha256.Sum256(append([]byte("dialai archive\n"), secret...))
	a, err := OpenSQLite(ctx, path, SQLiteOptions{})
	if err != nil {
		return nil, err
	}
	var has []byte
	var sessions int64
	err = a.read.QueryRowContext(ctx, `SELECT coalesce((SELECT value FROM secrets WHERE name=?), x''), (SELECT count(*) FROM (SELECT 1 FROM log LIMIT 1))`, secretLive).Scan(&has, &sessions)
	switch {
	case err == nil && len(has) == 0 && sessions == 0: // a new one
		err = a.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, `INSERT INTO secrets (name, value) VALUES (?,?)`, secretLive, of[:])
			return err
		}})
	case err == nil && string(has) != string(of[:]):
		err = &OpenError{path, ErrNoArchive}
	}
	if err != nil {
		return nil, errors.Join(translate(err), a.Close())
	}
	return a, nil
}

// A moving is one run of Archive.
type moving struct {
	live, archive *SQLite
	o             ArchiveOptions
	ctx           context.Context //nolint:containedctx // of the one call it lives in
	all           Archived        // what is to be moved

	sessions map[int64]foldedSession // of the archive, by the rows that they have in both
	taught   map[int64][]projection.Taught
}

func (m *moving) run() (done Archived, err error) {
	if err := m.archive.out.do(&job{ctx: m.ctx, alone: m.copyLogs}); err != nil {
		if errors.Is(err, ErrNoArchive) {
			err = &OpenError{m.archive.path, err}
		}
		return done, err
	}
	if err := m.o.after("copied"); err != nil {
		return done, err
	}
	if err := m.verify(); err != nil {
		return done, err
	}
	if err := m.o.after("verified"); err != nil {
		return done, err
	}
	if err := m.count(); err != nil {
		return done, err
	}
	if err := m.o.after("counted"); err != nil {
		return done, err
	}
	return m.delete()
}

// each has do see the rows of the sessions that are to be archived, some at a time, in order. What do
// changes may leave the next ones out.
func (m *moving) each(do func(rows []int64) error) error {
	where, args := m.o.where()
	for last := int64(0); ; {
		var rows []int64
		var row int64
		for err := range scan(m.live.read.QueryContext(m.ctx, `SELECT s.id FROM sessions s WHERE s.id>? AND `+where+` AND s.id NOT IN (`+newest+`) ORDER BY s.id LIMIT ?`,
			append(append([]any{last}, args...), m.o.batch)...)).into(&row) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		if len(rows) == 0 {
			return nil
		}
		last = rows[len(rows)-1]
		if err := do(rows); err != nil {
			return err
		}
	}
}

// copyLogs copies the logs to the archive, by the connection that writes it. Of those that it has already, from
// a run that was interrupted, what has come since is copied.
func (m *moving) copyLogs(ctx context.Context, conn *sql.Conn) (err error) {
	if _, err := conn.ExecContext(ctx, `ATTACH ? AS live`, "file:"+escapePath(m.live.path)+"?mode=ro"); err != nil {
		return err
	}
	defer func() {
		_, detached := conn.ExecContext(context.WithoutCancel(ctx), `DETACH live`)
		err = errors.Join(err, detached)
	}()
	done := int64(0)
	return m.each(func(rows []int64) error {
		list, err := json.Marshal(rows)
		if err != nil {
			return err
		}
		if err := inTransaction(ctx, conn, func() error { return copySessions(ctx, conn, string(list)) }); err != nil {
			return err
		}
		done += int64(len(rows))
		m.o.Copied(done, m.all.Sessions)
		return m.o.after("copying")
	})
}

// inTransaction has do write by a connection, all of it or nothing.
func inTransaction(ctx context.Context, conn *sql.Conn, do func() error) error {
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, undone := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		return errors.Join(err, undone)
	}
	return nil
}

// copySessions copies what the logs of sessions are, and what they are of. What follows from them is
// written afterwards.
func copySessions(ctx context.Context, conn *sql.Conn, rows string) error {
	const chosen = `(SELECT value FROM json_each(?1))`
	for _, log := range []string{"log", "agent_log"} {
		var other bool
		if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM json_each(?1) c CROSS JOIN `+log+` a ON a.session=c.value
				WHERE NOT EXISTS (SELECT 1 FROM live.`+log+` l WHERE l.id=a.id AND l.session=a.session AND l.hash=a.hash))
			OR EXISTS (SELECT 1 FROM json_each(?1) c CROSS JOIN live.`+log+` l ON l.session=c.value CROSS JOIN `+log+` a ON a.id=l.id WHERE a.session<>l.session)`, rows).Scan(&other); err != nil {
			return err
		}
		if other {
			return ErrNoArchive
		}
	}
	for _, query := range []string{
		`INSERT INTO machines (machine_name) SELECT machine_name FROM live.machines WHERE id IN (SELECT machine FROM live.sessions WHERE id IN ` + chosen + `)
			ORDER BY id ON CONFLICT DO NOTHING`,
		`INSERT INTO definitions (machine_digest, machine, definition) SELECT d.machine_digest, m.id, d.definition FROM live.definitions d
			JOIN live.machines l ON l.id=d.machine JOIN machines m ON m.machine_name=l.machine_name
			WHERE d.machine IN (SELECT machine FROM live.sessions WHERE id IN ` + chosen + `) ORDER BY d.id ON CONFLICT DO NOTHING`,
		`INSERT INTO log (id, session, first, decides, at, events, hash) SELECT l.id, l.session, l.first, m.id, l.at, l.events, l.hash
			FROM json_each(?1) c CROSS JOIN live.log l ON l.session=c.value LEFT JOIN live.machines n ON n.id=l.decides LEFT JOIN machines m ON m.machine_name=n.machine_name
			WHERE true ON CONFLICT (id) DO UPDATE SET events=excluded.events`, // it may have been erased since it was copied
		`INSERT INTO agent_log (id, session, seq, event, hash) SELECT a.id, a.session, a.seq, a.event, a.hash FROM json_each(?1) c CROSS JOIN live.agent_log a ON a.session=c.value
			WHERE true ON CONFLICT (id) DO UPDATE SET event=excluded.event`,
	} {
		if _, err := conn.ExecContext(ctx, query, rows); err != nil {
			return err
		}
	}
	return nil
}

// verify writes what follows from the logs of the archive, checks all of it, and keeps what they say.
func (m *moving) verify() error {
	damaged := func(r Report) error {
		if r.Difference == nil {
			return nil
		}
		return &session.CorruptError{What: "the archive " + m.archive.path, Problem: r.Difference.Error()}
	}
	m.archive.OnProgress(m.o.Checked)
	report, err := m.archive.Rebuild(m.ctx, m.o.Programs, RebuildOptions{AcceptCut: true}) // places are missing: they are elsewhere
	if err = errors.Join(err, damaged(report)); err != nil {
		return err
	}
	report, a, err := m.archive.verify(m.ctx, m.o.Programs, true)
	if err = errors.Join(err, damaged(report)); err != nil {
		return err
	}
	m.sessions, m.taught = a.sessions, a.taught
	return nil
}

// count has the decisions counted that are to be deleted: whoever has counted some of them, and meets no
// others, goes on from there.
func (m *moving) count() error {
	follower := stats.NewFollower(m.live, m.o.Programs)
	names := map[string]bool{}
	for row := range m.sessions {
		names[m.sessions[row].Machine] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := follower.Keep(m.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the sessions that the archive has as they are, and keeps where they went.
func (m *moving) delete() (done Archived, err error) {
	done = Archived{Archive: m.archive.path}
	err = m.each(func(rows []int64) error {
		batch := done
		err := m.live.out.do(&job{ctx: m.ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
			batch = done
			return inTransaction(ctx, conn, func() error { return m.deleteBatch(ctx, conn, rows, &batch) })
		}})
		if err != nil {
			return err
		}
		done = batch
		m.forget(rows)
		m.o.Deleted(done.Sessions, m.all.Sessions)
		return m.o.after("deleting")
	})
	if err == nil {
		var left Archived
		left, err = m.live.Archivable(m.ctx, m.o)
		done.Kept = left.Sessions + left.Kept
	}
	return done, err
}

// deleteBatch deletes some sessions, and writes down where they went.
func (m *moving) deleteBatch(ctx context.Context, conn *sql.Conn, rows []int64, done *Archived) error {
	for _, row := range rows {
		has, ok := m.sessions[row]
		if !ok { // it ended since the logs were copied
			continue
		}
		taught, err := projection.PackTaught(m.taught[row])
		if err != nil {
			return err
		}
		result, err := conn.ExecContext(ctx, `INSERT INTO archived (session_id, row, machine, sequence, head, taught, archive, at)
			SELECT session_id, id, machine, sequence, head, ?, ?, ? FROM sessions WHERE id=? AND session_id=? AND head=?`, taught, m.archive.path, int64(m.o.At), row, has.ID, has.head[:])
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 { // somebody has changed it since
			continue
		}
		var records, bytes int64
		if err := conn.QueryRowContext(ctx, `SELECT count(*), sum(length(events)) FROM log WHERE session=?`, row).Scan(&records, &bytes); err != nil {
			return err
		}
		for _, query := range []string{
			`INSERT INTO archived_records (agents, place, hash) SELECT 0, id, hash FROM log WHERE session=?1 UNION ALL SELECT 1, id, hash FROM agent_log WHERE session=?1`,
			`DELETE FROM log WHERE session=?`, `DELETE FROM agent_log WHERE session=?`, `DELETE FROM sessions WHERE id=?`,
		} {
			if _, err := conn.ExecContext(ctx, query, row); err != nil {
				return err
			}
		}
		done.Sessions, done.Records, done.Bytes = done.Sessions+1, done.Records+records, done.Bytes+bytes
	}
	return nil
}

// forget drops what is cached of sessions that are not here any more.
func (m *moving) forget(rows []int64) {
	m.live.mu.Lock()
	defer m.live.mu.Unlock()
	for _, row := range rows {
		if has, ok := m.sessions[row]; ok {
			if id, err := session.ParseID(has.ID); err == nil {
				m.live.cache.sessions.Delete(id)
			}
		}
	}
}

// ArchivedTallies implements [stats.Archiver].
func (s *SQLite) ArchivedTallies(ctx context.Context, machineName string) iter.Seq2[stats.Added, error] {
	return func(yield func(stats.Added, error) bool) {
		var packed []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT a.taught FROM archived a JOIN machines m ON m.id=a.machine WHERE m.machine_name=?`, machineName)).into(&packed) {
			var list []projection.Taught
			if err == nil {
				list, err = projection.UnpackTaught(packed)
			}
			for i := range list {
				if list[i].Stats == nil || err != nil {
					continue
				}
				var added stats.Added
				if added, err = snapshots.ReadAdded(list[i].Place, list[i].Stats); err == nil && !yield(added, nil) {
					return
				}
			}
			if err != nil {
				yield(stats.Added{}, err)
				return
			}
		}
	}
}

// Archived returns an [session.ArchivedError] if the id of a session that was archived begins so, and nil if there is none.
func (s *SQLite) Archived(ctx context.Context, prefix string) error {
	return s.reader().archived(ctx, `session_id>=? AND session_id<?`, prefix, behind(prefix))
}

// elsewhere returns the error for a session that is not here: where it is, if it was archived.
func (r reader) elsewhere(ctx context.Context, id specialist.SessionID) error {
	return cmp.Or(r.archived(ctx, `session_id=?`, id.String()), error(&session.NotFoundError{What: "Session", ID: id.String()}))
}

func (r reader) archived(ctx context.Context, which string, args ...any) error {
	var is session.ArchivedError
	err := r.q.QueryRowContext(ctx, `SELECT session_id, machine_name, archive FROM archived a JOIN machines m ON m.id=a.machine WHERE `+which+` LIMIT 1`, args...).Scan(&is.ID, &is.MachineName, &is.Archive)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return translate(err)
	}
	return &is
}
