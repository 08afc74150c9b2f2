package guard_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A walk executes steps "transition:state:metaJson" of a session that knows
// something, and returns the verdict on the last of them.
func walk(c *guard.Config, steps ...[3]string) verdict.Verdict {
	var s guard.State
	var v verdict.Verdict
	for _, w := range steps {
		step := verdict.Step{Transition: w[0], State: w[1], MetaJSON: []byte(w[2]), SessionMeta: []byte(`{"id":7}`)}
		v = c.Check(s, step)
		s = s.Advance(c, step)
	}
	return v
}

func repeat(n int, steps ...[3]string) (all [][3]string) {
	for range n {
		all = append(all, steps...)
	}
	return all
}

// TestNewsIsProgress: a state may be visited again as long as something has
// become known since; only what was said counts, not how it was written.
func TestNewsIsProgress(t *testing.T) {
	c := parse(t, `{}`) // 3 visits
	for name, tc := range map[string]struct {
		steps [][3]string
		want  string
	}{
		"the same thing a third time":  {repeat(3, [3]string{"try", "busy", `{"a":1}`}), "ok"},
		"the same thing a fourth time": {repeat(4, [3]string{"try", "busy", `{"a":1}`}), "abort [loop_state_cycle]"},
		"a cycle of two":               {repeat(4, [3]string{"go", "there", ""}, [3]string{"back", "here", `{"ok":false}`}), "abort [loop_state_cycle loop_cycle]"},
		"a new result each time":       {[][3]string{{"try", "busy", "1"}, {"try", "busy", "2"}, {"try", "busy", "3"}, {"try", "busy", "4"}, {"try", "busy", "5"}}, "ok"},
		"back to an old result":        {[][3]string{{"try", "busy", "1"}, {"try", "busy", "2"}, {"try", "busy", "1"}, {"try", "busy", "2"}, {"try", "busy", "1"}, {"try", "busy", "2"}, {"try", "busy", "1"}}, "abort [loop_state_cycle]"},
		"members in another order": {[][3]string{{"try", "busy", `{"a":1,"b":[{"c":2,"d":3}]}`}, {"try", "busy", `{"b":[{"d":3,"c":2}],"a":1}`},
			{"try", "busy", `{"a":1,"b":[{"d":3,"c":2}]}`}, {"try", "busy", `{"b":[{"c":2,"d":3}],"a":1}`}}, "abort [loop_state_cycle]"},
		"blanks and other escapes":        {[][3]string{{"try", "busy", `{"é":"/"}`}, {"try", "busy", ` { "\u00e9" : "\/" } `}, {"try", "busy", `{"é":"/"}`}, {"try", "busy", "{\n\"é\":\"/\"}"}}, "abort [loop_state_cycle]"},
		"one number in four forms":        {[][3]string{{"try", "busy", "[100,0]"}, {"try", "busy", "[1e2,-0]"}, {"try", "busy", "[100.0,0.0]"}, {"try", "busy", "[10.0E1,-0.0]"}}, "abort [loop_state_cycle]"},
		"elements in another order":       {[][3]string{{"try", "busy", "[1,2]"}, {"try", "busy", "[2,1]"}, {"try", "busy", "[1,2]"}, {"try", "busy", "[2,1]"}}, "ok"},
		"numbers that differ at the end":  {[][3]string{{"try", "busy", "9007199254740992"}, {"try", "busy", "9007199254740993"}, {"try", "busy", "9007199254740994"}, {"try", "busy", "9007199254740995"}}, "ok"},
		"a number is not its text":        {[][3]string{{"try", "busy", "1"}, {"try", "busy", `"1"`}, {"try", "busy", "true"}, {"try", "busy", "null"}}, "ok"},
		"what is no JSON, byte for byte":  {[][3]string{{"try", "busy", "{a"}, {"try", "busy", "{ a"}, {"try", "busy", "{a"}, {"try", "busy", "{ a"}}, "ok"},
		"other states in between":         {[][3]string{{"a", "busy", ""}, {"b", "x", ""}, {"a", "busy", ""}, {"b", "y", ""}, {"a", "busy", ""}, {"b", "z", ""}, {"a", "busy", ""}}, "abort [loop_state_cycle]"},
		"two results that change places":  {[][3]string{{"a", "busy", `"x"`}, {"b", "busy", `"y"`}, {"a", "busy", `"y"`}, {"b", "busy", `"x"`}}, "ok"},
		"the same in another transition":  {[][3]string{{"a", "busy", `"x"`}, {"b", "busy", `"x"`}, {"c", "busy", `"x"`}, {"d", "busy", `"x"`}}, "ok"},
		"what another transition learned": {[][3]string{{"a", "busy", ""}, {"a", "busy", ""}, {"a", "busy", ""}, {"b", "x", "1"}, {"a", "busy", ""}}, "ok"},
	} {
		if got := codes(walk(c, tc.steps...)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestExchangedResultsAreNews pins a bug: what two transitions had learned was
// summed so that exchanging it made no difference.
func TestExchangedResultsAreNews(t *testing.T) {
	c := parse(t, `{"loop_detection":{"max_state_visits":1}}`)
	steps := [][3]string{{"a", "p", `"x"`}, {"b", "q", `"y"`}, {"a", "r", `"y"`}, {"b", "q", `"x"`}}
	if got := codes(walk(c, steps...)); got != "ok" {
		t.Errorf("q with {a: y, b: x} after q with {a: x, b: y}: %s", got)
	}
}

// TestNothingKnownOnlyWarns: where neither session nor transitions have
// metaJson, nobody can tell a loop from progress.
func TestNothingKnownOnlyWarns(t *testing.T) {
	c := parse(t, `{}`)
	step := verdict.Step{State: "here"}
	if got := codes(c.Check(visited(c, 3, step), step)); got != "warn [loop_state_cycle]" {
		t.Errorf("a session that knows nothing: %s", got)
	}
	told := verdict.Step{State: "here", Transition: "t", MetaJSON: []byte("{}")}
	if got := codes(c.Check(visited(c, 3, told), told)); got != "abort [loop_state_cycle]" {
		t.Errorf("a session whose transition said something: %s", got)
	}
}

// TestHistoryForgets: a visit beyond the ring is as if it had not been.
func TestHistoryForgets(t *testing.T) {
	c := parse(t, `{"loop_detection":{"max_state_visits":1},"store":{"history_limit":3}}`)
	step := func(name string) verdict.Step { return verdict.Step{State: name, SessionMeta: []byte("1")} }
	s := guard.State{}.Advance(c, step("home")).Advance(c, step("x")).Advance(c, step("y"))
	if v := c.Check(s, step("home")); codes(v) != "abort [loop_state_cycle]" || !slices.Equal(v.Reasons[0].Indices, []int32{0}) {
		t.Errorf("the oldest of three visits: %s at %v", codes(v), v.Reasons)
	}
	if got := codes(c.Check(s.Advance(c, step("z")), step("home"))); got != "ok" {
		t.Errorf("a visit that was forgotten: %s", got)
	}
	// A configuration made by hand, not by Parse, keeps nothing and panics nowhere.
	var made guard.Config
	if s := visited(&made, 5, step("home")); s.Steps != 5 {
		t.Errorf("%d steps were counted", s.Steps)
	}
}

// TestCyclesAgainstHistory compares the check with one that keeps everything and
// compares it as text.
func TestCyclesAgainstHistory(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		limit, ring := 1+rng.Int64N(4), 1+rng.IntN(12)
		c := parse(t, fmt.Sprintf(`{"loop_detection":{"max_state_visits":%d,"cycle":false},"store":{"history_limit":%d}}`, limit, ring))
		var s guard.State
		var history []string
		known := map[string]string{}
		for range 40 {
			step := verdict.Step{State: pick(rng, "p", "q", "r"), Transition: pick(rng, "a", "b"), SessionMeta: []byte(`"s"`)}
			if meta := pick(rng, "", "", "1", "2"); meta != "" {
				step.MetaJSON = []byte(meta)
			}
			if step.MetaJSON != nil {
				known[step.Transition] = string(step.MetaJSON)
			}
			visit := fmt.Sprint(step.State, known)
			var indices []int32
			start := max(0, len(history)-ring)
			for i, h := range history[start:] {
				if h == visit {
					indices = append(indices, int32(i))
				}
			}
			v := c.Check(s, step)
			if over := int64(len(indices))+1 > limit; over != (v.Status == verdict.Abort) || over && !slices.Equal(v.Reasons[0].Indices, indices) {
				t.Fatalf("seed %d: limit %d, ring %d: %s after %q is %s %+v, want visits %v", seed, limit, ring, visit, history, codes(v), v.Reasons, indices)
			}
			history = append(history, visit)
			s = s.Advance(c, step)
		}
	}
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// TestStatesAreValues: whatever follows from a state, it stays what it was.
func TestStatesAreValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	c := parse(t, `{"store":{"history_limit":4}}`)
	type kept struct {
		state, copied guard.State
		verdict       verdict.Verdict
	}
	probe := verdict.Step{State: "p", Transition: "a", MetaJSON: []byte("1"), SessionMeta: []byte("0")}
	states := []kept{{}}
	for range 2000 {
		from := states[rng.IntN(len(states))].state
		step := verdict.Step{State: pick(rng, "p", "q"), Transition: pick(rng, "a", "b"), MetaJSON: []byte(pick(rng, "", "1", "2")), SessionMeta: []byte("0"), TokensIn: rng.Int64N(9)}
		next := from.Advance(c, step).Charge(specialist.Usage{NumInputTokens: rng.Int64N(9)}, "m").Correct(specialist.Usage{CostUSD: 1}, specialist.Usage{CostUSD: exact.Money(rng.Int64N(9))})
		states = append(states, kept{next, next, c.Check(next, probe)})
	}
	for i, k := range states[1:] {
		if v := c.Check(k.state, probe); !reflect.DeepEqual(v, k.verdict) || !reflect.DeepEqual(k.state, k.copied) {
			t.Fatalf("seed %d: state %d is judged %v, and was %v when it was made", seed, i, v, k.verdict)
		}
	}
}

func TestChargeAndCorrect(t *testing.T) {
	s := guard.State{}.
		Charge(specialist.Usage{NumInputTokens: 10, NumOutputTokens: 5}, "mystery").
		Charge(specialist.Usage{NumInputTokens: 1}.WithCost(exact.Dollar), "known").
		Charge(specialist.Usage{Estimated: true}.WithCost(3*exact.Dollar), "known").
		Charge(specialist.Usage{NumOutputTokens: 2}, "")
	want := spend.Book{Calls: 4, TokensIn: 11, TokensOut: 7, Money: 4 * exact.Dollar, Unpriced: 1, Estimated: 1}
	if s.Spent != want || s.Steps != 0 || s.TokensIn != 0 || s.Money != 0 {
		t.Errorf("charged %+v, progress %d %d %s, want %+v and no progress", s.Spent, s.Steps, s.TokensIn, s.Money, want)
	}
	if got := s.Correct(specialist.Usage{CostUSD: 3 * exact.Dollar}, specialist.Usage{CostUSD: exact.Dollar}).Spent.Money; got != 2*exact.Dollar {
		t.Errorf("an estimate of $3 that cost $1 leaves $%s of $4", got)
	}
}

// TestLoopWarningsSteer: what only warns of a loop is also a notice, for those who
// are asked next; what stops is none.
func TestLoopWarningsSteer(t *testing.T) {
	for _, c := range []struct {
		section, code string
		notices       int
	}{
		{`{"loop_detection":{"max_state_visits":1,"progress_aware":true}}`, "loop_state_cycle", 1}, // nothing is known
		{`{"loop_detection":{"max_state_visits":1}}`, "loop_state_cycle", 0},
		{`{"loop_detection":{"max_state_visits":9,"progress_aware":true,"cycle":{"repeats":2}}}`, "loop_cycle", 1},
	} {
		config, problems := guard.ParseAs([]byte(c.section), guard.Compat)
		if problems != nil {
			t.Fatal(problems)
		}
		g := newGuard(t, config)
		v, _, err := g.Check(guard.CheckInput{TaskID: "t", State: "a"})
		for i := 1; err == nil && len(v.Reasons) == 0; i++ {
			v, _, err = g.Check(guard.CheckInput{TaskID: "t", State: []string{"a", "b"}[i%2]})
		}
		if err != nil || v.Reasons[0].Code != c.code || len(v.Notices) != c.notices {
			t.Errorf("%s: %s (%v), notices %q, want %d of %s", c.section, codes(v), err, v.Notices, c.notices, c.code)
			continue
		}
		if c.notices > 0 && !strings.Contains(v.Notices[0], v.Reasons[0].Message) {
			t.Errorf("%s: the notice %q does not say %q", c.section, v.Notices[0], v.Reasons[0].Message)
		}
	}
}
