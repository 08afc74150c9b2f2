package guard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// TestSnapshotIsIdentity: a Guard that is restored from a snapshot judges every
// step as the one it was taken of.
func TestSnapshotIsIdentity(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 8))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := guard.WithClock(func() time.Time { return now })
	for _, profile := range []guard.Profile{guard.Compat, guard.Strict} {
		c, _ := guard.ParseAs([]byte(`{"limits":{"max_steps":60},"batch_loop":{},"budget":{"soft_limit_tokens":50,"hard_limit_tokens":4000},
			"tool_calls":{"mutex":[["a","b"]],"blast_radius":{"c":20}},"store":{"history_limit":9}}`), profile)
		one, err := guard.New(c, clock)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			now = now.Add(time.Duration(rng.IntN(5000)) * time.Millisecond)
			in := guard.CheckInput{TaskID: pick(rng, "t", "u"), State: pick(rng, "", "p", "q"), TokensIn: rng.Int64N(20), Attempt: rng.Int64N(3)}
			if rng.IntN(2) == 0 {
				text := pick(rng, "", "done", "we look at the file and then we run all of the tests", "nothing was found in any of the places we looked at so far")
				in.Output = &text
			}
			for range rng.IntN(3) {
				in.ToolCalls = append(in.ToolCalls, verdict.ToolCall{Name: pick(rng, "a", "b", "c", "d"), Args: []byte(fmt.Sprintf(`{"n":%d}`, rng.IntN(3)))})
			}
			data, err := json.Marshal(one.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			var s guard.Snapshot
			if err := json.Unmarshal(data, &s); err != nil {
				t.Fatal(err)
			}
			two, _ := guard.New(c, clock)
			if err := two.Restore(s); err != nil {
				t.Fatal(err)
			}
			v, m, errV := one.Check(in)
			w, n, errW := two.Check(in)
			if !reflect.DeepEqual(v, w) || m.Steps != n.Steps || m.Spent != n.Spent || m.TaskAge != n.TaskAge || (errV == nil) != (errW == nil) {
				t.Fatalf("%s, seed %d, step %d: %v %+v, restored %v %+v", profile, seed, i, v, m, w, n)
			}
			if !reflect.DeepEqual(one.Snapshot(), two.Snapshot()) {
				t.Fatalf("%s, seed %d, step %d: the snapshots differ", profile, seed, i)
			}
		}
	}
}

// TestSnapshotKeepsRuns: calls in a row that are the same but for what looks made up for
// the occasion are counted on in a Guard that is restored before each, and so are outputs.
func TestSnapshotKeepsRuns(t *testing.T) {
	c := profiled(t, guard.Strict, `{"loop_detection":{"detect_identical_tool_calls":false,"near":{"repeats":4,"jaccard":1},"max_repeats":20,"max_output_repeats":5}}`)
	for name, step := range map[string]func(i int) guard.CheckInput{
		"calls": func(i int) guard.CheckInput {
			said := fmt.Sprintf("step %d of many, each with words of its own", i*7919)
			return guard.CheckInput{TaskID: "t", Output: &said, ToolCalls: []verdict.ToolCall{{Name: "search", Args: fmt.Appendf(nil, `{"q":"x","request_id":"%08x-0000-4000-8000-000000000000"}`, i*7919)}}}
		},
		"outputs": func(int) guard.CheckInput { said := "again"; return guard.CheckInput{TaskID: "t", Output: &said} },
	} {
		one, two := newGuard(t, c), newGuard(t, c)
		noticed := -1
		for i := 0; i < 8 && noticed < 0; i++ {
			v, _, err := one.Check(step(i))
			w, _, restored := two.Check(step(i))
			if err != nil || restored != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("%s, step %d: %+v %v, restored %+v %v", name, i, v, err, w, restored)
			}
			if len(v.Notices) > 0 || !v.Passed() {
				noticed = i
			}
			s := two.Snapshot()
			two = newGuard(t, c)
			if err := two.Restore(s); err != nil {
				t.Fatal(err)
			}
		}
		if noticed < 2 {
			t.Errorf("%s: that they repeat is noticed at step %d", name, noticed)
		}
	}
}

func TestSnapshotRefused(t *testing.T) {
	for _, text := range []string{
		`{"version":2}`, `{"version":1,"tasks":[{"task":""}]}`, `{"version":1,"tasks":[{"task":"t","steps":-1}]}`, `{"version":1,"tasks":[{"task":"t"},{"task":"t"}]}`,
		`{"version":1,"tasks":[{"task":"t","calls":[{"tool":0}]}]}`, `{"version":1,"tasks":[{"task":"t","tools":[{"name":"x","calls":-5}]}]}`,
	} {
		var s guard.Snapshot
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		g := newGuard(t, nil)
		if _, err := g.CheckStep(t.Context(), verdict.Step{Task: "kept"}, dollars(1)); err != nil {
			t.Fatal(err)
		}
		if err := g.Restore(s); !errors.Is(err, verdict.ErrInput) || g.State("kept").Steps != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
	g := newGuard(t, nil)
	if _, _, err := g.BeginStep(t.Context(), verdict.Step{Task: "t"}, dollars(1)); err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(guard.Snapshot{Version: 1}); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("with an open token: %v", err)
	}
}
