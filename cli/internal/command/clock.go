package command

import (
	"time"

	"github.com/dialai/dialai/specialist"
)

// Clock is what the engine reads the time from; nil means time.Now. Only a program
// that is built for tests has another one.
var Clock func() time.Time

// Now returns the time.
func Now() specialist.Time {
	if Clock == nil {
		return specialist.TimeOf(time.Now())
	}
	return specialist.TimeOf(Clock())
}
