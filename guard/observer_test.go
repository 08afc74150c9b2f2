package guard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// TestObserverThatPanics: a step that the observer cannot be told of is stopped and
// does not count, by every way in; the caller sees no panic, the task stays usable, and
// what the step spent is spent.
func TestObserverThatPanics(t *testing.T) {
	broken := true
	told := 0
	g, err := guard.New(configOf(t, `{"loop_detection":{"max_output_repeats":false}}`), guard.WithObserver(func(guard.Observation) {
		if told++; broken {
			panic("a bug")
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	in := guard.CheckInput{TaskID: "t", TokensIn: 7}
	ways := map[string]func() (verdict.Verdict, error){
		"Check": func() (verdict.Verdict, error) { v, _, err := g.Check(in); return v, err },
		"Begin": func() (verdict.Verdict, error) {
			v, token, err := g.Begin(t.Context(), in)
			if token != nil {
				token.Commit()
			}
			return v, err
		},
		"CheckStep": func() (verdict.Verdict, error) {
			return g.CheckStep(t.Context(), verdict.Step{Task: "t"}, specialist.Usage{NumInputTokens: 7, Given: specialist.InputGiven})
		},
	}
	for name, judge := range ways {
		v, err := judge()
		if err != nil || v.Status != verdict.Abort || codes(v) != "abort [internal_error]" || !strings.Contains(v.Reasons[0].Message, "the observer") {
			t.Errorf("%s: %s (%v)", name, codes(v), err)
		}
	}
	if err := g.Clear("t", "loop_cycle", "ann", "fine"); err == nil || !strings.Contains(err.Error(), "the observer") {
		t.Errorf("clearing: %v", err)
	}
	broken = false
	for name, judge := range ways {
		if v, err := judge(); err != nil || !v.Passed() {
			t.Errorf("%s, once it is mended: %s (%v)", name, codes(v), err)
		}
	}
	if _, m, err := g.DryRun(in); err != nil || m.Steps != int64(len(ways)) || m.Spent.TokensIn != 7*2*int64(len(ways)) || told != 2*len(ways)+1 {
		t.Errorf("counted %d steps and %d tokens, told %d times (%v)", m.Steps, m.Spent.TokensIn, told, err)
	}
}

// TestContextThatIsNoJSON: it would be news with every byte, and so let each loop pass.
func TestContextThatIsNoJSON(t *testing.T) {
	g := newGuard(t, configOf(t, `{}`))
	for context, fine := range map[string]bool{"": true, `{"a":1}`: true, "7": true, " null ": true, "step 7": false, "{": false, `{"a":1}{}`: false, "\xff": false} {
		_, _, err := g.Check(guard.CheckInput{TaskID: context, Context: []byte(context)})
		if context == "" {
			_, _, err = g.Check(guard.CheckInput{TaskID: "t"})
		}
		if fine != (err == nil) || !fine && !errors.Is(err, verdict.ErrInput) {
			t.Errorf("%q: %v", context, err)
		}
		if _, err := g.CheckStep(t.Context(), verdict.Step{Task: "s", Context: []byte(context)}, specialist.Usage{}); fine != (err == nil) {
			t.Errorf("%q, as a step: %v", context, err)
		}
	}
}
