package store

import (
	"cmp"
	"context"
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
	"github.com/dialai/dialai/store/internal/archive"
	"github.com/dialai/dialai/store/internal/erase"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// How sessions are moved from a file to another one (store/internal/archive says in which steps).

// What is archived, and what was.
type (
	ArchiveOptions = archive.Options
	Archived       = archive.Archived
)

// ErrArchiving is the error of archiving a store that another process archives, or erases in.
var ErrArchiving = erase.ErrArchiving

// ErrNoArchive is the error of archiving into a file that is no archive of the store, or that has other
// records than it at the same places: the store was set back to a backup since.
var ErrNoArchive = archive.ErrNone

// Archivable returns what [SQLite.Archive] would move, and moves nothing. The errors are those of that.
func (s *SQLite) Archivable(ctx context.Context, o ArchiveOptions) (a Archived, err error) {
	o.Fill()
	if err := s.mayArchive(ctx, &o); err != nil {
		return a, err
	}
	secret, err := s.Secret(ctx)
	if err == nil && o.To != "" {
		err = fitsArchive(ctx, o.To, ofFile, secret)
	}
	if err != nil {
		return a, err
	}
	return s.archivable(ctx, &o)
}

// mayArchive returns an error if there is no machine as the options name, or if they name the store itself.
func (s *SQLite) mayArchive(ctx context.Context, o *ArchiveOptions) error {
	if there, err := os.Stat(o.To); err == nil {
		if live, err := os.Stat(s.path); err == nil && os.SameFile(there, live) {
			return &OpenError{o.To, ErrSame}
		}
	}
	known := o.MachineName == ""
	if !known {
		if err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM machines WHERE machine_name=?)`, o.MachineName).Scan(&known); err != nil {
			return translate(err)
		}
	}
	if !known {
		return &session.NotFoundError{What: "Machine", ID: o.MachineName}
	}
	return nil
}

func (s *SQLite) archivable(ctx context.Context, o *ArchiveOptions) (a Archived, err error) {
	where, args := archivable(o)
	err = s.read.QueryRowContext(ctx, `WITH old AS (SELECT s.id FROM sessions s WHERE `+where+`), kept AS (`+newest+`)
		SELECT count(DISTINCT o.id), count(l.id), coalesce(sum(length(l.events)), 0), (SELECT count(*) FROM old WHERE id IN kept)
		FROM old o JOIN log l ON l.session=o.id WHERE o.id NOT IN kept`, args...).Scan(&a.Sessions, &a.Records, &a.Bytes, &a.Kept)
	return a, translate(err)
}

// newest are the rows of the sessions that stay, whatever they are: see the top.
const newest = `SELECT max(id) FROM sessions UNION ALL SELECT * FROM (SELECT session FROM log ORDER BY id DESC LIMIT 1) UNION ALL SELECT * FROM (SELECT session FROM agent_log ORDER BY id DESC LIMIT 1)`

// archivable returns the condition that sessions s are to be archived, but for those that stay.
func archivable(o *ArchiveOptions) (condition string, args []any) {
	condition = `s.status NOT IN ('running', 'needs_human') AND s.updated_at<? AND s.reviews=0 AND s.status IN (` + strings.TrimSuffix(strings.Repeat("?,", len(o.Statuses)), ",") + `)`
	args = append(args, int64(o.Before))
	for _, status := range o.Statuses {
		args = append(args, status.String())
	}
	if o.MachineName != "" {
		condition += ` AND s.machine=(SELECT id FROM machines WHERE machine_name=?)`
		args = append(args, o.MachineName)
	}
	return condition, args
}

// Archive moves the logs of sessions that have ended to another file, while others read and write the
// store. Interrupted, it can be run again. It returns [ErrNoArchive] for a file that is no archive of this store, an [OpenError] for
// one in a folder that does not exist, a [session.NotFoundError] for the name of no machine, [ErrArchiving] if another process does the same, and [session.CorruptError] if the archive does not verify; nothing is deleted
// then.
func (s *SQLite) Archive(ctx context.Context, o ArchiveOptions) (done Archived, err error) {
	o.Fill()
	if err := s.mayArchive(ctx, &o); err != nil {
		return done, err
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
	all, err := s.archivable(ctx, &o)
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
		done, err = archive.Run(ctx, &moving{s, a, &o}, &o, a.Path(), all)
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
func (s *SQLite) openArchive(ctx context.Context, path string) (*ArchiveFile, error) {
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	return openArchive(ctx, path, ofFile, secret)
}

// A moving is one run of Archive.
type moving struct {
	live *SQLite
	*ArchiveFile
	o *ArchiveOptions
}

// Next implements [archive.Store].
func (m *moving) Next(ctx context.Context, after int64) (rows []int64, err error) {
	where, args := archivable(m.o)
	var row int64
	err = each(scan(m.live.read.QueryContext(ctx, `SELECT s.id FROM sessions s WHERE s.id>? AND `+where+` AND s.id NOT IN (`+newest+`) ORDER BY s.id LIMIT ?`,
		append(append([]any{after}, args...), m.o.Batch)...)).into(&row), func() error { rows = append(rows, row); return nil })
	return rows, err
}

// Copy implements [archive.Store]. The connection that writes the archive reads the store.
func (m *moving) Copy(ctx context.Context, rows []int64) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return m.refused(m.s.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) (err error) {
		if _, err := conn.ExecContext(ctx, `ATTACH ? AS live`, "file:"+escapePath(m.live.path)+"?mode=ro"); err != nil {
			return err
		}
		defer func() {
			_, detached := conn.ExecContext(context.WithoutCancel(ctx), `DETACH live`)
			err = errors.Join(err, detached)
		}()
		return inTransaction(ctx, conn, func() error { return copySessions(ctx, conn, string(list)) })
	}}))
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
	if err := beginArchiving(ctx, conn); err != nil {
		return err
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

// Verify implements [archive.Store].
func (m *moving) Verify(ctx context.Context) ([]string, error) { return m.ArchiveFile.Verify(ctx, m.o) }

// Count implements [archive.Store].
func (m *moving) Count(ctx context.Context, machineName string) error {
	return stats.NewFollower(m.live, m.o.Programs).Keep(ctx, machineName)
}

// Left implements [archive.Store].
func (m *moving) Left(ctx context.Context) (Archived, error) { return m.live.archivable(ctx, m.o) }

// Delete implements [archive.Store].
func (m *moving) Delete(ctx context.Context, rows []int64, done Archived) (Archived, error) {
	has := map[int64]ArchivedSession{} // looked up before the store is locked
	for _, row := range rows {
		is, ok, err := m.Session(ctx, row)
		if err != nil {
			return done, err
		}
		if ok { // else it ended since the logs were copied
			has[row] = is
		}
	}
	var batch Archived
	err := m.live.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		batch = done
		return inTransaction(ctx, conn, func() error { return m.deleteBatch(ctx, conn, has, &batch) })
	}})
	if err != nil {
		return done, err
	}
	m.forget(has)
	return batch, nil
}

// deleteBatch deletes some sessions, and writes down where they went.
func (m *moving) deleteBatch(ctx context.Context, conn *sql.Conn, list map[int64]ArchivedSession, done *Archived) error {
	for _, row := range slices.Sorted(maps.Keys(list)) {
		has := list[row]
		result, err := conn.ExecContext(ctx, `INSERT INTO archived (session_id, row, machine, sequence, head, taught, archive, at)
			SELECT session_id, id, machine, sequence, head, ?, ?, ? FROM sessions
			WHERE id=? AND session_id=? AND head=? AND (SELECT count(*) FROM agent_log a WHERE a.session=sessions.id)=?`, has.Taught, m.Path(), int64(m.o.At), row, has.ID, has.Head[:], has.Agents)
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
			`DELETE FROM log WHERE session=?`, `DELETE FROM agent_log WHERE session=?`, dropSnapshot, `DELETE FROM sessions WHERE id=?`,
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
func (m *moving) forget(gone map[int64]ArchivedSession) {
	m.live.mu.Lock()
	defer m.live.mu.Unlock()
	for _, is := range gone {
		if id, err := session.ParseID(is.ID); err == nil {
			m.live.cache.sessions.Delete(id)
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
