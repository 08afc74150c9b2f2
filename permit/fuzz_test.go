package permit

import (
	"encoding/json"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzLines: no line makes Look panic, none that cannot be parsed is allowed anything, and
// none loses what it was when rm -rf / follows it.
func FuzzLines(f *testing.F) {
	for i, line := range tableLines(f) {
		if i%10 == 0 { // TestLines has them all
			f.Add(line)
		}
	}
	p := newPlace(f)
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 4096 {
			return
		}
		before := p.lookQuietly(line)
		_, err := syntax.NewParser().Parse(strings.NewReader(line), "")
		if err != nil && (before.Kind != kindDangerous || before.Inside || before.ReadOnly || before.Listed == "allow") {
			t.Fatalf("%q cannot be parsed (%v), and is %s", line, err, shown(before))
		}
		if before.Kind == kindDangerous && (before.Inside || before.ReadOnly) {
			t.Fatalf("%q is %s", line, shown(before))
		}
		if after := p.lookQuietly(line + "\n\nrm -rf /"); !atMost(after, before) || after.Kind != kindDangerous {
			t.Fatalf("%q is %s, with rm -rf / it is %s", line, shown(before), shown(after))
		}
		if after := p.lookQuietly("rm -rf /\n" + line); after.Kind != kindDangerous || after.Listed == "allow" {
			t.Fatalf("%q after rm -rf / is %s", line, shown(after))
		}
	})
}

// FuzzInput: no input of any tool makes Look panic, and what is no JSON is allowed nothing.
func FuzzInput(f *testing.F) {
	for tool := range tools {
		f.Add(tool, `{"command":"ls","file_path":"a.txt","changes":[{"path":"x"}]}`, "/work")
	}
	f.Add("fileChange", `{"changes":{"a":{"delete":{}}},"grantRoot":null}`, "/")
	f.Add("apply_patch", `{"input":"*** Delete File: ../x"}`, "")
	f.Add("Bash", `{"command":["a",1]`, ".")
	p := newPlace(f)
	p.settings.Rules = rules(f, []string{"Bash", "Edit", "Write(sub*)"}, nil)
	f.Fuzz(func(t *testing.T, tool, input, cwd string) {
		facts, err := lookAt(Prompt{Tool: tool, Input: json.RawMessage(input), Cwd: cwd}, p.settings)
		if err != nil || !json.Valid(facts.Input) || len(facts.InputDigest) != 64 || facts.Kind == "" {
			t.Fatalf("%+v, %v", facts, err)
		}
		if !json.Valid([]byte(input)) && (facts.Inside || facts.ReadOnly || facts.Listed == "allow") {
			t.Fatalf("%s of %q is %s", tool, input, shown(facts))
		}
	})
}

// FuzzPattern: a pattern that is read is written as it was, and one about something does not
// match what does not begin so.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"Bash", "Bash(git status*)", "Bash(x)", "(x", "Bash(", "Bash(:*)", "B*", "a b", "é(x)", "\xff", "Bash(a*b)"} {
		f.Add(s, "git status")
	}
	f.Fuzz(func(t *testing.T, text, against string) {
		p, err := ParsePattern(text)
		if err != nil {
			if p != (Pattern{}) || !strings.Contains(err.Error(), "the pattern ") {
				t.Fatalf("%q: %v, %v", text, p, err)
			}
			return
		}
		if p.String() != text {
			t.Fatalf("%q is written %q", text, p)
		}
		if p.about && p.fits(against) && !strings.HasPrefix(against, p.text) {
			t.Fatalf("%s fits %q", p, against)
		}
	})
}

// FuzzRules: a file that is read holds patterns only, and one that is not gives none.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"allow: [Bash]", "deny:\n  - Edit(x*)\n", `{"allow":["Bash"],"deny":[]}`, "allow: [Bash(]", "{", "a: &x [*x]", "alow: []"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, yaml bool) {
		name := map[bool]string{true: "p.yaml", false: "p.json"}[yaml]
		r, err := ParseRules(name, []byte(text))
		if err != nil && (r.Allow != nil || r.Deny != nil) {
			t.Fatalf("%q: %v, %v", text, r, err)
		}
		for _, p := range append(r.Allow, r.Deny...) {
			if p.tool == "" {
				t.Fatalf("%q holds an empty pattern", text)
			}
		}
	})
}

// TestDeep: nesting of any depth is judged in time, and what is too deep or too long is
// dangerous.
func TestDeep(t *testing.T) {
	p := newPlace(t)
	for name, line := range map[string]string{
		"brackets":      strings.Repeat("(", 16000),
		"subshells":     strings.Repeat("(", 4000) + "ls" + strings.Repeat(")", 4000),
		"substitutions": strings.Repeat("$(", 8000),
		"quotes":        strings.Repeat(`"$(`, 5000),
		"arithmetic":    "((" + strings.Repeat("(", 8000),
		"braces":        "ls " + strings.Repeat("{a,b}", 4000),
		"nested braces": "ls " + strings.Repeat("{a,", 5000),
		"long":          "ls " + strings.Repeat("a", maxLine),
		"many":          strings.Repeat("ls;", maxCommands+1),
		"words":         "unknown " + strings.Repeat("rm ", maxCommands+1),
		"texts":         "unknown " + strings.Repeat("'a b' ", 900),
		"stars":         "cat " + strings.Repeat("*?", 2000),
		"paths":         "cat " + strings.Repeat("a/", 2000),
		"options":       "cat " + strings.Repeat("-a=/:", 3000),
	} {
		f := p.lookQuietly(line)
		t.Logf("%s: %s", name, shown(f))
		if f.Listed == "allow" && name != "paths" && name != "stars" && name != "options" || f.Kind != kindDangerous && f.Inside && name != "braces" && name != "paths" {
			t.Errorf("%s: %s", name, shown(f))
		}
	}
}
