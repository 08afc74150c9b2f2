package guards

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
)

// machineMembers tell a machine file from a guards file, which has none of them.
var machineMembers = []string{"machineName", "initialState", "goalState", "states", "specialists"}

// IsGuards reports whether a file holds guards and no machine. What cannot be
// read is taken for a machine, whose loader says why.
func IsGuards(path string, data []byte) bool {
	names, _ := machine.MemberNames(path, data) // whoever reads the file says what is wrong
	return !isMachine(names) && slices.ContainsFunc(names, func(name string) bool { return slices.Contains(guard.Members(), name) })
}

// isMachine reports whether one of a file's members is one that only machines
// have.
func isMachine(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(machineMembers, name) })
}

// HoldsMachine reports whether a file has a member that only machines have.
func HoldsMachine(path string, data []byte) bool {
	names, _ := machine.MemberNames(path, data)
	return isMachine(names)
}

// Loaded are the guards of a file.
type Loaded struct {
	Config *guard.Config
	States map[string]*guard.Config // by the name of the state; of a machine file
	JSON   json.RawMessage          // the guards, or the definition of the machine
}

// LoadAnyGuards reads the guards of a guards file or of a machine file; of the
// latter also those of its states.
func LoadAnyGuards(a *command.App, path string) (l Loaded, err error) {
	data, err := a.ReadFile(path, files.Guards)
	if err != nil {
		return l, err
	}
	if !HoldsMachine(path, data) {
		err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
			l.Config, problems = guard.ParseAs(section, guard.Compat)
			l.JSON = section
			return problems
		})
		return l, err
	}
	m, err := a.ParseMachine(path, data)
	if err != nil {
		return l, err
	}
	l.JSON = m.JSON()
	l.Config, l.States, err = guard.OfMachine(m)
	return l, err
}

// ParseGuards reads a guards file. Without a profile it has compat.
func ParseGuards(path string, data []byte) (config *guard.Config, err error) {
	err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		config, problems = guard.ParseAs(section, guard.Compat)
		return problems
	})
	return config, err
}

// LintGuards returns what is probably not meant in a guards file.
func LintGuards(path string, data []byte) (findings []machine.Problem, err error) {
	profile := guard.Compat
	if _, err := ParseGuards(path, data); err != nil {
		ofMachine := machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) []machine.Problem { return guard.Check(section, false) })
		if ofMachine != nil {
			return nil, err
		}
		profile = guard.Strict // it has what only machines have
	}
	err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) []machine.Problem { // which knows the place of each
		return guard.Lint(section, nil, profile)
	})
	if found, ok := errors.AsType[*machine.Error](err); ok {
		return found.Problems, nil
	}
	return nil, err
}
