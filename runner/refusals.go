package runner

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/refusal"
)

// Errors that callers ask for by name.
var (
	// ErrNotRunning is wrapped if a session has ended.
	ErrNotRunning = errors.New("session is not running")
	// ErrStaleRound is wrapped if a proposal or ruling is for a round that is
	// over.
	ErrStaleRound = errors.New("round is over")
	// ErrIllegal is wrapped if a transition is not legal where it was proposed.
	ErrIllegal = refusal.ErrIllegal
	// ErrForbidden is wrapped if somebody may not do what they tried to do.
	ErrForbidden = errors.New("not allowed")
	// ErrUnknownStrategy is wrapped if a strategyFnName is unknown.
	ErrUnknownStrategy = refusal.ErrUnknownStrategy
	// ErrQuota is wrapped if a tenant has no room for another session.
	ErrQuota = errors.New("quota exceeded")
)

// An Error is a refusal in DIAL's words: Code is stable, Kind the sentinel that it stands
// for, or nil, Details what is wrong, one by one, where that is several things.
type Error = refusal.Error

func refuse(kind error, code, format string, args ...any) *Error {
	return refusal.New(kind, code, format, args...)
}

// A ConfigError names a field of a Config that cannot be used.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("config %s %s", e.Field, e.Problem) }

// A StartError lists why a machine cannot be started here: functions and
// variables that are missing, addresses that are not allowed.
type StartError = planning.StartError

// A DanglingError says where in a file a state names a specialist whom nobody knows.
// It is one of the problems of a [StartError].
type DanglingError = planning.DanglingError

// An UnpricedError says that a model has no price, with its place in the file. It is one
// of the problems of a [StartError].
type UnpricedError = planning.UnpricedError
