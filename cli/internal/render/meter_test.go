package render

import (
	"strings"
	"testing"
	"time"
)

// TestMeterLine: how far, how fast, and how long yet; nothing of what does not take long.
func TestMeterLine(t *testing.T) {
	for _, c := range []struct {
		took        time.Duration
		done, total int64
		want        string
	}{
		{500 * time.Millisecond, 100, 200, ""},
		{900 * time.Millisecond, 0, 200, "simulating (0s)"},
		{4 * time.Second, 0, 0, "simulating (4s)"},
		{2 * time.Second, 24_690, 98_760, "simulating: 24,690 of 98,760 rounds, 12,345/s, about 6s left"},
		{10 * time.Second, 15, 3_000, "simulating: 15 of 3,000 rounds, 1.5/s, about 33m left"},
		{10 * time.Second, 1, 3_000, "simulating: 1 of 3,000 rounds, 0.1/s, about 8.3h left"},
		{time.Second, 7, 0, "simulating: 7 rounds, 7.0/s"},
		{time.Second, 7, 7, "simulating: 7 of 7 rounds, 7.0/s, less than 1s left"},
		{time.Second, 1_000, 999, "simulating: 999 of 999 rounds, 1,000/s, less than 1s left"},
	} {
		m := &meter{doing: "simulating", unit: "rounds", began: time.Unix(1_800_000_000, 0), done: c.done, total: c.total}
		if got := m.text(m.began.Add(c.took)); got != c.want {
			t.Errorf("%s, %d of %d: %q, want %q", c.took, c.done, c.total, got, c.want)
		}
	}
}

// TestMeterWaits: the time left does not fall while nothing is done, so that a last piece that
// takes long is not about to be done all the time, and it is not that of parts that follow.
func TestMeterWaits(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	now := began
	m := &meter{line: &statusLine{}, doing: "measuring", unit: "parts", began: began, now: func() time.Time { return now }}
	for _, c := range []struct {
		at          time.Duration
		done, total int64
		more        bool
		want        string
	}{
		{10 * time.Second, 99, 100, true, "measuring: 99 of 100 parts, 9.9/s, less than 1s left of this part"},
		{15 * time.Second, 99, 100, true, "measuring: 99 of 100 parts, 6.6/s, about 5s left of this part"},
		{40 * time.Second, 99, 100, false, "measuring: 99 of 100 parts, 2.5/s, about 30s left"},
		{41 * time.Second, 100, 100, false, "measuring: 100 of 100 parts, 2.4/s, less than 1s left"},
	} {
		now = began.Add(c.at)
		m.Part("", c.done, c.total, c.more)
		if got := m.text(now); got != c.want {
			t.Errorf("after %s: %q, want %q", c.at, got, c.want)
		}
	}
}

// TestHeldLine: while somebody types there is no line.
func TestHeldLine(t *testing.T) {
	var screen strings.Builder
	l := newStatusLine(&screen, func(time.Time) string { return "late in 9s" })
	l.width = 40
	l.show()
	release := l.Hold()
	l.show()
	if got := screen.String(); got != "\r\x1b[Klate in 9s\r\x1b[K" {
		t.Errorf("held, the screen shows %q", got)
	}
	release()
	l.show()
	if got := screen.String(); !strings.HasSuffix(got, "\x1b[K\r\x1b[Klate in 9s") {
		t.Errorf("released, the screen shows %q", got)
	}
}
