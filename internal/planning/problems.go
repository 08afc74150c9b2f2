package planning

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
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

// unpricedModel says how a model is given a price.
const unpricedModel = "give the model a price in guards.cost.prices or with --prices, or write budget.default_estimate_usd beside the limit"

// Unpriced says that nothing says what a model may cost that a specialist of a state asks,
// under the limit that why names.
func Unpriced(m *machine.Machine, s *machine.State, who *Member, why *spend.BudgetError) error {
	return &UnpricedError{Problem: m.Locate(machine.Problem{Path: specialistPath(m, s, who.SpecialistID), Code: guard.UnpricedAsk,
		Message: fmt.Sprintf("specialist %q asks the model %q, and nothing says what that may cost, so the limit budget.hard_limit_usd of $%s would not see it", who.SpecialistID, who.ModelID, exact.Money(why.Limit)),
		Hint:    unpricedModel})}
}

// specialistPath returns the pointer to a specialist: in the state's list, or the
// machine's.
func specialistPath(m *machine.Machine, s *machine.State, id string) string {
	is := func(sp machine.Specialist) bool { return sp.SpecialistID == id }
	if i := slices.IndexFunc(s.Roster, is); i >= 0 && !s.Roster[i].Reference() {
		return fmt.Sprintf("%s/specialists/%d", s.Path(), i)
	}
	return fmt.Sprintf("/specialists/%d", max(0, slices.IndexFunc(m.Specialists(), is)))
}
