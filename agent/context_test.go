package agent_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/dialai/dialai/agent"
)

var usual = agent.Levels{Soft: 70, Hard: 85}

// TestLevels plays values of one context one after the other: what each crosses, once.
func TestLevels(t *testing.T) {
	type step struct {
		used int64
		want agent.Level
	}
	cases := []struct {
		name  string
		of    int64
		steps []step
	}{
		{"below, soft, hard", 1000, []step{{0, ""}, {699, ""}, {700, agent.Soft}, {710, ""}, {849, ""}, {850, agent.Hard}, {999, ""}}},
		{"a jump past both is told once", 1000, []step{{600, ""}, {900, agent.Hard}, {910, ""}, {720, ""}}},
		{"soft again once 5 points below", 1000, []step{{700, agent.Soft}, {651, ""}, {700, ""}, {650, ""}, {700, agent.Soft}}},
		{"hard again once 5 points below", 1000, []step{{850, agent.Hard}, {801, ""}, {850, ""}, {800, ""}, {850, agent.Hard}}},
		{"hard left, soft not", 1000, []step{{850, agent.Hard}, {700, ""}, {840, ""}, {850, agent.Hard}}},
		{"all left by a compaction", 1000, []step{{900, agent.Hard}, {100, ""}, {700, agent.Soft}, {850, agent.Hard}}},
		{"over the whole", 1000, []step{{1200, agent.Hard}}},
		{"no fraction rounds up to a level", 177_000, []step{{123_899, ""}, {123_900, agent.Soft}, {150_449, ""}, {150_450, agent.Hard}}},
		{"nor down", 3, []step{{2, ""}, {3, agent.Hard}}},
		{"not known", 0, []step{{900, ""}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var state agent.Crossed
			for i, s := range c.steps {
				var got agent.Level
				if got, state = usual.Cross(state, s.used, c.of); got != s.want {
					t.Fatalf("step %d: %d of %d crosses %q, want %q", i, s.used, c.of, got, s.want)
				}
			}
		})
	}
}

// TestLevelsUnknown: where the whole is not known, what was crossed stays so.
func TestLevelsUnknown(t *testing.T) {
	was := agent.Crossed{Soft: true}
	if level, is := usual.Cross(was, 0, 0); level != "" || is != was {
		t.Fatalf("crosses %q and leaves %+v", level, is)
	}
}

// TestLevelsAnew works out in another way what each value of a random context crosses: by the
// history of values since the level was last told.
func TestLevelsAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.Int64Range(1, 1_000_000).Draw(t, "of")
		values := rapid.SliceOfN(rapid.Int64Range(0, of+of/10), 1, 40).Draw(t, "values")
		armed := map[int]bool{usual.Soft: true, usual.Hard: true}
		var state agent.Crossed
		for i, used := range values {
			for level := range armed {
				if used*100 <= of*int64(level)-5*of {
					armed[level] = true
				}
			}
			var want agent.Level
			switch {
			case armed[usual.Hard] && used*100 >= of*85:
				want, armed[usual.Hard], armed[usual.Soft] = agent.Hard, false, false
			case armed[usual.Soft] && used*100 >= of*70:
				want, armed[usual.Soft] = agent.Soft, false
			}
			var got agent.Level
			if got, state = usual.Cross(state, used, of); got != want {
				t.Fatalf("value %d, %d of %d: crosses %q, want %q", i, used, of, got, want)
			}
		}
	})
}

// TestPercent: the share is rounded half up, may be over 100, and is -1 where it is not known.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		usage agent.Usage
		base  agent.Base
		want  int
	}{
		{agent.Usage{Used: 78, Ceiling: 100}, agent.Ceiling, 78},
		{agent.Usage{Used: 156_000, Ceiling: 200_000}, "", 78},
		{agent.Usage{Used: 774, Ceiling: 1000}, agent.Ceiling, 77},
		{agent.Usage{Used: 775, Ceiling: 1000}, agent.Ceiling, 78},
		{agent.Usage{Used: 995, Ceiling: 1000}, agent.Ceiling, 100},
		{agent.Usage{Used: 1_240, Ceiling: 1000}, agent.Ceiling, 124},
		{agent.Usage{Ceiling: 1000}, agent.Ceiling, 0},
		{agent.Usage{Used: 100, Ceiling: 100, Window: 200}, agent.Window, 50},
		{agent.Usage{Used: 100, Window: 200}, agent.Ceiling, -1},
		{agent.Usage{Used: 100, Ceiling: 200}, agent.Window, -1},
	} {
		if got := c.usage.Percent(c.base); got != c.want {
			t.Errorf("%+v by %q is at %d per cent, want %d", c.usage, c.base, got, c.want)
		}
	}
}
