package planning

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/machine"
)

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

// An UnpricedError says that a model has no price, with its place in the file. It is one
// of the problems of a [StartError].
type UnpricedError struct{ Problem machine.Problem }

func (e *UnpricedError) Error() string { return inFile(e.Problem) }
