package session

import (
	"errors"
	"fmt"
)

// Errors of stores, that callers ask for by name.
var (
	// ErrStale: somebody else committed first. Nothing is lost: load and try
	// again.
	ErrStale = errors.New("the session has changed since it was read")
	// ErrExists: there is already one of that id.
	ErrExists = errors.New("already exists")
	// ErrNotFound is wrapped by every *NotFoundError.
	ErrNotFound = errors.New("not found")
	// ErrBusy: the store is held by another process.
	ErrBusy = errors.New("the store is busy")
	// ErrUnknown: the store has not answered, and may have committed or not. Load and look; to commit
	// the same change again is safe.
	ErrUnknown = errors.New("what was committed last may be stored or not")
)

// A NotFoundError names what was not found.
type NotFoundError struct{ What, ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s not found: %s", e.What, e.ID) }

// Is makes errors.Is(err, ErrNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// An ArchivedError says that the log of a session was moved to another store.
type ArchivedError struct {
	ID          string
	MachineName string
	Archive     string // path of that store
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("Session %s was archived: it is in the store %s", e.ID, e.Archive)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *ArchivedError) Is(target error) bool { return target == ErrNotFound }

// A DecodeError names a value of a stored event that makes no sense.
type DecodeError struct{ What, Value string }

func (e *DecodeError) Error() string { return fmt.Sprintf("unknown %s %q", e.What, e.Value) }

// A CorruptError says that what is stored contradicts itself.
type CorruptError struct{ What, Problem string }

func (e *CorruptError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.What, e.Problem) }

// An unreadError says that something could not be read, which says nothing of what it is.
type unreadError struct{ error }

// Corrupt says that what is wrong with something is err, once: a part that says
// itself what is damaged needs nobody around it to say it again. What could not be read
// to understand it is no damage of it.
func Corrupt(what string, err error) error {
	if unread, ok := errors.AsType[*unreadError](err); ok {
		return unread.error
	}
	if said, ok := errors.AsType[*CorruptError](err); ok {
		return said
	}
	return &CorruptError{what, err.Error()}
}
