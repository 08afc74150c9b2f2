package guard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// callsOf judges and counts calls of one tool, a step each, and returns the verdict on
// the last.
func callsOf(t *testing.T, c *guard.Config, tool string, args ...string) verdict.Verdict {
	t.Helper()
	g := newGuard(t, c)
	var last verdict.Verdict
	for _, a := range args {
		v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: tool, Args: []byte(a)}}})
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		last = v
	}
	return last
}

func profiled(t *testing.T, p guard.Profile, section string) *guard.Config {
	t.Helper()
	c, problems := guard.ParseAs([]byte(section), p)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// TestNonceHidesNoLoop: a call that equals the one before it but for a nonce or for
// characters that nobody sees is that call again under strict; under compat, which has
// a published meaning, it is another one.
func TestNonceHidesNoLoop(t *testing.T) {
	for _, c := range [][2]string{
		{`{"path":"a.go","nonce":"k3"}`, `{"path":"a.go","nonce":"z9"}`},
		{`{"nonce":1}`, `{"nonce":2}`},
		{`{"path":"a.go","request_id":"0192f0c1-7a53-7c11-8a50-3d1c2b7e9f10"}`, `{"path":"a.go","request_id":"0192f0c1-9b00-7d22-9c61-4e2d3c8fa021"}`},
		{`{"path":"a.go","requestId":1}`, `{"requestId":2,"path":"a.go"}`},
		{`{"path":"a.go","X-Request-Id":"a"}`, `{"path":"a.go","X-Request-Id":"b"}`},
		{`{"path":"a.go","meta":{"Trace_ID":"f00d","timestamp":"2026-11-22T18:00:00Z"}}`, `{"path":"a.go","meta":{"timestamp":"2026-11-22T18:00:07Z","Trace_ID":"beef"}}`},
		{`{"path":"a.go","ts":1795370000123}`, `{"path":"a.go"}`},
		{`[{"path":"a.go","salt":"x"}]`, `[{"path":"a.go","salt":"y"}]`},
		{`{"path":"a.go"}`, `{"path":"a` + "\u200b" + `.go"}`},
		{`{"path":"a.go"}`, `{"path":"a\u200d.go"}`},
		{`{"path":"a.go"}`, `{"pa\u2060th":"a.go"}`},
		{`{"path":"a.go","no\u200bnce":"x"}`, `{"path":"a.go","n\ufeffonce":"y"}`},
		{`{"path":"\u00ada.go\udb40\udc41"}`, `{"path":"a.go\u0000"}`},
		{`{"path":"a.go"}`, `{"path":"a.g` + "\x7f" + `o"}`},
		{`{"path":"a.go"}`, `{"pa` + "\x7f" + `th":"a.go"}`},
		{`{"path":"a.go"}`, `{"path":"a\u007f\u0084.go\u0001"}`},
		{`{"path":"a.go","nonce":"x"}`, `{"path":"a.go","no` + "\x7f" + `nce":"y"}`},
		{`{"path":"é\u200b"}`, `{"path":"\u00e9\ufe0f"}`},
		{`{"path":"a.go","_cb":1}`, `{"path":"a.go","_cb":2}`},
		{`{"path":"a.go","seed":1,"cache_breaker":"x"}`, `{"path":"a.go","seed":2,"cache_breaker":"y"}`},
		{`{"path":"a.go\u2028"}`, `{"path":"a.go\u2029\ufffc"}`},
		{`{"path":"a.go` + "\u061c\u2066" + `"}`, `{"path":"a.go` + "\u2029" + `"}`},
		{`{"arguments":"{\"path\":1,\"nonce\":\"x1\"}"}`, `{"arguments":"{\"path\":1,\"nonce\":\"x2\"}"}`},
		{`{"arguments":" {\"path\":1.0,\"no\\u200bnce\":3}"}`, `{"arguments":"\u200b{\"salt\":[],\"path\":1}\n"}`},
		{`{"a":["[{\"path\":\"a\",\"ts\":1}]"]}`, `{"a":["[{\"path\":\"a\",\"ts\":2}]"]}`},
		{`{"a":"{\"b\":\"{\\\"c\\\":1,\\\"nonce\\\":1}\"}"}`, `{"a":"{\"b\":\"{\\\"c\\\":1,\\\"nonce\\\":2}\"}"}`},
		{`"{\"nonce\":1}"`, `"{\"nonce\":2}"`},
	} {
		if got := codes(callsOf(t, profiled(t, guard.Strict, `{}`), "read", c[0], c[1])); got != "abort [loop_repeat_tool]" {
			t.Errorf("strict, %s and %s: %s", c[0], c[1], got)
		}
		for section, p := range map[string]guard.Profile{`{}`: guard.Compat, `{"loop_detection":{"normalize":false}}`: guard.Strict} {
			if got := codes(callsOf(t, profiled(t, p, section), "read", c[0], c[1])); got != "ok" {
				t.Errorf("%s %s, %s and %s: %s", p, section, c[0], c[1], got)
			}
		}
	}
}

// TestOtherWorkIsNoLoop: calls that differ in what they are about are not stopped,
// however much that looks like a nonce, nor are those of a tool whose configuration
// says what counts.
func TestOtherWorkIsNoLoop(t *testing.T) {
	const own = `{"tool_calls":{"tools":{"read":{"volatile":["page"]},"at":{"loop_key":["timestamp"]}}}}`
	for _, c := range []struct{ section, tool, one, two string }{
		{`{}`, "order", `{"id":"0192f0c1-7a53-7c11-8a50-3d1c2b7e9f10"}`, `{"id":"0192f0c1-9b00-7d22-9c61-4e2d3c8fa021"}`},
		{`{}`, "order", `{"order":"0192f0c1-7a53-7c11-8a50-3d1c2b7e9f10","as":"pdf"}`, `{"order":"0192f0c1-9b00-7d22-9c61-4e2d3c8fa021","as":"pdf"}`},
		{`{}`, "trace", `{"trace_id":"a"}`, `{"trace_id":"b"}`},
		{`{}`, "set_clock", `{"timestamp":1}`, `{"timestamp":2}`},
		{`{}`, "book", `{"room":"a","time":"10:00"}`, `{"room":"a","time":"11:00"}`},
		{`{}`, "read", `{"path":"a b"}`, `{"path":"ab"}`},
		{`{}`, "read", `{"path":"a\tb"}`, `{"path":"ab"}`},
		{`{}`, "read", `{"path":"a"}`, `{"path":"á"}`},
		{`{}`, "read", `{"path":"a","nonces":1}`, `{"path":"a","nonces":2}`},
		{`{}`, "read", `{"a":"{\"path\":1,\"nonce\":1}"}`, `{"a":"{\"path\":2,\"nonce\":1}"}`},
		{`{}`, "read", `{"a":"{\"path\":1}"}`, `{"a":{"path":1}}`},
		{`{}`, "read", `{"a":"{\"trace_id\":1}"}`, `{"a":"{\"trace_id\":2}"}`},
		{`{}`, "read", `{"a":"{\"path\":1,\"nonce\":1"}`, `{"a":"{\"path\":1,\"nonce\":2"}`},
		{`{}`, "read", `{"a":"[1] \"nonce\":1"}`, `{"a":"[1] \"nonce\":2"}`},
		{own, "read", `{"q":"a","nonce":"x","page":1}`, `{"q":"a","nonce":"y","page":1}`},
		{own, "at", `{"timestamp":"10:00","metric":"cpu"}`, `{"timestamp":"10:01","metric":"cpu"}`},
	} {
		if got := codes(callsOf(t, profiled(t, guard.Strict, c.section), c.tool, c.one, c.two)); got != "ok" {
			t.Errorf("%s and %s: %s", c.one, c.two, got)
		}
	}
}

// TestRandomValuesAreAlmostTheSame: what only looks like a nonce may be what the call
// is about, so a run of calls that differ in nothing else is warned of, as any run of
// calls that are almost the same, and is not stopped.
func TestRandomValuesAreAlmostTheSame(t *testing.T) {
	random := func(form string) (args []string) {
		r := rand.New(rand.NewPCG(7, 7))
		for range 8 {
			value := map[string]string{
				"uuid":   fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64()>>16),
				"hex":    fmt.Sprintf("a1%016x", r.Uint64()),
				"moment": fmt.Sprintf("2026-11-22T18:%02d:%02d.%03dZ", r.IntN(60), r.IntN(60), r.IntN(1000)),
				"path":   fmt.Sprintf("/tmp/run-a0%016x/cats", r.Uint64()),
			}[form]
			args = append(args, fmt.Sprintf(`{"q":"cats","x":%q}`, value))
		}
		return args
	}
	strict := profiled(t, guard.Strict, `{}`)
	for _, form := range []string{"uuid", "hex", "moment", "path"} {
		args := random(form)
		if got := codes(callsOf(t, strict, "find", args[:7]...)); got != "ok" {
			t.Errorf("%s, 7 times: %s", form, got)
		}
		if v := callsOf(t, strict, "find", args...); codes(v) != "warn [loop_near_repeat]" || len(v.Notices) != 1 {
			t.Errorf("%s, 8 times: %s, notices %q", form, codes(v), v.Notices)
		}
		other := append(append([]string(nil), args[:4]...), append([]string{`{"q":"dogs"}`}, args[4:]...)...)
		if got := codes(callsOf(t, strict, "find", other...)); got != "ok" {
			t.Errorf("%s, with another call in between: %s", form, got)
		}
		if got := codes(callsOf(t, profiled(t, guard.Compat, `{}`), "find", args...)); got != "ok" {
			t.Errorf("%s, compat: %s", form, got)
		}
	}
	numbers := make([]string, 8)
	for i := range numbers {
		numbers[i] = fmt.Sprintf(`{"q":"cats","n":%d}`, 1795370000123+i*977)
	}
	if got := codes(callsOf(t, strict, "find", numbers...)); got != "warn [loop_near_repeat]" {
		t.Errorf("numbers of milliseconds: %s", got)
	}
	var only []string
	for _, args := range random("uuid") {
		only = append(only, strings.Replace(args, `"q":"cats",`, "", 1))
	}
	if got := codes(callsOf(t, strict, "order", only...)); got != "ok" {
		t.Errorf("eight orders, one after another: %s", got)
	}
}

// TestUnseenCharactersHideNoOutput: outputs that look the same are the same output.
func TestUnseenCharactersHideNoOutput(t *testing.T) {
	const said = "the build fails in package server since the handler writes its header twice"
	for _, text := range []string{"done", said, strings.Repeat(said+" ", 1200)} {
		for name, unseen := range map[string]string{"zero-width space": "\u200b", "joiner": "\u2060", "soft hyphen": "\u00ad", "tag": "\U000e0041", "selector": "\ufe0f", "line separator": "\u2028", "object": "\ufffc"} {
			var outputs []string
			for i := range 4 {
				words := strings.Split(text, " ")
				for j := range words {
					if k := (i + j) % (i + 2); i > 0 && k < len(words[j]) {
						words[j] = words[j][:k] + strings.Repeat(unseen, i) + words[j][k:]
					}
				}
				outputs = append(outputs, strings.Join(words, " "))
			}
			for p, want := range map[guard.Profile]string{guard.Strict: "abort [loop_repeat_output]", guard.Compat: "ok"} {
				g, got := newGuard(t, profiled(t, p, `{"loop_detection":{"max_repeats":3}}`)), ""
				for _, o := range outputs {
					v, _, err := g.Check(guard.CheckInput{TaskID: "t", Output: &o})
					if err != nil {
						t.Fatal(err)
					}
					got = codes(v)
				}
				if got != want && !(p == guard.Compat && len(text) > 1000) { // there, runs of five words come again by themselves
					t.Errorf("%s, %s in %d bytes: %s", p, name, len(text), got)
				}
			}
		}
	}
}

// TestNonceIsNoNews: what a transition brings is news only if more than a nonce is.
func TestNonceIsNoNews(t *testing.T) {
	for name, tc := range map[string]struct {
		say  func(i int) string
		want string
	}{
		"a nonce":        {func(i int) string { return fmt.Sprintf(`{"note":"tried","nonce":"n%d"}`, i) }, "abort [loop_state_cycle]"},
		"a request id":   {func(i int) string { return fmt.Sprintf(`{"note":"tried","request_id":%d}`, i) }, "abort [loop_state_cycle]"},
		"unseen":         {func(i int) string { return `{"note":"tried` + strings.Repeat("\u200b", i) + `"}` }, "abort [loop_state_cycle]"},
		"other findings": {func(i int) string { return fmt.Sprintf(`{"note":"tried %d"}`, i) }, "ok"},
	} {
		var steps [][3]string
		for i := range 4 {
			steps = append(steps, [3]string{"try", "busy", tc.say(i)})
		}
		if got := codes(walk(profiled(t, guard.Strict, `{}`), steps...)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestNonceHidesNoBatch: likewise for the batch loop guard, which in compat knows only
// the published names.
func TestNonceHidesNoBatch(t *testing.T) {
	const section = `{"batch_loop":{"warnThreshold":2,"hardLimit":2},"loop_detection":{"detect_identical_tool_calls":false}}`
	for _, c := range [][2]string{
		{`{"q":"a","request_id":"1"}`, `{"q":"a","request_id":"2"}`},
		{`{"q":"a","o":{"correlation-id":"1"}}`, `{"q":"a","o":{"correlation-id":"2"}}`},
		{`{"q":"a"}`, `{"q":"a\u200b"}`},
		{`{"q":"a"}`, `{"q":"\udb40\udc41a"}`},
		{`{"q":"a"}`, `{"q":"a\u2029\ufffc"}`},
		{`{"q":"a","_cb":1}`, `{"q":"a","_cb":2}`},
		{`{"arguments":"{\"q\":1,\"nonce\":\"x1\"}"}`, `{"arguments":"{\"nonce\":\"x2\",\"q\":1}"}`},
	} {
		for p, want := range map[guard.Profile]string{guard.Strict: "abort [batch_repeat]", guard.Compat: "ok"} {
			if got := codes(callsOf(t, profiled(t, p, section), "find", c[0], c[1])); got != want {
				t.Errorf("%s, %s and %s: %s, want %s", p, c[0], c[1], got, want)
			}
		}
	}
	if got := codes(callsOf(t, profiled(t, guard.Strict, section), "find", `{"a\u200b":1,"a":2}`, `{"a\u200b":2,"a":1}`)); got != "ok" {
		t.Errorf("two members that look alike: %s", got)
	}
}

// TestDifferentTextsStayDifferent: whatever two arguments differ in that people can
// see, they are different calls; and whatever is put into one that nobody sees, it is
// the same call.
func TestDifferentTextsStayDifferent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 11))
	letters := []rune("ab 01-_/.Aé漢😀\n\t")
	unseen := []rune{0x200B, 0x200C, 0x2060, 0xFEFF, 0xAD, 0xFE0F, 0x202E, 0xE0041}
	strict := profiled(t, guard.Strict, `{}`)
	say := func(s string) string {
		b, _ := json.Marshal(map[string]any{"text": s, "n": 1, "nonce": r.Uint64()})
		return string(b)
	}
	for range 3000 {
		var a, b, same []rune
		for range r.IntN(12) {
			c := letters[r.IntN(len(letters))]
			a, b, same = append(a, c), append(b, c), append(same, c)
			for range r.IntN(3) {
				same = append(same, unseen[r.IntN(len(unseen))])
			}
		}
		at := r.IntN(len(b) + 1)
		b = append(b[:at:at], append([]rune{letters[r.IntN(len(letters))]}, b[at:]...)...)
		if got := codes(callsOf(t, strict, "say", say(string(a)), say(string(b)))); got != "ok" {
			t.Fatalf("%q and %q: %s", string(a), string(b), got)
		}
		if got := codes(callsOf(t, strict, "say", say(string(a)), say(string(same)))); got != "abort [loop_repeat_tool]" {
			t.Fatalf("%q and %q: %s", string(a), string(same), got)
		}
	}
}

// TestLoadRefusesHiddenNames: a guards file is held to what a machine file is: no name in
// it has a character that cannot be seen.
func TestLoadRefusesHiddenNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guards.json")
	for text, code := range map[string]string{
		`{"tool_calls":{"allowed":["read","wri\u200bte"]}}`:  "hidden-character",
		`{"tool_calls":{"blast_radius":{"de\u0000ploy":1}}}`: "hidden-character",
		`{"tool_calls":{"allowed":["read"]}}`:                "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := guard.Load(path)
		e, refused := errors.AsType[*guard.ConfigError](err)
		if refused != (code != "") || refused && e.Problems[0].Code != code {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNearCallsAreOfOneTool: almost the same arguments count for the tool that has been
// called with them, however its name is disguised, and for no other.
func TestNearCallsAreOfOneTool(t *testing.T) {
	for want, tools := range map[string][]string{"warn [loop_near_repeat]": {"find", "fi\u200bnd"}, "ok": {"find", "search"}} {
		g := newGuard(t, profiled(t, guard.Strict, `{}`))
		var last verdict.Verdict
		for i := range 12 {
			args := fmt.Sprintf(`{"q":"of all the cats that live in the old town which one is the fattest and who feeds it in winter","page":%d}`, i)
			v, _, err := g.Check(guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: tools[i%2], Args: []byte(args)}}})
			if err != nil {
				t.Fatal(err)
			}
			if last = v; !v.Passed() || len(v.Reasons) > 0 {
				break
			}
		}
		if got := codes(last); got != want {
			t.Errorf("%q: %s, want %s", tools, got, want)
		}
	}
}
