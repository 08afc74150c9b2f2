package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// TestGuardsTellTheirAsk: who answers a question of the guards is told the id that the
// log has for the ask by then, a new one for each question.
func TestGuardsTellTheirAsk(t *testing.T) {
	var o oracle
	told := map[string]bool{}
	b := newBench(t, o.with)
	s := b.probed("")
	b.r = b.runner(asking(strategies.Registry{}.WithModel("m", truth.CompleterFunc(func(ctx context.Context, r truth.CompletionRequest) (truth.Completion, error) {
		id := specialist.CallerOf(ctx).AskID
		all := b.raw(s)
		if newest := string(all[len(all)-1].Data); told[id] || !strings.Contains(newest, fmt.Sprintf(`"askId":%q`, id)) {
			t.Errorf("the %s is asked for as %q, and the newest event is %s", r.Purpose, id, newest)
		}
		told[id] = true
		return o.Complete(ctx, r)
	}))))
	b.stepTo(s, runner.TickAdvanced)
	if len(told) != probes {
		t.Errorf("%d questions were asked under %d ids", probes, len(told))
	}
}
