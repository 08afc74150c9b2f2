package guard

import (
	"time"

	"github.com/dialai/dialai/files"
)

// This file is the only one of the package that looks at the world outside.

// clock is the clock of a Guard that was given none.
func clock() time.Time { return time.Now() }

// Load returns a Guard configured by a file, a guards section in JSON. Its
// profile is compat unless it says otherwise.
func Load(path string, options ...Option) (*Guard, error) {
	data, err := files.Read(path, files.Guards)
	if err != nil {
		return nil, err
	}
	c, problems := ParseAs(data, Compat)
	if len(problems) > 0 {
		return nil, &ConfigError{Path: path, Problems: problems}
	}
	return New(c, options...)
}
