package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// TestUnseenCharactersHideNoTool: a tool whose name only looks the same is the same tool
// under strict, and a result that only looks the same is the same result, whatever the
// character; under compat both are others.
func TestUnseenCharactersHideNoTool(t *testing.T) {
	call := func(name, q, result string) verdict.ToolCall {
		return verdict.ToolCall{Name: name, Args: fmt.Appendf(nil, `{"q":"%s"}`, q), Result: fmt.Appendf(nil, `{"found":"%s"}`, result)}
	}
	for _, hidden := range []string{"\u200b", "\u2060", "\u00ad", "\ufe0f", "\u2800", "\U0001d159", "\u3164", "\U000e0041", "\ufdd0"} {
		for where, of := range map[string]func(more string) verdict.ToolCall{
			"the name":      func(more string) verdict.ToolCall { return call("sea"+more+"rch", "x", "same") },
			"the result":    func(more string) verdict.ToolCall { return call("search", "x", "same"+more) },
			"the arguments": func(more string) verdict.ToolCall { return call("search", "x"+more, "same") },
			"all of it":     func(more string) verdict.ToolCall { return call("search"+more, more+"x", more+"same") },
		} {
			for p, want := range map[guard.Profile]string{guard.Strict: "abort [loop_no_progress]", guard.Compat: "ok"} {
				g, got := newGuard(t, profiled(t, p, `{}`)), ""
				for i := range 3 {
					v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{of(strings.Repeat(hidden, i))}})
					if err != nil {
						t.Fatal(err)
					}
					got = codes(v)
				}
				if got != want && (p == guard.Strict || where != "the result") { // compat looks at no result
					t.Errorf("%s, U+%04X in %s: %s, want %s", p, []rune(hidden)[0], where, got, want)
				}
			}
		}
	}
	strict := profiled(t, guard.Strict, `{}`)
	for _, other := range []verdict.ToolCall{call("search2", "x", "same"), call("searc", "x", "same"), call("search", "x", "same2"), call("search", "x y", "same")} {
		g := newGuard(t, strict)
		for _, c := range []verdict.ToolCall{call("search", "x", "same"), other} {
			if v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{c}}); err != nil || !v.Passed() {
				t.Errorf("%s %s %s: %s %v", c.Name, c.Args, c.Result, codes(v), err)
			}
		}
	}
}

// TestUnseenCharactersHideNoBatch: likewise for the names of a batch.
func TestUnseenCharactersHideNoBatch(t *testing.T) {
	const section = `{"batch_loop":{"warnThreshold":2,"hardLimit":2},"loop_detection":{"detect_identical_tool_calls":false}}`
	g, got := newGuard(t, profiled(t, guard.Strict, section)), ""
	for _, name := range []string{"search", "sear\u200bch"} {
		v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: name, Args: []byte(`{"q":1}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		got = codes(v)
	}
	if got != "abort [batch_repeat]" {
		t.Errorf("a batch in disguise: %s", got)
	}
}

// TestUnseenIsHidden: what loops are compared without is what names may not hold, but
// for white space that is no separator of lines or paragraphs, and the sign for an object
// that is not there.
func TestUnseenIsHidden(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r == 0xD800 {
			r = 0xE000 // halves of surrogate pairs are no characters
		}
		_, at := machine.Hidden(string(r))
		separates := unicode.In(r, unicode.Zl, unicode.Zp)
		if want := at > 0 && (separates || !unicode.IsSpace(r)) || r == 0xFFFC; text.Unseen(r) != want {
			t.Errorf("U+%04X: unseen is %t", r, !want)
		}
	}
}

// TestUnseenCharactersSplitNoLimit: under strict, the rules for a tool hold for calls
// whose name only looks the same, and count them together; under compat they are other
// tools. The list of allowed tools is compared letter by letter under both.
func TestUnseenCharactersSplitNoLimit(t *testing.T) {
	for _, c := range []struct {
		section string
		steps   [][]string
		want    string
	}{
		{`{"tool_calls":{"blast_radius":{"send":2}}}`, [][]string{{"send"}, {"se\u200bnd"}, {"sen\u2060d"}}, "abort [tool_blast_radius]"},
		{`{"tool_calls":{"blast_radius":{"send":2}}}`, [][]string{{"s\u200bend", "send", "send\u00ad"}}, "abort [tool_blast_radius]"},
		{`{"tool_calls":{"mutex":[["send","drop"]]}}`, [][]string{{"send", "dr\u200bop", "d\u200brop"}}, "abort [tool_mutex]"},
		{`{"tool_calls":{"mutex":[["send","drop"]],"mutex_scope":"task"}}`, [][]string{{"se\u200bnd"}, {"drop"}}, "abort [tool_mutex]"},
		{`{"tool_calls":{"sequence":[{"tool":"send","requires_prev":"look"}]}}`, [][]string{{"sen\u200bd"}}, "abort [tool_sequence]"},
		{`{"tool_calls":{"arg_schemas":{"send":{"type":"object","required":["to"]}}}}`, [][]string{{"sen\u200bd"}}, "retry [tool_args_invalid]"},
	} {
		for p, want := range map[guard.Profile]string{guard.Strict: c.want, guard.Compat: "ok"} {
			g, got, n := newGuard(t, profiled(t, p, c.section)), "", 0
			for _, names := range c.steps {
				var calls []verdict.ToolCall
				for _, name := range names {
					n++
					calls = append(calls, verdict.ToolCall{Name: name, Args: fmt.Appendf(nil, `{"q":%d}`, n)})
				}
				v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: calls})
				if err != nil {
					t.Fatal(err)
				}
				if got = codes(v); len(v.Reasons) > 2 {
					t.Errorf("%s %s: one tool is told of more than once: %v", p, c.section, v.Reasons)
				}
			}
			if !strings.HasPrefix(got, want[:len(want)-1]) {
				t.Errorf("%s %s, %q: %s, want %s", p, c.section, c.steps, got, want)
			}
		}
	}
	for _, p := range []guard.Profile{guard.Strict, guard.Compat} {
		g := newGuard(t, profiled(t, p, `{"tool_calls":{"allowed":["send"]}}`))
		v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: "send"}, {Name: "se\u200bnd"}}})
		if err != nil || !strings.Contains(codes(v), "tool_not_allowed") {
			t.Errorf("%s: a tool in disguise is allowed: %s, %v", p, codes(v), err)
		}
	}
}
