package store

import (
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

// A Restored says what became of a file.
type Restored struct {
	Path string `json:"path"`
	Kept string `json:"kept,omitempty"` // where what was there is now; "" if nothing was
}

// Restore puts a copy of the backup s in the place of the store at path, which has a new epoch then. What
// is there is kept beside it, under the time. It returns [ErrDriven] if a process carries its sessions on;
// other processes that have it open get [ErrReplaced]. Interrupted, it can be done again.
func (s *SQLite) Restore(ctx context.Context, path string, at time.Time) (Restored, error) {
	path = resolved(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Restored{}, &OpenError{path, err}
	}
	lock, err := (&file{path: path}).lock("driving")
	if err != nil {
		return Restored{}, err
	}
	held, err := lock.TryLock()
	if err != nil {
		return Restored{}, err
	}
	if !held {
		return Restored{}, ErrDriven
	}
	defer lock.Unlock()
	return s.replace(ctx, path, at, newEpoch)
}

// Restore puts a copy of the backup c in the place of the file at path, as [SQLite.Restore] does; but that
// of the store comes last, and with it the lock.
func (c *Control) Restore(ctx context.Context, path string, at time.Time) (Restored, error) {
	return c.replace(ctx, resolved(path), at, func(context.Context, *sql.DB) error { return nil })
}

// replace copies the file to beside path, changes the copy, and puts it in the place of what is there.
func (s *file) replace(ctx context.Context, path string, at time.Time, change func(context.Context, *sql.DB) error) (done Restored, err error) {
	fresh := path + ".restoring"
	if err := removeStore(fresh); err != nil {
		return done, &OpenError{path, err}
	}
	defer func() { err = errors.Join(err, removeStore(fresh)) }()
	if err := s.copyTo(ctx, fresh, nil); err != nil {
		return done, err
	}
	db, err := openPool(fresh, access{busy: s.how.busy}, true)
	if err != nil {
		return done, &OpenError{path, err}
	}
	if err := errors.Join(change(ctx, db), db.Close()); err != nil { // who closes it leaves one file
		return done, &OpenError{path, translate(err)}
	}
	done.Path = path
	if _, err := os.Lstat(path); err == nil {
		done.Kept = path + ".replaced-" + at.UTC().Format("20060102T150405Z")
		if err := keep(path, done.Kept); err != nil {
			return Restored{}, &OpenError{path, err}
		}
	}
	if err := os.Rename(fresh, path); err != nil {
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
