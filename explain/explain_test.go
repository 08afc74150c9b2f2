package explain_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// TestCollapseAtTheMoment: what happened to a state in the very moment in which a round was
// opened or judged counts, what happened later does not.
func TestCollapseAtTheMoment(t *testing.T) {
	ctx, now := context.Background(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := must(machine.Parse("doors.json", []byte(strings.NewReplacer("alignmentMargin", "bayes", `"specialists"`, `"risk": {"maxError": 0.1}, "collapse": {}, "specialists"`).Replace(doors)), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory(), Now: func() time.Time { return now }}))
	defer r.Close()
	s := must(r.Start(ctx, m, runner.StartOptions{}))
	for _, step := range []struct {
		later  time.Duration
		freeze bool
	}{{0, true}, {time.Millisecond, false}} {
		now = now.Add(step.later)
		if err := r.Freeze(ctx, runner.Order{MachineName: "doors", State: "shut", SpecialistID: "carol"}, step.freeze); err != nil {
			t.Fatal(err)
		}
		if why := must(explain.Round(ctx, r, s.ID, "1")); why.Collapse == nil || !why.Collapse.Frozen {
			t.Errorf("%v after the round was opened, frozen = %t, and it is explained by %+v", step.later, step.freeze, why.Collapse)
		}
	}
}
