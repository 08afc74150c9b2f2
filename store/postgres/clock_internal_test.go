package postgres

import (
	"testing"
	"time"
)

// TestMeasured: an answer moves what is known of the server's clock only as far as it proves that wrong.
func TestMeasured(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		what            string
		asked, answered time.Duration
		says, want      time.Duration // after the guess
	}{
		{"right", 10 * time.Second, 11 * time.Second, 10500 * time.Millisecond, 0},
		{"an hour behind", 10 * time.Second, 11 * time.Second, time.Hour + 11*time.Second, time.Hour},
		{"an hour ahead", 10 * time.Second, 11 * time.Second, -time.Hour + 10*time.Second, -time.Hour},
		{"right, but that took an hour", 10 * time.Second, time.Hour, 20 * time.Second, 0},
		{"behind by more than the hour that it took", 0, time.Hour, 3 * time.Hour, 2 * time.Hour},
	} {
		var k clock
		k.start(at)
		k.measured(c.asked, at.Add(c.says), c.answered)
		if got := time.Unix(0, k.zero.Load()).Sub(at); got != c.want {
			t.Errorf("a clock that is %s is moved by %s, want %s", c.what, got, c.want)
		}
	}
}
