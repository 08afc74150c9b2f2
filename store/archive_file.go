package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
	"github.com/dialai/dialai/store/internal/transfer"
)

// An ArchiveFile is the file that sessions of a store are archived to, as whoever moves them there uses it. It is
// not for concurrent use. Close must be called.
type ArchiveFile struct {
	s        *SQLite
	programs *session.Programs // of those who have verified it
}

// What archives are of. Those of a database have other numbers of rows, so neither goes on in the other's.
const (
	ofFile     = "dialai archive\n"
	ofDatabase = "dialai archive of a database\n"
)

// OpenArchiveFile opens the file that sessions of a database are archived to, which has that secret. It returns [ErrNoArchive] for
// a file that is no archive of it.
func OpenArchiveFile(ctx context.Context, path string, secret []byte) (*ArchiveFile, error) {
	return openArchive(ctx, path, ofDatabase, secret)
}

func openArchive(ctx context.Context, path, of string, secret []byte) (*ArchiveFile, error) {
	sum := sha256.Sum256(append([]byte(of), secret...))
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		return nil, &OpenError{path, fmt.Errorf("there is no folder %s", filepath.Dir(path))}
	}
	a, err := OpenSQLite(ctx, path, SQLiteOptions{})
	if err != nil {
		return nil, otherFile(path, err)
	}
	var has []byte
	var sessions int64
	err = a.read.QueryRowContext(ctx, `SELECT coalesce((SELECT value FROM secrets WHERE name=?), x''), (SELECT count(*) FROM (SELECT 1 FROM log LIMIT 1))`, secretLive).Scan(&has, &sessions)
	switch {
	case err == nil && len(has) == 0 && sessions == 0: // a new one
		err = a.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, `INSERT INTO secrets (name, value) VALUES (?,?)`, secretLive, sum[:])
			return err
		}})
	case err == nil && string(has) != string(sum[:]):
		err = &OpenError{path, ErrNoArchive}
	}
	if err != nil {
		return nil, errors.Join(translate(err), a.Close())
	}
	return &ArchiveFile{s: a}, nil
}

// fitsArchive returns the error of archiving to a file that is there and is no archive, or whose folder is not there. It changes nothing.
func fitsArchive(ctx context.Context, path, of string, secret []byte) error {
	if err := sessions.mayBe(path); err != nil {
		return &OpenError{path, err}
	}
	if is, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && is.Size() == 0 {
		if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
			return &OpenError{path, fmt.Errorf("there is no folder %s", filepath.Dir(path))}
		}
		return nil
	}
	f, err := existingArchive(ctx, path, of, secret, true)
	if err != nil {
		return otherFile(path, err)
	}
	return f.Close()
}

// FitsArchive is fitsArchive of a database, which has that secret.
func FitsArchive(ctx context.Context, path string, secret []byte) error {
	return fitsArchive(ctx, path, ofDatabase, secret)
}

// An otherFileError says that a file is no archive, since it is no store.
type otherFileError struct{}

func (otherFileError) Error() string { return "it is no archive, but a file of another kind" }

func (otherFileError) Is(target error) bool { return target == ErrNoArchive }

// otherFile returns the error of opening an archive: that a file is no database is no damage of it.
func otherFile(path string, err error) error {
	if errors.Is(err, errForeign) || errors.Is(err, errNoDatabase) {
		return &OpenError{path, otherFileError{}}
	}
	return err
}

// existingArchive opens an archive that is there.
func existingArchive(ctx context.Context, path, of string, secret []byte, readOnly bool) (*ArchiveFile, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, &OpenError{path, err}
	}
	s, err := OpenSQLite(ctx, path, SQLiteOptions{ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	is, err := s.reader().identity(ctx)
	if sum := sha256.Sum256(append([]byte(of), secret...)); err == nil && string(is.ArchiveOf) != string(sum[:]) {
		err = &OpenError{path, ErrNoArchive}
	}
	if err != nil {
		return nil, errors.Join(translate(err), s.Close())
	}
	return &ArchiveFile{s: s}, nil
}

// Close closes the file.
func (f *ArchiveFile) Close() error { return f.s.Close() }

// Path returns where it is.
func (f *ArchiveFile) Path() string { return f.s.path }

// Add adds the whole logs of sessions, all or nothing: the definitions of their machines, the records, and the entries of agents,
// which name their sessions by their rows in the archive. Of those that it has already, what has come since is added. It
// returns [ErrNoArchive] where it has another record.
func (f *ArchiveFile) Add(ctx context.Context, definitions, records, agents []transfer.Row) error {
	err := f.s.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		return inTransaction(ctx, conn, func() error {
			if err := beginArchiving(ctx, conn); err != nil {
				return err
			}
			a := &adding{ctx: ctx, conn: conn, prepared: map[string]*sql.Stmt{}}
			defer a.close()
			if err := continues(ctx, conn, "log", records); err != nil {
				return err
			}
			if err := continues(ctx, conn, "agent_log", agents); err != nil {
				return err
			}
			for i := range definitions {
				r := &definitions[i]
				a.exec(`INSERT INTO machines (machine_name) VALUES (?) ON CONFLICT DO NOTHING`, r.Machine)
				a.add(transfer.Definitions, r)
			}
			for i := range records {
				r := &records[i]
				var decides any
				if r.Decides != "" {
					decides = r.Decides
				}
				a.exec(`INSERT INTO log (id, session, first, decides, at, events, hash) VALUES (?, ?, ?, `+machineOf+`, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET events=excluded.events`,
					r.Place, r.Session, r.First, decides, r.At, r.Body, r.Hash)
			}
			for i := range agents {
				r := &agents[i]
				a.exec(`INSERT INTO agent_log (id, session, seq, event, hash) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET event=excluded.event`, r.Place, r.Session, r.First, text(r.Body), r.Hash)
			}
			return a.err
		})
	}})
	return f.refused(err)
}

// beginArchiving says in an archive that what follows from its logs is not written yet. That is taken back when it is.
func beginArchiving(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `INSERT OR REPLACE INTO secrets (name, value) VALUES (?, x'01')`, secretBegun)
	return err
}

// refused says which file is no archive of the store.
func (f *ArchiveFile) refused(err error) error {
	if errors.Is(err, ErrNoArchive) {
		err = &OpenError{f.s.path, err}
	}
	return err
}

// continues returns [ErrNoArchive] if a log of the archive has another record than one of the rows, or one more of their sessions.
func continues(ctx context.Context, conn *sql.Conn, log string, rows []transfer.Row) error {
	type place struct {
		session int64
		hash    string
	}
	want, of := map[int64]place{}, map[int64]bool{}
	for i := range rows {
		want[rows[i].Place], of[rows[i].Session] = place{rows[i].Session, string(rows[i].Hash)}, true
	}
	sessions, err := json.Marshal(slices.Collect(maps.Keys(of)))
	if err != nil {
		return err
	}
	places, err := json.Marshal(slices.Collect(maps.Keys(want)))
	if err != nil {
		return err
	}
	var id int64
	var session int64
	var hash []byte
	return each(scan(conn.QueryContext(ctx, `SELECT l.id, l.session, l.hash FROM json_each(?1) c CROSS JOIN `+log+` l ON l.session=c.value
		UNION SELECT l.id, l.session, l.hash FROM json_each(?2) c CROSS JOIN `+log+` l ON l.id=c.value`, string(sessions), string(places))).into(&id, &session, &hash), func() error {
		if want[id] != (place{session, string(hash)}) {
			return ErrNoArchive
		}
		return nil
	})
}

// Verify writes what follows from the logs of the archive, and checks all of it. It returns the names of
// its machines, and a [session.CorruptError] if it is damaged.
func (f *ArchiveFile) Verify(ctx context.Context, o *ArchiveOptions) (machines []string, err error) {
	damaged := func(r Report) error {
		if r.Difference == nil {
			return nil
		}
		return &session.CorruptError{What: "the archive " + f.s.path, Problem: r.Difference.Error()}
	}
	f.s.OnProgress(o.Checked)
	report, err := f.s.Rebuild(ctx, o.Programs, RebuildOptions{AcceptCut: true}) // places are missing: they are elsewhere
	if err = errors.Join(err, damaged(report)); err != nil {
		return nil, err
	}
	report, err = f.s.Verify(ctx, o.Programs)
	if err = errors.Join(err, damaged(report)); err != nil {
		return nil, err
	}
	f.programs = o.Programs
	var name string
	err = each(scan(f.s.read.QueryContext(ctx, `SELECT machine_name FROM machines WHERE id IN (SELECT machine FROM sessions) ORDER BY machine_name`)).into(&name), func() error {
		machines = append(machines, name)
		return nil
	})
	return machines, err
}

// An ArchivedSession is what the archive has of a session.
type ArchivedSession struct {
	ID     string
	Head   session.Hash // of its last record
	Taught []byte       // what followed from its log, packed
	Agents int64        // entries of agents
}

// Session returns what the archive, which is verified, has of the session of a row; ok is false if it has none.
func (f *ArchiveFile) Session(ctx context.Context, row int64) (is ArchivedSession, ok bool, err error) {
	var head []byte
	err = f.s.read.QueryRowContext(ctx, `SELECT session_id, head, (SELECT count(*) FROM agent_log a WHERE a.session=s.id) FROM sessions s WHERE id=?`, row).Scan(&is.ID, &head, &is.Agents)
	if errors.Is(err, sql.ErrNoRows) {
		return is, false, nil
	}
	if err != nil {
		return is, false, translate(err)
	}
	copy(is.Head[:], head)
	is.Taught, err = f.taught(ctx, row)
	return is, true, err
}

// taught returns what followed from the log of a session, packed.
func (f *ArchiveFile) taught(ctx context.Context, row int64) ([]byte, error) {
	r := f.s.reader()
	folder := &session.Folder{Programs: f.programs, Definition: func(digest string) ([]byte, error) { return r.definition(ctx, digest) }}
	watch := stats.On(folder)
	var list []projection.Taught
	var place int64
	var packed sql.RawBytes
	err := each(scan(f.s.read.QueryContext(ctx, `SELECT id, events FROM log WHERE session=? ORDER BY first`, row)).into(&place, &packed), func() error {
		text, err := pack.Unpack(nil, packed)
		if err != nil {
			return err
		}
		events, err := folder.Add(text)
		if err != nil {
			return err
		}
		t, ok := projection.TaughtBy(place, events)
		if added := watch.Take(); !added.Empty() {
			t.Stats, ok = snapshots.Added(place, added), true
		}
		if ok {
			list = append(list, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return projection.PackTaught(list)
}
