//go:build dialai_test_clock

package command

import (
	"os"
	"time"
)

// A program that is built with the tag dialai_test_clock, as the end-to-end tests do,
// has a clock that is wrong by DIALAI_TEST_CLOCK, such as 72h or -72h.
func init() {
	if wrong, err := time.ParseDuration(os.Getenv("DIALAI_TEST_CLOCK")); err == nil {
		Clock = func() time.Time { return time.Now().Add(wrong) }
	}
}
