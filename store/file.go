package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/dialai/dialai/session"
)

// One SQLite file. Two pools are open: one connection that writes (committer.go) and a few
// that read, which see what was committed last. The file has a write-ahead log and every
// commit is synced (synchronous FULL), so a commit that returned is on disk.
//
// Opening goes like this: an empty file is made that only its owner can read; the
// writer connects; the migrations that are missing are applied, under a lock between
// processes, each in a transaction of its own; then the readers connect. A file of
// another program, of another kind, of a newer version, or made by other migrations than
// ours is refused. A file that may only be read is opened without locks if its lock file
// cannot be made, but never beside a write-ahead log, whose content would be missing.
//
// translate gives the errors of SQLite the names by which callers tell them apart.

// A file is what all that is kept in SQLite has in common.
type file struct {
	kind *kind
	path string
	how  access  // the connections were opened
	db   *sql.DB // the one writer
	read *sql.DB
	out  *committer
}

// A kind of file is known by its application id, and made by migrations of its own.
type kind struct {
	name          string // of what is in it
	applicationID int64
	dir           string // of its migrations
	recordedFrom  int64  // the first schema in which files say which migrations made them
	// after does what a migration has to do that is no SQL, in its transaction. made are
	// the migrations that made the file before any of this, and told is told how far what takes long is.
	after func(ctx context.Context, tx *sql.Tx, m migration, all, made []migration, told func(part string, done, of int64)) error
	// before does what takes more than one transaction, before the migration of a version; what
	// it had done when it was interrupted it does not do again.
	before map[int64]func(ctx context.Context, db *sql.DB, told func(part string, done, of int64)) error
}

// open opens the file at path for what is to be written with the statements that prepare
// prepares.
func (s *file) open(ctx context.Context, o SQLiteOptions, prepare func(*preparer)) error {
	path := s.path
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if !o.ReadOnly {
		if err := s.kind.mayBe(path); err != nil {
			return &OpenError{path, err}
		}
		if err := makeFile(path); err != nil {
			return &OpenError{path, err}
		}
	}
	if err := s.openPools(ctx, o); err != nil {
		return &OpenError{path, err}
	}
	watched := s.path
	if o.ReadOnly {
		watched = "" // nothing is committed
	}
	var err error
	if s.out, err = newCommitter(ctx, s.db, watched, o.Observe, prepare); err != nil {
		s.read.Close()
		s.db.Close()
		return &OpenError{path, translate(err)}
	}
	return nil
}

// close waits for the commits under way and closes the file.
func (s *file) close() error {
	return errors.Join(s.out.close(), s.read.Close(), s.db.Close())
}

// openPools opens the connections, after the one that writes has migrated the file.
func (s *file) openPools(ctx context.Context, o SQLiteOptions) (err error) {
	s.path = resolved(s.path)
	how := access{busy: o.BusyTimeout, readOnly: o.ReadOnly, vfs: o.vfs}
	if s.db, err = openPool(s.path, how, true); err != nil {
		return err
	}
	if _, err = s.prepare(ctx, o); o.ReadOnly && errors.Is(err, ErrReadOnly) {
		how.immutable = true
		err = s.reopenImmutable(ctx, o, how, err)
	}
	if err == nil {
		s.path = resolved(s.path) // a link to a file that there was not
		s.how = how
		s.read, err = openPool(s.path, how, false)
	}
	if err != nil {
		s.db.Close()
	}
	return err
}

// reopenImmutable opens a file that SQLite refused because it cannot make its lock
// file beside it. Without locks a write-ahead log would not be seen, so there must
// be none.
func (s *file) reopenImmutable(ctx context.Context, o SQLiteOptions, how access, refused error) (err error) {
	if wal, err := os.Stat(s.path + "-wal"); err == nil && wal.Size() > 0 {
		return fmt.Errorf("%w, and %w", refused, ErrUnreadLog)
	}
	s.db.Close()
	if s.db, err = openPool(s.path, how, true); err == nil {
		_, err = s.prepare(ctx, o)
	}
	return err
}

// resolved follows symbolic links, as SQLite does: what lies beside the file is
// beside the file they lead to.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// mayBe returns an error if a path is that of a file that belongs to another one beside it, and would harm that.
func (k *kind) mayBe(path string) error {
	belong := []string{"-wal", "-shm", "-journal", ".owners", ".rebuild", ".control.key"}
	if k != &controls {
		belong = append(belong, ".control")
	}
	for _, suffix := range belong {
		of, is := strings.CutSuffix(path, suffix)
		if !is {
			continue
		}
		if there, err := os.Stat(of); err == nil && there.Mode().IsRegular() {
			return fmt.Errorf("a file of this name belongs to %s, beside it: name another one", of)
		}
	}
	return nil
}

// makeFile makes an empty file that only its owner can read, and the directories
// above it. SQLite would let everybody read it, and gives the files beside it the
// mode that it has. It leaves a file that exists alone, but for one that is empty and that
// everybody can read: that is a new one, too.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return errors.New("it is a directory, not a file")
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is not a regular file, as a device or a pipe is not")
	}
	if path == "" || path == ":memory:" { // each of SQLite's connections would see a database of its own
		return errors.New("it is not the path of a file")
	}
	if is, err := os.Stat(path); err == nil && is.Size() == 0 && is.Mode().Perm()&0o007 != 0 {
		_ = os.Chmod(path, 0o600) // it may be another user's, who lets everybody write to it
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil //nolint:nilerr // SQLite says what is wrong, if anything is
	}
	return f.Close()
}

// access is how connections are opened.
type access struct {
	busy                time.Duration
	readOnly, immutable bool
	scratch             bool // a file that nobody needs after a crash
	vfs                 string
}

// readers is how many connections read, of which one looks at versions alone.
const readers = 5

func openPool(path string, how access, writer bool) (*sql.DB, error) {
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", how.busy.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	q.Add("_pragma", "synchronous("+map[bool]string{false: "FULL", true: "OFF"}[how.scratch]+")")
	q.Set("_txlock", "immediate")
	switch {
	case how.immutable:
		q.Set("immutable", "1")
	case how.readOnly:
		q.Set("mode", "ro")
	}
	if how.vfs != "" {
		q.Set("vfs", how.vfs)
	}
	u := url.URL{Scheme: "file", Opaque: escapePath(path), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err == nil {
		open := readers
		if writer {
			open = 1
		}
		db.SetMaxOpenConns(open)
		db.SetMaxIdleConns(open) // opening one reads the whole schema
	}
	return db, err
}

// escapePath escapes what a SQLite URI gives a meaning of its own.
func escapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// prepare migrates the file. It tries again while others hold it, since SQLite
// does not wait by itself while a new file becomes one with a write-ahead log.
func (s *file) prepare(ctx context.Context, o SQLiteOptions) ([]string, error) {
	for start := time.Now(); ; {
		applied, err := s.migrate(ctx, o)
		if err = translate(err); !errors.Is(err, session.ErrBusy) || time.Since(start) > o.BusyTimeout {
			return applied, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// migrate applies the migrations that are missing, each in a transaction of its
// own, under a lock that keeps other processes from doing the same.
func (s *file) migrate(ctx context.Context, o SQLiteOptions) ([]string, error) {
	all, err := s.kind.migrations()
	if err != nil {
		return nil, err
	}
	current, err := s.fits(ctx, all)
	switch {
	case err != nil || o.ReadOnly && current == len(all):
		return nil, err
	case o.ReadOnly:
		return nil, errors.New("the file has to be migrated, but it is opened for reading only")
	}
	if _, err := s.db.ExecContext(ctx, "PRAGMA journal_mode(WAL)"); err != nil || current == len(all) { // it is ours: another program's stays as it is
		return nil, err
	}
	if err := os.MkdirAll(s.ownerDir(), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.ownerDir(), "migrating")) // it stays: to remove it would let two in
	if ok, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil || !ok {
		return nil, fmt.Errorf("waiting for another migration: %w", err)
	}
	defer lock.Unlock()
	if current, err = s.fits(ctx, all); err != nil { // somebody else may have done it meanwhile
		return nil, err
	}
	told := o.Migrating
	if told == nil {
		told = func(string, int64, int64) {}
	}
	return s.kind.apply(ctx, s.db, all, current, told)
}

// fits returns how many of the migrations have made the file. It refuses a file of
// another program, of a newer version, and one that other migrations have made. All is
// read as of one moment: another process may be migrating the file.
func (s *file) fits(ctx context.Context, all []migration) (int, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return 0, err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) // it has only read
	current, err := s.schemaVersion(ctx, conn)
	switch {
	case err != nil:
		return 0, err
	case current > int64(len(all)):
		return 0, &NewerError{current, int64(len(all))}
	case current >= s.kind.recordedFrom:
		err = checkRecorded(ctx, conn, all[:current])
	}
	return int(current), err
}

// schemaVersion returns the newest migration the file has, 0 if it is empty. It
// refuses files of other programs.
func (s *file) schemaVersion(ctx context.Context, q querier) (int64, error) {
	var id, tables int64
	if err := q.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return 0, err
	}
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return 0, err
	}
	switch {
	case tables == 0:
		return 0, nil
	case s.kind.applicationID != id && slices.ContainsFunc(kinds, func(k *kind) bool { return k.applicationID == id }):
		return 0, fmt.Errorf("it does not hold %s, but is another file of dialai", s.kind.name)
	case id != s.kind.applicationID:
		var ours int64
		err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&ours)
		if err != nil || ours == 0 {
			return 0, errors.Join(errForeign, err)
		}
	}
	var version sql.NullInt64
	err := q.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version)
	return version.Int64, err
}

// Status says what the file is, and how much there is in it.
func (s *SQLite) Status(ctx context.Context) (is session.StoreStatus, err error) {
	is.Kind = "sqlite"
	err = s.read.QueryRowContext(ctx, `SELECT (SELECT max(version_id) FROM goose_db_version WHERE is_applied), page_count * page_size
		FROM pragma_page_count(), pragma_page_size()`).Scan(&is.Schema, &is.SizeBytes)
	if err != nil {
		return is, translate(err)
	}
	if is.Place, err = s.Place(ctx); err != nil {
		return is, err
	}
	if is.Epoch, err = s.Epoch(ctx); err != nil {
		return is, err
	}
	live, err := s.Live(ctx)
	is.CountLive(live)
	return is, err
}

// An OpenError says why a file cannot be used as a store.
type OpenError struct {
	Path string
	Err  error
}

func (e *OpenError) Error() string { return fmt.Sprintf("store %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// A NewerError says that a newer version of this program has migrated the file.
type NewerError struct{ Has, Knows int64 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("it was written by a newer version of dialai (schema %d, this program knows %d); update the program or use another store", e.Has, e.Knows)
}

// Errors that callers ask for by name.
var (
	// ErrFull: there is no room left on the disk. What was committed before is
	// safe.
	ErrFull = errors.New("the disk is full")
	// ErrReadOnly: the file or its directory cannot be written.
	ErrReadOnly = errors.New("the store cannot be written")
	// ErrUnreadLog: a file that is opened for reading only has a write-ahead log,
	// and what is needed to read that cannot be written beside it.
	ErrUnreadLog = errors.New("what is in its write-ahead log cannot be read without that")

	errForeign    = errors.New("it is a SQLite database of another program")
	errNoDatabase = &session.CorruptError{What: "the file", Problem: "it is not a SQLite database"}
)

// translate gives the errors of SQLite the names that callers know.
func translate(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) {
		if err != nil && strings.HasPrefix(err.Error(), "sql: Scan error") { // has no type; tables are STRICT, so only damage comes to it
			return &session.CorruptError{What: "the file", Problem: strings.TrimPrefix(err.Error(), "sql: ")}
		}
		return err
	}
	switch e.Code() & 0xff {
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process holds it", session.ErrBusy)
	case sqlitelib.SQLITE_FULL:
		return fmt.Errorf("%w (%w)", ErrFull, err)
	case sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_PERM:
		return fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case sqlitelib.SQLITE_IOERR:
		return fmt.Errorf("the disk failed: what was said to be stored is, run the command again, and dialai store verify if it goes on (%w)", err)
	case sqlitelib.SQLITE_NOTADB:
		return errNoDatabase
	case sqlitelib.SQLITE_CORRUPT:
		return &session.CorruptError{What: "the file", Problem: err.Error()}
	}
	return err
}
