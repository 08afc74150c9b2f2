package runner

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/machine"
)

// Errors that callers ask for by name.
var (
	// ErrNotRunning is wrapped if a session has ended.
	ErrNotRunning = errors.New("session is not running")
	// ErrStaleRound is wrapped if a proposal or ruling is for a round that is
	// over.
	ErrStaleRound = errors.New("round is over")
	// ErrIllegal is wrapped if a transition is not legal where it was proposed.
	ErrIllegal = errors.New("illegal transition")
	// ErrForbidden is wrapped if somebody may not do what they tried to do.
	ErrForbidden = errors.New("not allowed")
	// ErrUnknownStrategy is wrapped if a strategyFnName is unknown.
	ErrUnknownStrategy = errors.New("unknown strategy")
	// ErrQuota is wrapped if a tenant has no room for another session.
	ErrQuota = errors.New("quota exceeded")
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

func refuse(kind error, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Kind: kind}
}

// A ConfigError names a field of a Config that cannot be used.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("config %s %s", e.Field, e.Problem) }

// A DanglingError says where in a file a state names a specialist whom nobody knows.
// It is one of the problems of a [StartError].
type DanglingError struct{ Problem machine.Problem }

func (e *DanglingError) Error() string { return inFile(e.Problem) }

// inFile returns a problem in one line, with its place in the file and its hint.
func inFile(p machine.Problem) string {
	text := p.Message
	if p.Line > 0 {
		text = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
	}
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return text
}

// A StartError lists why a machine cannot be started here: functions and
// variables that are missing, addresses that are not allowed.
type StartError struct{ Problems []error }

func (e *StartError) Error() string { return errors.Join(e.Problems...).Error() }

// Unwrap returns the problems.
func (e *StartError) Unwrap() []error { return e.Problems }
