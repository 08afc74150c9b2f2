package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// TestUnseenCharactersHideNoTool: a tool whose name only looks the same is the same tool
// under strict, and a result that only looks the same is the same result, whatever the
// character; under compat both are others.
func TestUnseenCharactersHideNoTool(t *testing.T) {
	call := func(name, q, result string) guard.ToolCall {
		return guard.ToolCall{Name: name, Args: fmt.Appendf(nil, `{"q":"%s"}`, q), Result: fmt.Appendf(nil, `{"found":"%s"}`, result)}
	}
	for _, hidden := range []string{"\u200b", "\u2060", "\u00ad", "\ufe0f", "\u2800", "\U0001d159", "\u3164", "\U000e0041", "\ufdd0"} {
		for where, of := range map[string]func(more string) guard.ToolCall{
			"the name":      func(more string) guard.ToolCall { return call("sea"+more+"rch", "x", "same") },
			"the result":    func(more string) guard.ToolCall { return call("search", "x", "same"+more) },
			"the arguments": func(more string) guard.ToolCall { return call("search", "x"+more, "same") },
			"all of it":     func(more string) guard.ToolCall { return call("search"+more, more+"x", more+"same") },
		} {
			for p, want := range map[guard.Profile]string{guard.Strict: "abort [loop_no_progress]", guard.Compat: "ok"} {
				g, got := newGuard(t, profiled(t, p, `{}`)), ""
				for i := range 3 {
					v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []guard.ToolCall{of(strings.Repeat(hidden, i))}})
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
	for _, other := range []guard.ToolCall{call("search2", "x", "same"), call("searc", "x", "same"), call("search", "x", "same2"), call("search", "x y", "same")} {
		g := newGuard(t, strict)
		for _, c := range []guard.ToolCall{call("search", "x", "same"), other} {
			if v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []guard.ToolCall{c}}); err != nil || !v.Passed() {
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
		v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []guard.ToolCall{{Name: name, Args: []byte(`{"q":1}`)}}})
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
// for white space.
func TestUnseenIsHidden(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r == 0xD800 {
			r = 0xE000 // halves of surrogate pairs are no characters
		}
		_, at := machine.Hidden(string(r))
		if want := at > 0 && !unicode.IsSpace(r); guard.Unseen(r) != want {
			t.Errorf("U+%04X: unseen is %t", r, !want)
		}
	}
}
