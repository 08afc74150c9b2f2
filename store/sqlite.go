package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// The sessions of an engine in one SQLite file (file.go).

// SQLite keeps sessions in one file. Several processes may use the file at once.
// A commit is on disk, fsync included, when it returns; commits that wait
// together share one fsync. Close must be called.
type SQLite struct {
	file
	stmts   statements // of out
	load    *sql.Stmt  // the query of Load
	records *sql.Stmt  // recordsQuery
	lessons *sql.Stmt  // the query of Lessons
	keeper  snapshots.Keeper
	// snapshot is the query of kept.
	snapshot *sql.Stmt
	look     look

	mu       sync.Mutex
	cache    cache
	progress func(done, of int64) // of checking
	plain    bool                 // events are stored as JSON
}

var (
	_ session.Store        = (*SQLite)(nil)
	_ session.LedgerKeeper = (*SQLite)(nil)
)

// SQLiteOptions say how a file is opened. The zero value is fine.
type SQLiteOptions struct {
	// BusyTimeout is how long to wait for another process that holds the file;
	// 0 means 5 s.
	BusyTimeout time.Duration
	// ReadOnly refuses to make, migrate or write the file. A file in a directory
	// that cannot be written is read without locks, if it has no write-ahead log:
	// nobody may write it meanwhile.
	ReadOnly bool

	// Observe is told of each transaction that writes: of how many commits, how long it took,
	// and why it failed. It must not block; nil is told nothing.
	Observe func(commits int, took time.Duration, err error)

	// Migrating is told now and then, while a file of an older version is brought up to date, what is being
	// done that takes as long as the file is large, such as "packing the log", and with how many of how many
	// rows: at the end of each part with all. It must return soon; nil is told nothing.
	Migrating func(part string, done, of int64)

	// Plain stores the events of records as JSON, where they are packed else: for who wants to read
	// the file with other programs. Either is read.
	Plain bool

	// Copy opens also a store into which a copy of another one is not finished: see [SQLite.Copying].
	Copy bool

	vfs string // of SQLite, for tests; empty for that of the operating system
}

// OpenSQLite opens a file, made (for its owner alone) and migrated if need be. It
// refuses a file that is no SQLite database, one that belongs to another program,
// and one that a newer version has migrated.
func OpenSQLite(ctx context.Context, path string, o SQLiteOptions) (*SQLite, error) {
	s := &SQLite{file: file{kind: &sessions, path: path}, cache: newCache(), plain: o.Plain}
	if err := s.open(ctx, o, s.stmts.prepare); err != nil {
		return nil, err
	}
	s.refuseCopied(&s.stmts.copying)
	s.keeper.Write = s.keepSnapshot
	var err error
	if s.load, err = s.read.PrepareContext(ctx, loadQuery); err == nil {
		s.records, err = s.read.PrepareContext(ctx, recordsQuery)
	}
	if err == nil {
		s.lessons, err = s.read.PrepareContext(ctx, `SELECT id, lesson, at FROM lessons WHERE id>? ORDER BY id`)
	}
	if err == nil {
		s.snapshot, err = s.read.PrepareContext(ctx, keptSnapshot)
	}
	if err == nil {
		err = s.look.open(ctx, s.read)
	}
	if err == nil && !o.Copy {
		err = s.whole(ctx)
	}
	if err != nil {
		s.look.close()
		s.close()
		return nil, &OpenError{path, translate(err)}
	}
	return s, nil
}

// Close waits for the commits under way and closes the file. Whoever closes it
// last leaves one file, without a write-ahead log. The error wraps ErrReplaced if
// something was committed and the file is not there any more.
func (s *SQLite) Close() error {
	s.keeper.Close()
	err := s.out.close() // before what reads is closed, for it may be the last
	s.look.close()
	return errors.Join(err, s.load.Close(), s.records.Close(), s.lessons.Close(), s.snapshot.Close(), s.close())
}

// Path returns the path of the file, to which symbolic links were followed.
func (s *SQLite) Path() string { return s.path }

// Migrate brings a file up to date and returns the names of the migrations that
// were applied. Opening does the same.
func Migrate(ctx context.Context, path string, o SQLiteOptions) ([]string, error) {
	if err := sessions.mayBe(path); err != nil {
		return nil, &OpenError{path, err}
	}
	if err := makeFile(path); err != nil {
		return nil, &OpenError{path, err}
	}
	o.BusyTimeout = cmp.Or(o.BusyTimeout, 5*time.Second)
	db, err := openPool(path, access{busy: o.BusyTimeout}, true)
	if err != nil {
		return nil, &OpenError{path, err}
	}
	defer db.Close()
	applied, err := (&file{kind: &sessions, path: resolved(path), db: db}).prepare(ctx, o)
	if err != nil {
		return nil, &OpenError{path, err}
	}
	return applied, nil
}
