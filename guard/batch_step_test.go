package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// TestBatchLoopInAStep: the batch loop guard takes its part in the check of a
// step, warns once with a notice, and stops what goes on.
func TestBatchLoopInAStep(t *testing.T) {
	const section = `{"batch_loop":{"warnThreshold":2,"hardLimit":3},"loop_detection":{"detect_identical_tool_calls":false}}`
	for _, profile := range []guard.Profile{guard.Compat, guard.Strict} {
		c, problems := guard.ParseAs([]byte(section), profile)
		if problems != nil {
			t.Fatal(problems)
		}
		g := newGuard(t, c)
		turn := func(args string) guard.CheckInput {
			return guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: "read", Args: []byte(`{"path":"x","n":` + args + `}`)}}}
		}
		for i, step := range []struct{ args, want, notice string }{
			{"1", "ok", ""}, {"2", "ok", ""}, {"1.0", "warn [batch_repeat]", "Loop guard warning"}, {"3", "ok", ""},
			{"1", "abort [batch_repeat]", ""}, {"1", "abort [batch_repeat]", ""}, {"4", "ok", ""},
		} {
			v, _, err := g.Check(turn(step.args))
			if got := codes(v); got != step.want || err != nil || strings.Contains(fmt.Sprint(v.Notices), "Loop guard warning") != (step.notice != "") {
				t.Errorf("%s, step %d: %s %q (%v), want %s", profile, i, got, v.Notices, err, step.want)
			}
		}
		if err := g.Clear("t", "batch_repeat", "carol", "looked at it"); err != nil {
			t.Fatal(err)
		}
		if v, _, _ := g.Check(turn("1")); codes(v) != "ok" {
			t.Errorf("%s: after a human cleared it: %s", profile, codes(v))
		}
	}
}

// TestBatchLoopVolatile: in the profile strict a tool's volatile arguments do not
// tell batches apart, and an id that is all there is does.
func TestBatchLoopVolatile(t *testing.T) {
	const section = `{"batch_loop":{"warnThreshold":2,"hardLimit":2},"loop_detection":{"detect_identical_tool_calls":false},
		"tool_calls":{"tools":{"poll":{"volatile":["cursor"]}}}}`
	for _, c := range []struct {
		profile   guard.Profile
		one, two  string
		tool      string
		different bool
	}{
		{guard.Strict, `{"cursor":1,"q":"a"}`, `{"cursor":2,"q":"a"}`, "poll", false},
		{guard.Compat, `{"cursor":1,"q":"a"}`, `{"cursor":2,"q":"a"}`, "poll", true},
		{guard.Strict, `{"id":1}`, `{"id":2}`, "get_issue", true},
		{guard.Compat, `{"id":1}`, `{"id":2}`, "get_issue", false},
	} {
		config, _ := guard.ParseAs([]byte(section), c.profile)
		g := newGuard(t, config)
		for i, args := range []string{c.one, c.two} {
			v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: c.tool, Args: []byte(args)}}})
			if err != nil || i == 1 && v.Passed() != c.different {
				t.Errorf("%s, %s: %s (%v)", c.profile, args, codes(v), err)
			}
		}
	}
}

// TestLadderClimbs: a batch that the ladder refused is not committed, and is
// stronger evidence all the same when it comes back, so that every rung is
// reached; what another guard refuses, and what is only looked at, is not.
func TestLadderClimbs(t *testing.T) {
	const section = `{"batch_loop":{"ladder":{"observe":2,"steer":3,"block":4,"escalate":6,"stop":8}},"loop_detection":{"detect_identical_tool_calls":false},"limits":{"output_max":3}}`
	c, problems := guard.ParseAs([]byte(section), guard.Compat)
	if problems != nil {
		t.Fatal(problems)
	}
	begin := func(g *guard.Guard, in guard.CheckInput) (verdict.Verdict, error) {
		v, token, err := g.Begin(t.Context(), in)
		if token != nil {
			token.Commit()
		}
		return v, err
	}
	check := func(g *guard.Guard, in guard.CheckInput) (verdict.Verdict, error) {
		v, _, err := g.Check(in)
		return v, err
	}
	long := "too long"
	in := guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: "read", Args: []byte(`{"x":1}`)}}}
	for name, judge := range map[string]func(*guard.Guard, guard.CheckInput) (verdict.Verdict, error){"Check": check, "Begin": begin} {
		g, replayer := newGuard(t, c), guard.NewReplayer(c, nil)
		for i, want := range []string{
			"ok", "ok", "warn [batch_repeat]", "retry [batch_repeat]", "escalate [batch_repeat]", "escalate [batch_repeat]", "abort [batch_repeat]", "abort [batch_repeat]",
		} {
			refused := in
			refused.Output = &long
			if _, err := judge(g, refused); err != nil {
				t.Fatal(err)
			}
			if v, _, err := g.DryRun(in); err != nil || codes(v) != want {
				t.Fatalf("%s, step %d looked at: %s (%v), want %s", name, i, codes(v), err, want)
			}
			v, err := judge(g, in)
			if err != nil || codes(v) != want {
				t.Fatalf("%s, step %d: %s (%v), want %s", name, i, codes(v), err, want)
			}
			if again, ok := replayer.Next(logged(t, in, v, false)); !ok || again.Differs {
				t.Errorf("%s, step %d: replayed %s", name, i, codes(again.Verdict))
			}
		}
		if steps := g.State("t").Steps; steps != 3 {
			t.Errorf("%s: %d steps count as executed, want 3", name, steps)
		}
	}
}
