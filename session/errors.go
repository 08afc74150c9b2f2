package session

import (
	"cmp"
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

// A NewerError says that a newer version of this program has written something that this one cannot read, such as
// a record of a session; that is nothing that is wrong with it. It wraps a [CorruptError]: whoever leaves
// out what is damaged and goes on with the rest leaves this out, too.
type NewerError struct {
	What string // that it is in, such as "the log of session …"; "" where that is not known yet
	Has  string // what cannot be read
}

func (e *NewerError) Error() string {
	what := e.What
	if what != "" {
		what += ": "
	}
	return what + e.problem()
}

func (e *NewerError) problem() string {
	return e.Has + ", which a newer version of dialai has written; update the program"
}

// Unwrap returns what is not known to be more than damage.
func (e *NewerError) Unwrap() error { return &CorruptError{e.What, e.problem()} }

// An unreadError says that something could not be read, which says nothing of what it is.
type unreadError struct{ error }

// Corrupt says that what is wrong with something is err, once: a part that says
// itself what is damaged needs nobody around it to say it again. What could not be read
// to understand it is no damage of it.
func Corrupt(what string, err error) error {
	if unread, ok := errors.AsType[*unreadError](err); ok {
		return unread.error
	}
	if newer, ok := errors.AsType[*NewerError](err); ok {
		return &NewerError{cmp.Or(newer.What, what), newer.Has}
	}
	if said, ok := errors.AsType[*CorruptError](err); ok {
		return said
	}
	return &CorruptError{what, err.Error()}
}
