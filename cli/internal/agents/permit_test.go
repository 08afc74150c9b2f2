package agents

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/permit"
)

// TestInTime: where time that is up means no, that is the answer then, also while a store holds
// whoever asks; what was answered before is the answer, and an error allows nothing.
func TestInTime(t *testing.T) {
	for _, c := range []struct {
		flags  permitFlags
		takes  time.Duration
		fails  error
		want   permit.Behavior
		within time.Duration
	}{
		{permitFlags{hook: true, unanswered: "deny=2s"}, time.Hour, nil, permit.Deny, 2*time.Second + overdue},
		{permitFlags{hook: true, unanswered: "deny=2s"}, time.Second, nil, permit.Allow, time.Second},
		{permitFlags{hook: true, unanswered: "deny=2s"}, time.Second, errors.New("gone"), "", time.Second},
		{permitFlags{mcp: true, noWait: true}, time.Hour, nil, permit.Deny, storeHas + overdue},
		{permitFlags{hook: true, unanswered: "park=2s"}, time.Hour, nil, permit.Allow, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(2 * time.Hour) // until all have ended
			began := time.Now()
			a, err := c.flags.inTime(t.Context(), func(context.Context) (permit.Answer, error) {
				time.Sleep(c.takes)
				if c.fails != nil {
					return permit.Answer{}, c.fails
				}
				return permit.Answer{Behavior: permit.Allow}, nil
			})
			if a.Behavior != c.want || !errors.Is(err, c.fails) || time.Since(began) != c.within {
				t.Errorf("%+v: %q (%v) after %s, want %q after %s", c.flags, a.Behavior, err, time.Since(began), c.want, c.within)
			}
		})
	}
}

// TestAgentsDocumented: the documentation says what agents can do, and what is done where one
// cannot, as the command prints it.
func TestAgentsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/undertakings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "|---|---|---|---|---|\n")
	rows := strings.Split(table, "\n")
	for i, x := range abilities {
		if row := rows[i]; !strings.HasPrefix(row, "| "+x.can+" | ") || !strings.HasSuffix(row, " | "+x.absent+" |") {
			t.Errorf("row %d is %s\nwant %s … %s", i+1, row, x.can, x.absent)
		}
	}
}
