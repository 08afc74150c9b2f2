package planning

import (
	"errors"

	"github.com/dialai/dialai/internal/refusal"
	"github.com/dialai/dialai/machine"
)

// CheckRegistration checks one specialist by the rules of a machine file, and that what it
// names exists and can be used.
func CheckRegistration(in Surroundings, checks machine.Checks, machineName string, s *machine.Specialist) error {
	if err := s.CheckMode(); err != nil {
		if errors.Is(err, machine.ErrNoMode) {
			return &refusal.Error{Code: "no_execution_mode", Message: err.Error(), Kind: machine.ErrNoMode}
		}
		return &refusal.Error{Code: "bad_mode", Message: err.Error(), Kind: refusal.ErrIllegal}
	}
	probe := &machine.Definition{
		MachineName: machineName, InitialState: "state", GoalState: "state",
		States: []machine.StateDefinition{{Name: "state"}}, Specialists: []machine.Specialist{*s},
	}
	invalid := &machine.Error{}
	if _, err := machine.Compile(probe, checks); err != nil && !errors.As(err, &invalid) {
		return err
	}
	for _, p := range invalid.Problems {
		switch p.Code {
		case "unknown-strategy":
			return &refusal.Error{Code: "unknown_strategy", Message: p.Message, Hint: p.Hint, Kind: refusal.ErrUnknownStrategy}
		case "bad-expression": // which transitions it serves is not known yet
			continue
		}
		return &refusal.Error{Code: p.Code, Message: p.Message, Hint: p.Hint, Kind: refusal.ErrIllegal}
	}
	return usable(in, probe, s)
}

// usable checks that what a specialist names exists here and can be used.
func usable(in Surroundings, probe *machine.Definition, s *machine.Specialist) error {
	m, err := machine.Compile(probe, machine.Checks{})
	if err != nil {
		return err
	}
	b := planner{Surroundings: in, m: m}
	err = b.resolve(&Member{Specialist: s})
	if _, told := errors.AsType[*refusal.Error](err); err == nil || told {
		return err
	}
	unusable := &refusal.Error{Code: "unusable", Message: err.Error(), Kind: refusal.ErrIllegal}
	if helps, ok := errors.AsType[hinted](err); ok {
		unusable.Hint = helps.Hint()
	}
	return unusable
}

// A hinted error says what helps.
type hinted interface {
	error
	Hint() string
}
