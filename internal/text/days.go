package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDays reads a duration as Go writes it, or a number of days.
func ParseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n < 1e5) {
			return 0, fmt.Errorf("%q is no number of days", days)
		}
		return time.Duration(n * float64(24*time.Hour)), nil
	}
	return time.ParseDuration(text)
}
