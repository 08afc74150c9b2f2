package store_test

import (
	"errors"
	"os"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// TestReplaced removes or replaces the files of a store while it is open: the next
// commit fails, and so does every later one. It used to succeed, and was gone.
func TestReplaced(t *testing.T) {
	for _, beside := range []string{"", "-wal", "-shm"} {
		for name, change := range map[string]func(path string) error{
			"removed": os.Remove,
			"replaced": func(path string) error {
				data, err := os.ReadFile(path)
				return errors.Join(err, os.Rename(path, path+".old"), os.WriteFile(path, data, 0o600))
			},
		} {
			t.Run("dialai.db"+beside+" "+name, func(t *testing.T) {
				a := newStore(t)
				s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
				a.ok(err)
				r, err := runner.New(runner.Config{Store: s})
				a.ok(err)
				a.force(r, a.ids[0])
				if err := change(a.path + beside); err != nil {
					t.Skipf("a file that is open cannot be %s here: %v", name, err) // Windows
				}
				for range 2 {
					if err := r.Disable(a.ctx, "small", "p"); !errors.Is(err, store.ErrReplaced) {
						t.Errorf("a commit = %v, want ErrReplaced", err)
					}
				}
				if err := s.Close(); !errors.Is(err, store.ErrReplaced) {
					t.Errorf("Close = %v, want ErrReplaced", err)
				}
				if name == "replaced" {
					if _, err := os.Stat(a.path + beside); err != nil {
						t.Errorf("the other's file is gone: %v", err)
					}
				}
			})
		}
	}
}

// TestReplacedDuringCommit removes the file after the transaction has begun, at each
// moment at which the committer cannot see it before: the commit is not acknowledged.
func TestReplacedDuringCommit(t *testing.T) {
	a := newStore(t)
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
	a.ok(err)
	if err := s.CommitWhile(func() error { return os.Remove(a.path) }); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("a commit during which the file goes = %v, want ErrReplaced", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("nothing was committed, and Close = %v", err)
	}
}

// TestReplacedUnused: whoever has committed nothing loses nothing.
func TestReplacedUnused(t *testing.T) {
	a := newStore(t)
	s, err := store.OpenSQLite(a.ctx, a.path, store.SQLiteOptions{})
	a.ok(err)
	a.ok(os.Remove(a.path))
	a.ok(s.Close())
}
