package guard

import (
	"errors"
	"time"

	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/machine"
)

// This file is the only one of the package that looks at the world outside.

// clock is the clock of a Guard that was given none.
func clock() time.Time { return time.Now() }

// Load returns a Guard configured by a file, a guards section in JSON or YAML. Its
// profile is compat unless it says otherwise. A name with characters that cannot be seen
// is an error, as in a machine file.
func Load(path string, options ...Option) (*Guard, error) {
	data, err := files.Read(path, files.Guards)
	if err != nil {
		return nil, err
	}
	var c *Config
	err = machine.ParseSection(path, data, nil, func(section []byte) (problems []machine.Problem) {
		c, problems = ParseAs(section, Compat)
		return problems
	})
	if e, ok := errors.AsType[*machine.Error](err); ok {
		return nil, &ConfigError{Path: path, Problems: e.Problems}
	}
	if err != nil {
		return nil, err
	}
	return New(c, options...)
}
