package undertaking

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/dialai/dialai/internal/files"
)

// One undertaking works in a tree at a time: two would take each other's changes for their own.
// A tree has a lock file, outside of it, that is named after its path. Whoever works in the tree
// holds it alone, and holds the lock files of the folders above together with others, since outside
// of git a tree is all that is below a folder. Repositories above are trees of their own,
// and are passed over. The system gives locks back when a process ends, however it does; the files
// stay, since to remove one would let two in.

// ErrTaken is wrapped where another holds the lock of a tree.
var ErrTaken = errors.New("works in")

// LockTree keeps other undertakings out of the working tree that cwd is in, whichever folder of it
// or link to it they name, until unlock is called or this process ends. dir is where the lock
// files are: outside of all trees, the same for all stores of a user; it is made if it is not
// there. session is what others are told who come later. The error names the session
// that is there, if it can.
func LockTree(dir, cwd, session string) (unlock func() error, err error) {
	if cwd, err = resolve(cwd); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	top := cwd
	if repository := repositoryOf(cwd); repository != "" {
		top = repository
	}
	l := &treeLock{dir: dir}
	if err = l.take(top, session); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return sync.OnceValue(l.release), nil
}

// A treeLock is all the locks that are held for a tree, the tree's own first.
type treeLock struct {
	dir  string
	held []*flock.Flock
}

func (l *treeLock) take(top, session string) error {
	own := l.of(top)
	if ok, err := own.TryLock(); err != nil {
		return err
	} else if !ok {
		return l.taken(own, top)
	}
	l.held = append(l.held, own)
	if err := os.WriteFile(own.Path(), []byte(session+"\n"+top+"\n"), 0o600); err != nil {
		return err
	}
	for _, above := range plainFolders(top) {
		lock := l.of(above)
		if ok, err := lock.TryRLock(); err != nil {
			return err
		} else if !ok {
			return l.taken(lock, above)
		}
		l.held = append(l.held, lock)
	}
	return nil
}

// of returns the lock of a folder.
func (l *treeLock) of(folder string) *flock.Flock {
	sum := sha256.Sum256([]byte(folder))
	return flock.New(filepath.Join(l.dir, hex.EncodeToString(sum[:])+".lock"))
}

// taken says who holds a lock.
func (l *treeLock) taken(lock *flock.Flock, folder string) error {
	if shared, err := lock.TryRLock(); err == nil && shared {
		return errors.Join(fmt.Errorf("another undertaking %w a folder below %s: wait for it, or use a working tree of its own", ErrTaken, folder), lock.Unlock())
	}
	who := "another undertaking"
	text, err := files.ReadRegular(lock.Path(), files.Kind{Name: "lock of a tree", Max: 16 << 10})
	if session, _, whole := strings.Cut(string(text), "\n"); err == nil && whole && session != "" {
		who = fmt.Sprintf("undertaking %q", session)
	}
	return fmt.Errorf("%s %w %s: wait for it, or use a working tree of its own", who, ErrTaken, folder)
}

// release gives all back. Its own file names nobody any more.
func (l *treeLock) release() (err error) {
	for i, lock := range l.held {
		if i == 0 {
			err = os.Truncate(lock.Path(), 0)
		}
		err = errors.Join(err, lock.Unlock())
	}
	return err
}

// plainFolders returns the folders above a tree that are in no repository.
func plainFolders(top string) (list []string) {
	for dir := filepath.Dir(top); dir != top; top, dir = dir, filepath.Dir(dir) {
		if repository := repositoryOf(dir); repository != "" {
			dir = repository
			continue
		}
		list = append(list, dir)
	}
	return list
}

// repositoryOf returns the top of the repository that a folder is in, "" if it is in none. It
// needs no git, which may be there for one undertaking and not for the next.
func repositoryOf(dir string) string {
	for {
		at := filepath.Join(dir, ".git")
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			return dir // a working tree, or a submodule
		}
		if _, err := os.Stat(filepath.Join(at, "HEAD")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}
