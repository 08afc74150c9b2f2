package cli

import (
	"time"

	"github.com/dialai/dialai/specialist"
)

// clock is what the engine reads the time from; nil means time.Now. Only a program
// that is built for tests has another one.
var clock func() time.Time

// now returns the time.
func now() specialist.Time {
	if clock == nil {
		return specialist.TimeOf(time.Now())
	}
	return specialist.TimeOf(clock())
}
