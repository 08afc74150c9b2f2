package undertaking_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/undertaking"
)

// TestSaidBetweenEvents: the manager hears at the next look at the store what is said while events
// of a worker wait to be written, whose log is read again for that.
func TestSaidBetweenEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins),
			turn("orchestrator", done, `"text":"I am at it."`, `"end":"hang"`), turn("manager", `{"transition":"respond","message":"Soon."}`),
			turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		c := w.config(t.Context())
		var said, heard time.Time
		c.Tell = func(l undertaking.Line) {
			switch {
			case l.Text == "says: I am at it." && said.IsZero():
				said = time.Now()
				w.say("how long?", agent.Steer)
			case strings.HasPrefix(l.Text, "manager respond "):
				heard = time.Now()
			}
		}
		s, _, err := undertaking.New(c).Run(t.Context())
		if !errors.Is(err, undertaking.ErrWaits) || s.State.Name != "awaiting_ruling" {
			t.Fatalf("it came to %s in %s: %v", s.Status, s.State.Name, err)
		}
		if after := heard.Sub(said); said.IsZero() || after > time.Second {
			t.Errorf("said at %s, heard after %s", said, after)
		}
	})
}
