package guard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// TestElapsed: elapsed_ms is what the check took, task_age_ms how long the task has
// lasted.
func TestElapsed(t *testing.T) {
	now := time.Unix(1000, 0)
	slow := guard.Func(func(context.Context, verdict.Step) verdict.Verdict {
		now = now.Add(30 * time.Millisecond)
		return verdict.Verdict{}
	})
	g, err := guard.New(parse(t, `{}`), guard.WithClock(func() time.Time { return now }), guard.WithCheckers(slow))
	if err != nil {
		t.Fatal(err)
	}
	for i, age := range []time.Duration{0, 5030 * time.Millisecond} {
		v, m, err := g.Check(guard.CheckInput{TaskID: "t"})
		if err != nil || m.Elapsed != 30*time.Millisecond || m.TaskAge != age {
			t.Errorf("step %d: elapsed %s, task age %s, want 30ms and %s (%v)", i, m.Elapsed, m.TaskAge, age, err)
		}
		if text := string(guard.AppendResult(nil, v, m, guard.Compat)); !strings.Contains(text, `"elapsed_ms":30,"task_age_ms":`) {
			t.Errorf("step %d prints %s", i, text)
		}
		now = now.Add(5 * time.Second)
	}
	if _, m, err := g.DryRun(guard.CheckInput{TaskID: "t"}); err != nil || m.Elapsed != 0 {
		t.Errorf("a dry run took %s (%v)", m.Elapsed, err)
	}
}

// TestUnknownMembers: what nothing reads of a step is named, with what may be meant.
func TestUnknownMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"task_id":"t","step":1,"state":"s","output":"o","tool_calls":[{"name":"n","args":{},"id":1,"result":2}],"model":"m","tokens_in":1,"tokens_out":1,"attempt":0,"context":{}}`: "",
		`{"task_id":"t","otput":"x"}`: `/otput: did you mean "output"?`,
		`{"x-mine":1,"tool_calls":[{"name":"n"},{"nam":"n","arg":{}}],"zzz":null}`: `/zzz: |/tool_calls/1/arg: did you mean "args"?|/tool_calls/1/nam: did you mean "name"?`,
		`[1]`: "", `{"tool_calls":7}`: "", `bad`: "", `null`: "",
	} {
		var got []string
		for _, p := range guard.UnknownMembers([]byte(text)) {
			got = append(got, p.Path+": "+p.Hint)
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s: %q, want %q", text, s, want)
		}
	}
}
