package stats_test

import (
	"testing"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
)

// TestLooksBeside: whoever looks at a round that was decided without them has looked beside, once; who decides has not,
// though what that teaches is only learned when another has looked.
func TestLooksBeside(t *testing.T) {
	audit := &trust.Outcome{State: "s", Source: trust.Audited, Automatic: true, Options: []string{"a", "b"}, Truth: "a", Pick: "a"}
	agree := &trust.SecondLook{State: "s", Options: 2, FirstHuman: "carol", First: "a", SecondHuman: "dave", Second: "a"}
	apart := &trust.SecondLook{State: "s", Options: 2, FirstHuman: "carol", First: "a", SecondHuman: "dave", Second: "b"}
	for what, c := range map[string]struct {
		lesson  trust.Lesson
		decided bool
		want    int64
	}{
		"the engine decided, and a human audited":             {trust.Lesson{Outcome: audit}, false, 1},
		"an audit before anything was executed":               {trust.Lesson{Outcome: audit}, true, 0},
		"a human decided, and another looked then":            {trust.Lesson{Outcome: audit, Second: agree}, false, 1},
		"two humans ruled before anything was executed":       {trust.Lesson{Outcome: audit, Second: agree}, true, 1},
		"a third settled what two had decided differently":    {trust.Lesson{Outcome: audit, Second: apart, Settles: true}, false, 1},
		"a human decided by themselves":                       {trust.Lesson{Outcome: &trust.Outcome{State: "s", Source: trust.Forced, Options: []string{"a", "b"}, Truth: "a"}}, true, 0},
		"a human looked whose answer waits for a third human": {trust.Lesson{Second: apart}, false, 1},
	} {
		var tally stats.Tally
		if tally.Learn(&c.lesson, c.decided); tally.State("s").Beside != c.want {
			t.Errorf("%s: %d looked beside, want %d", what, tally.State("s").Beside, c.want)
		}
	}
}
