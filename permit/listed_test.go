package permit

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestPatterns: what a pattern is, and what is said of a text that is none.
func TestPatterns(t *testing.T) {
	for _, text := range []string{"Bash", "Bash(git status*)", "Bash(npm test)", "mcp__files__read", "Edit(/etc/x)", "Bash(echo (a)*)", "Bash(a))", "item/tool/requestUserInput"} {
		p, err := ParsePattern(text)
		if err != nil || p.String() != text {
			t.Errorf("%s is %s (%v)", text, p, err)
		}
	}
	for text, want := range map[string]string{
		"":               `the pattern "" is empty: name a tool, such as Bash, or Bash(git status*)`,
		"(git status)":   `the pattern "(git status)" names no tool: write the tool before the bracket, such as Bash(git status)`,
		"git status*":    `the pattern "git status*" does not begin with the name of a tool: for a command write Bash(git status*)`,
		"*":              `the pattern "*" does not begin with the name of a tool: a tool is named in full, such as Bash or mcp__files__read; what it is given stands in brackets`,
		"mcp__*":         `the pattern "mcp__*" does not begin with the name of a tool: a tool is named in full, such as Bash or mcp__files__read; what it is given stands in brackets`,
		"Bash(x":         `the pattern "Bash(x" has a bracket that is not closed: write Bash(x)`,
		"Bash)":          `the pattern "Bash)" has a bracket that nothing opens: write Bash or Tool(text)`,
		"Bash()":         `the pattern "Bash()" has empty brackets: for all that the tool is given write Bash`,
		"Bash(*)":        `the pattern "Bash(*)" is about everything: for all that the tool is given write Bash`,
		"Bash(git:*)":    `the pattern "Bash(git:*)" ends in :*: a beginning ends in * alone: Bash(git*)`,
		"Bash(git * -n)": `the pattern "Bash(git * -n)" has a * that is not at its end: only how something begins can be given: Bash(git *)`,
		"Bash(**)":       `the pattern "Bash(**)" has a * that is not at its end: only how something begins can be given: Bash(*)`,
		"Bash( git)":     `the pattern "Bash( git)" has blanks at an end of what is in brackets: write Bash(git)`,
		"Bash(a\u200b)":  `the pattern "Bash(a\u200b)" holds characters that are not seen: write it with plain characters, in one line`,
		"Bash(a\nb)":     `the pattern "Bash(a\nb)" holds characters that are not seen: write it with plain characters, in one line`,
	} {
		if p, err := ParsePattern(text); err == nil || err.Error() != want {
			t.Errorf("%q is %s\n  says %v\n  want %s", text, p, err, want)
		}
	}
}

// TestRulesFile: a file of permissions is read strictly, in JSON and YAML, and each mistake is
// said with its place.
func TestRulesFile(t *testing.T) {
	good := "# mine\nallow:\n  - Bash(git status*)\n  - Edit\ndeny: [\"Bash(docker*)\"]\nx-owner: me\n"
	for name, text := range map[string]string{"p.yaml": good, "p.json": `{"allow": ["Bash(git status*)", "Edit"], "deny": ["Bash(docker*)"]}`} {
		r, err := ParseRules(name, []byte(text))
		if err != nil || len(r.Allow) != 2 || r.Allow[0].String() != "Bash(git status*)" || len(r.Deny) != 1 {
			t.Errorf("%s: %v %v", name, r, err)
		}
	}
	for text, want := range map[string][]string{
		"allow:\n  - Bash(git\n":           {"p.yaml:2:5", `the pattern "Bash(git" has a bracket that is not closed`, "write Bash(git)"},
		"alow: [Bash]\ndeny: []\n":         {"p.yaml:1:1", `permissions has no field "alow"`, "allow"},
		"allow: Bash\n":                    {"p.yaml:1:8", "allow must be a list"},
		"allow: [1]\n":                     {"p.yaml:1:9", "not a name"},
		"allow: [\"\"]\n":                  {"p.yaml:1:9", "not a name"},
		"allow: [Bash]\nallow: [Edit]\n":   {"p.yaml:2:1", "already defined"},
		"- Bash\n":                         {"p.yaml:1:1", "must be an object"},
		"allow: [Bash\n":                   {"p.yaml:1", ""},
		"names: [x]\n":                     {"p.yaml", "none of its fields is a field of permissions"},
		"deny: [\"git push\"]\nallow: 3\n": {"p.yaml:1:8", "Bash(git push)", "p.yaml:2:8"},
	} {
		r, err := ParseRules("p.yaml", []byte(text))
		if _, ok := errors.AsType[*machine.Error](err); !ok || r.Allow != nil || r.Deny != nil {
			t.Errorf("%q: %v, %v", text, r, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q says\n%v\nand not %q", text, err, part)
			}
		}
	}
}

// TestToolNames: Bash stands for every tool that is a shell, and no other name for another.
func TestToolNames(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct{ allow, tool, want string }{
		{"Bash", "shell", "allow"}, {"shell", "Bash", "allow"}, {"Bash", "commandExecution", "allow"}, {"Edit", "Write", ""}, {"bash", "Bash", ""}, {"Bash", "Bashful", ""},
	} {
		p.settings.Rules = rules(t, []string{c.allow}, nil)
		if f := p.lookAt(t, c.tool, map[string]string{"command": "ls"}); f.Listed != c.want {
			t.Errorf("%s for %s: %q, want %q", c.allow, c.tool, f.Listed, c.want)
		}
	}
	if (Pattern{}).names("") {
		t.Error("no pattern is about no tool")
	}
}

// TestListedWrapped: a line that a shell of the system runs, as Codex has it, is listed as the line
// itself; anything else about the shell is not.
func TestListedWrapped(t *testing.T) {
	p := newPlace(t)
	p.settings.Rules = rules(t, []string{"Bash(git status*)", "Bash(printf*)"}, []string{"Bash(git push*)"})
	for line, want := range map[string]string{
		`/bin/bash -lc 'git status -s'`:                  "allow",
		`/bin/bash -lc 'git status; printf a'`:           "allow",
		`/bin/sh -c "printf a"`:                          "allow",
		`/bin/bash -lc 'git status; make'`:               "",
		`/bin/bash -lc 'printf a > a.txt'`:               "",
		`/bin/bash -lc 'git push'`:                       "deny",
		`/bin/bash -lc "printf $X"`:                      "",
		`/bin/bash -lc ''`:                               "",
		`/bin/bash -lc 'printf a' x`:                     "",
		`/bin/bash --rcfile x -c 'printf a'`:             "",
		`/bin/bash -ic 'printf a'`:                       "",
		`bash -lc 'printf a'`:                            "",
		`./bash -lc 'printf a'`:                          "",
		`BASH_ENV=x /bin/bash -lc 'printf a'`:            "",
		`/bin/bash -lc 'printf a' < x`:                   "",
		`/bin/bash -lc '/bin/bash -lc "printf a"'`:       "allow",
		`/bin/bash -lc 'bash -lc "printf a"'`:            "",
		`/bin/bash -lc 'printf a'; /bin/bash -lc 'make'`: "",
	} {
		if f := p.lookAt(t, "exec_command", map[string]string{"command": line}); f.Listed != want {
			t.Errorf("%s is %q, want %q", line, f.Listed, want)
		}
	}
}
