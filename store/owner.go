package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/dialai/dialai/session"
)

// An owner is a file that a process keeps locked while it lives: however the
// process ends, the lock goes with it.
type fileOwner struct {
	name string
	lock *flock.Flock
}

// isOwnerName reports whether a name from a log looks like one of ours, and so may
// become part of a path.
func isOwnerName(s string) bool { return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" }

func (s *file) ownerDir() string { return s.path + ".owners" }

// claim makes this process an owner.
func (s *file) claim() (session.Owner, error) {
	if err := os.MkdirAll(s.ownerDir(), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	var random [16]byte
	rand.Read(random[:]) // never fails
	name := hex.EncodeToString(random[:])
	lock := flock.New(filepath.Join(s.ownerDir(), name))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return nil, fmt.Errorf("locking %s: %w", lock.Path(), err)
	}
	return &fileOwner{name, lock}, nil
}

// alive reports whether an owner lives.
func (s *file) alive(name string) (bool, error) {
	if !isOwnerName(name) {
		return false, nil
	}
	path := filepath.Join(s.ownerDir(), name)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return false, nil
	}
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", path, err)
	}
	if !locked {
		return true, nil
	}
	os.Remove(path) // nobody will ever use this name again
	return false, lock.Unlock()
}

// A DriverLock is held by one process at a time. It is not for concurrent use.
type DriverLock struct{ file *flock.Flock }

// TryLock takes the lock if it is free, and says whether it has.
func (l *DriverLock) TryLock() (bool, error) { return l.file.TryLock() }

// Unlock gives it back.
func (l *DriverLock) Unlock() error { return l.file.Unlock() }

// DriverLock returns the lock that who carries all sessions of the store on holds, so that
// one process does. It is free when that has ended, however it did.
func (s *SQLite) DriverLock() (*DriverLock, error) { return s.lock("driving") }

func (s *file) lock(name string) (*DriverLock, error) {
	if err := os.MkdirAll(s.ownerDir(), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return &DriverLock{flock.New(filepath.Join(s.ownerDir(), name))}, nil // it stays: to remove it would let two in
}

// Claim implements [session.OwnerStore].
func (s *SQLite) Claim(context.Context) (session.Owner, error) { return s.claim() }

// Alive implements [session.OwnerStore].
func (s *SQLite) Alive(_ context.Context, name string) (bool, error) { return s.alive(name) }

// Name implements [session.Owner].
func (o *fileOwner) Name() string { return o.name }

// Release implements [session.Owner].
func (o *fileOwner) Release() error {
	os.Remove(o.lock.Path())
	return o.lock.Unlock()
}
