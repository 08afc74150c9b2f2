package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
)

// A file that is removed or replaced while a process has it open goes on for that
// process alone: what it commits is durable in a file that has no name, and is gone
// when it ends. SQLite does not notice. So the committer looks, before a transaction is
// committed and again after it, whether the names of the store's files still lead to
// the files that were opened, by device and inode: if not before, nothing is written; if
// not after, the commit is not acknowledged. What is left is the time between the second
// look and the answer to the caller, and whoever closes the store looks once more.

// ErrReplaced: the store's file, or what SQLite keeps beside it, was removed or
// replaced while it was open. Nothing can be committed any more.
var ErrReplaced = errors.New("the store was removed or replaced while it was open, and what is written to it would be lost")

// A watch knows the files that a store consists of. The zero watch knows none.
type watch struct{ files []watched }

type watched struct {
	path string
	info os.FileInfo
}

// watchFiles returns a watch over a store that is open, and so has all its files.
func watchFiles(path string) watch {
	var w watch
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err == nil && os.SameFile(info, info) { // Windows asks for the file's number only now
			w.files = append(w.files, watched{name, info})
		}
	}
	return w
}

// check returns an error that wraps ErrReplaced unless all files are what they were.
func (w watch) check() error {
	for _, f := range w.files {
		switch now, err := os.Stat(f.path); {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: %s is not there any more", ErrReplaced, f.path)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrReplaced, err)
		case !os.SameFile(now, f.info):
			return fmt.Errorf("%w: %s is another file now", ErrReplaced, f.path)
		}
	}
	return nil
}

// Intact returns an error that wraps ErrReplaced if the file that was opened is not there any
// more, or what SQLite keeps beside it: then nothing can be committed.
func (s *file) Intact() error { return s.out.watch.check() }

// leaveLog keeps the connection from removing a write-ahead log by its name when it is
// closed: it is another's now.
func leaveLog(conn *sql.Conn) {
	conn.Raw(func(driver any) error {
		_, err := driver.(sqlite.FileControl).FileControlPersistWAL("main", 1)
		return err
	})
}
