package cli

import "time"

// clock is what the engine reads the time from; nil means time.Now. Only a program
// that is built for tests has another one.
var clock func() time.Time
