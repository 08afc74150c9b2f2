// Package refusal says why something is refused, with a code that stays the same.
package refusal

import (
	"errors"
	"fmt"
)

// Kinds of refusals.
var (
	// ErrIllegal is wrapped if something is not legal where it was tried.
	ErrIllegal = errors.New("illegal transition")
	// ErrUnknownStrategy is wrapped if a strategyFnName is unknown.
	ErrUnknownStrategy = errors.New("unknown strategy")
)

// An Error is a refusal in DIAL's words, with a stable code.
type Error struct {
	Code    string
	Message string
	Hint    string
	Kind    error // the sentinel that it is, or nil
	// Details are what is wrong, one by one, each with its place, where that is several
	// things; Message has them too.
	Details []string
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the sentinel the error stands for.
func (e *Error) Unwrap() error { return e.Kind }

// New returns a refusal of a kind, which may be nil.
func New(kind error, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Kind: kind}
}
