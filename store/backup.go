package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// A backup is a file as it was at one moment, made while others read and write it: SQLite copies its
// pages under one read transaction, to a file beside the one that is wanted, which has its name
// only when it is whole and on disk.
//
// A backup is not written over a store: it takes the place of its file, and what was there is kept
// under another name. Whoever has the old file open commits nothing any more (watch.go), so nobody goes
// on from what is gone. What has places and times of a store outside of it (cursors of
// readers and of webhooks) could be ahead of one that was set back: so it has a new epoch.

// Backup writes the file as it is to path, where nothing may be yet. told, unless nil, is told now and
// then how many of how many pages are copied. Others can read and write meanwhile; what they commit
// is not in it. The error wraps fs.ErrExist if there is a file, and ErrFull if the disk is full.
func (s *file) Backup(ctx context.Context, path string, told func(done, of int64)) error {
	if _, err := os.Lstat(path); err == nil {
		return &OpenError{path, os.ErrExist}
	}
	if err := s.kind.mayBe(path); err != nil {
		return &OpenError{path, err}
	}
	return s.copyTo(ctx, path, told)
}

// copyTo makes a copy that has its name only when it is whole.
func (s *file) copyTo(ctx context.Context, path string, told func(done, of int64)) (err error) {
	part := path + ".part"
	if err := removeStore(part); err != nil { // of one that was interrupted
		return &OpenError{path, err}
	}
	if err := makeFile(part); err != nil {
		return &OpenError{path, err}
	}
	defer func() {
		if err != nil {
			_ = removeStore(part)
		}
	}()
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Close()
	err = conn.Raw(func(of any) error { return copyPages(ctx, of, part, told) })
	if err := translate(err); err != nil {
		return err
	}
	if err := syncDir(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return &OpenError{path, err}
	}
	return syncDir(path)
}

// copyPages copies the file of a connection. As long as it is in a transaction each step sees the same pages.
func copyPages(ctx context.Context, of any, to string, told func(done, of int64)) (err error) {
	conn := of.(interface {
		NewBackup(to string) (*sqlite.Backup, error)
		driver.ExecerContext
	})
	if _, err := conn.ExecContext(ctx, `BEGIN`, nil); err != nil {
		return err
	}
	defer func() {
		_, undone := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`, nil)
		err = errors.Join(err, undone)
	}()
	if _, err := conn.ExecContext(ctx, `SELECT count(*) FROM sqlite_schema`, nil); err != nil { // from here on
		return err
	}
	copied, err := conn.NewBackup("file:" + escapePath(to))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; err = errors.Join(err, ctx.Err()) {
		if more, err = copied.Step(2048); told != nil {
			told(int64(copied.PageCount()-copied.Remaining()), int64(copied.PageCount()))
		}
	}
	return errors.Join(err, copied.Finish())
}

// RestoreOptions say what a backup is put in the place of.
type RestoreOptions struct {
	Path        string    // of the store, which need not be there
	At          time.Time // under which what is there is kept
	Control     *Control  // the backup of a server's control file; nil leaves the one that is there alone
	ControlPath string    // of that file; "" is [ControlPath]
}

// A Restored says what became of a file.
type Restored struct {
	Path string `json:"path"`
	Kept string `json:"kept,omitempty"` // where what was there is now; "" if nothing was
}

// A Restoration says what became of a store, and of a server's control file, if that was restored too.
type Restoration struct {
	Restored
	Control *Restored `json:"control,omitempty"`
}

// ErrSame is the error of restoring a store from itself, or archiving it there.
var ErrSame = errors.New("it is the store itself")

// Restore puts a copy of the backup s in the place of a store, which has a new epoch then. What is there
// is kept beside it. Nothing is changed before both copies are whole. It returns [ErrDriven] if a process carries
// the store's sessions on, and holds the lock of [SQLite.DriverLock] meanwhile; other processes that have the
// store open get [ErrReplaced]. Interrupted, it can be done again.
func (s *SQLite) Restore(ctx context.Context, o RestoreOptions) (done Restoration, err error) {
	path, beside := resolved(o.Path), resolved(cmp.Or(o.ControlPath, ControlPath(o.Path)))
	if there, err := os.Stat(path); err == nil {
		if from, err := os.Stat(s.path); err == nil && os.SameFile(there, from) {
			return done, ErrSame
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return done, &OpenError{path, err}
	}
	lock, err := (&file{path: path}).lock("driving")
	if err != nil {
		return done, err
	}
	held, err := lock.TryLock()
	if err != nil {
		return done, err
	}
	if !held {
		return done, ErrDriven
	}
	defer lock.Unlock()
	defer func() { err = errors.Join(err, removeStore(path+restoring)) }()
	if err := s.copyFresh(ctx, path, newEpoch); err != nil {
		return done, err
	}
	if o.Control != nil { // first, so that no cursor in it is ahead of the store
		defer func() { err = errors.Join(err, removeStore(beside+restoring)) }()
		if err := o.Control.copyFresh(ctx, beside, func(context.Context, *sql.DB) error { return nil }); err != nil {
			return done, err
		}
		control, err := putInPlace(beside, o.At)
		if err != nil {
			return done, err
		}
		done.Control = &control
	}
	done.Restored, err = putInPlace(path, o.At)
	return done, err
}

// restoring is what stands behind the name of a copy that is to be put in the place of a file.
const restoring = ".restoring"

// copyFresh copies the file to beside path, and changes the copy.
func (s *file) copyFresh(ctx context.Context, path string, change func(context.Context, *sql.DB) error) error {
	if err := removeStore(path + restoring); err != nil { // of one that was interrupted
		return &OpenError{path, err}
	}
	if err := s.copyTo(ctx, path+restoring, nil); err != nil {
		return err
	}
	db, err := openPool(path+restoring, access{busy: s.how.busy}, true)
	if err != nil {
		return &OpenError{path, err}
	}
	if err := errors.Join(change(ctx, db), db.Close()); err != nil { // who closes it leaves one file
		return &OpenError{path, translate(err)}
	}
	return nil
}

// putInPlace gives a copy the name of the file that it is for.
func putInPlace(path string, at time.Time) (done Restored, err error) {
	done.Path = path
	if _, err := os.Lstat(path); err == nil {
		done.Kept = path + ".replaced-" + at.UTC().Format("20060102T150405Z")
		if err := keep(path, done.Kept); err != nil {
			return Restored{}, &OpenError{path, err}
		}
	}
	if err := os.Rename(path+restoring, path); err != nil {
		return Restored{}, &OpenError{path, err}
	}
	return done, syncDir(path)
}

// keep gives a store another name, under which it is whole before the old one lacks anything.
func keep(path, kept string) error {
	for _, beside := range []string{"", "-wal"} {
		if err := os.Link(path+beside, kept+beside); err != nil && !(beside != "" && os.IsNotExist(err)) {
			return err
		}
	}
	if err := syncDir(path); err != nil {
		return err
	}
	for _, beside := range []string{"-wal", "-shm"} { // SQLite would take them for those of the new file
		if err := os.Remove(path + beside); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// newEpoch has the places of a file told from those of every other.
func newEpoch(ctx context.Context, db *sql.DB) error {
	value := make([]byte, 16)
	rand.Read(value) // never fails
	_, err := db.ExecContext(ctx, `INSERT OR REPLACE INTO secrets (name, value) VALUES (?,?)`, secretEpoch, value)
	return err
}

// removeStore removes a file and what SQLite keeps beside it.
func removeStore(path string) error {
	for _, beside := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// syncDir has the names in a file's directory survive a crash.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil && !errors.Is(err, os.ErrInvalid) {
		dir.Close()
		return fmt.Errorf("writing the directory of %s: %w", path, err)
	}
	return dir.Close()
}
