package permit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestTools: what tools that are no shell ask.
func TestTools(t *testing.T) {
	p := newPlace(t)
	p.settings.Rules = rules(t, []string{"Edit(sub/*)", "WebFetch(https://example.com/*)", "Task", "Grep", "MultiEdit"}, []string{"Write(sub/deep/*)", "Read(/etc/*)", "WebFetch(https://example.com/no*)"})
	root := filepath.Dir(p.cwd)
	patch := func(lines string) map[string]any {
		return map[string]any{"input": "*** Begin Patch\n" + lines + "\n*** End Patch"}
	}
	type m = map[string]any
	for _, c := range []struct {
		tool  string
		input any
		want  string
	}{
		{"Write", m{"file_path": "a.txt", "content": "rm -rf /"}, "write     i- -"},
		{"Write", m{"file_path": p.cwd + "/sub/new/x"}, "write     i- -"},
		{"Write", m{"file_path": "sub/deep/x"}, "write     i- deny"},
		{"Write", m{"file_path": "in/deep/x"}, "write     i- deny"},
		{"Write", m{"file_path": "sub/../sub/deep/x"}, "write     i- deny"},
		{"Write", m{"file_path": "/etc/x"}, "write     -- -"},
		{"Write", m{"file_path": "out/x"}, "write     -- -"},
		{"Write", m{"file_path": "out"}, "write     -- -"},
		{"Write", m{"file_path": "../x"}, "write     -- -"},
		{"Write", m{"file_path": ".git/hooks/pre-commit"}, "write     -- -"},
		{"Write", m{"file_path": ".env"}, "dangerous -- -"},
		{"Write", m{"file_path": "sub/mine"}, "dangerous -- -"},
		{"Write", m{"file_path": 1}, "write     -- -"},
		{"Write", m{"file_path": ""}, "write     -- -"},
		{"Write", m{}, "write     -- -"},
		{"Write", []any{}, "write     -- -"},
		{"Edit", m{"file_path": "sub/x"}, "write     i- allow"},
		{"Edit", m{"file_path": "in/x"}, "write     i- allow"},
		{"Edit", m{"file_path": "sub/../a.txt"}, "write     i- -"},
		{"Edit", m{"file_path": "sub/../../elsewhere/x"}, "write     -- -"},
		{"MultiEdit", m{"file_path": "a.txt", "edits": []any{}}, "write     i- allow"},
		{"MultiEdit", m{"edits": []any{}}, "write     -- -"},
		{"NotebookEdit", m{"notebook_path": "a.ipynb"}, "write     i- -"},
		{"apply_patch", patch("*** Update File: a.txt\n@@\n-a\n+b"), "write     i- -"},
		{"apply_patch", patch("*** Update File: a.txt\n*** Move to: ../x"), "write     -- -"},
		{"apply_patch", patch("*** Update File: a.txt\n*** Add File: out/x"), "write     -- -"},
		{"apply_patch", patch("*** Delete File: a.txt"), "write     i- -"},
		{"apply_patch", patch("*** Delete File: ../x"), "dangerous -- -"},
		{"apply_patch", patch("nothing"), "write     -- -"},
		{"apply_patch", m{"command": []string{"apply_patch", "*** Update File: a.txt"}}, "write     i- -"},
		{"fileChange", m{"changes": []m{{"path": "a.txt", "kind": "update"}}}, "write     i- -"},
		{"fileChange", m{"changes": []m{{"path": "../a.txt", "kind": "update"}}}, "write     -- -"},
		{"fileChange", m{"changes": []m{{"path": "../a.txt", "kind": "delete"}}}, "dangerous -- -"},
		{"fileChange", m{"changes": []m{{"path": "../a.txt", "kind": m{"type": "delete"}}}}, "dangerous -- -"},
		{"fileChange", m{"changes": []m{{"path": "a.txt", "kind": m{"type": "update", "move_path": "/etc/x"}}}}, "write     -- -"},
		{"fileChange", m{"changes": m{"a.txt": m{"update": m{"move_path": "../x"}}}}, "write     -- -"},
		{"fileChange", m{"changes": m{"/etc/a": m{"delete": m{}}}}, "dangerous -- -"},
		{"fileChange", m{"changes": m{"a.txt": m{"add": m{}}}, "grantRoot": "/"}, "write     -- -"},
		{"fileChange", m{"itemId": "1"}, "write     -- -"},
		{"Read", m{"file_path": "a.txt"}, "other     i- -"},
		{"Read", m{"file_path": "/etc/hosts"}, "other     -- deny"},
		{"Read", m{"file_path": "/usr/../etc/hosts"}, "other     -- deny"},
		{"Read", m{"file_path": "~/.ssh/config"}, "dangerous -- -"},
		{"Read", m{"file_path": root + "/home/.ssh/id_rsa"}, "dangerous -- -"},
		{"Read", m{}, "other     -- -"},
		{"Grep", m{"pattern": "x"}, "other     i- allow"},
		{"Grep", m{"pattern": "x", "path": ".."}, "other     -- allow"},
		{"Glob", m{"pattern": "**/*.go"}, "other     i- -"},
		{"Glob", m{"pattern": "../*"}, "other     -- -"},
		{"Glob", m{"pattern": "/etc/*"}, "other     -- -"},
		{"LS", m{"path": "sub"}, "other     i- -"},
		{"Task", m{"prompt": "cat .env"}, "other     -- allow"},
		{"mcp__git__status", m{}, "other     -- -"},
		{"mcp__git__push", m{}, "dangerous -- -"},
		{"mcp__git__pushFiles", m{}, "dangerous -- -"},
		{"mcp__npm__publish-package", m{}, "dangerous -- -"},
		{"mcp__files__read", m{"where": "/home/me/.aws/credentials"}, "dangerous -- -"},
		{"pushy", m{}, "other     -- -"},
		{"WebFetch", m{"url": "https://example.com/x"}, "network   -- allow"},
		{"WebFetch", m{"url": "https://example.com.evil.example/x"}, "network   -- -"},
		{"WebFetch", m{"url": "https://example.com/no"}, "network   -- deny"},
		{"WebFetch", m{"url": 1}, "network   -- -"},
		{"WebSearch", m{"query": "git push"}, "network   -- -"},
		{"AskUserQuestion", m{"questions": []string{"git push?"}}, "question  -- -"},
		{"requestUserInput", m{}, "question  -- -"},
		{"item/permissions/requestApproval", m{"permissions": m{}}, "other     -- -"},
		{"", m{}, "other     -- -"},
	} {
		if got := strings.TrimSpace(shown(p.lookAt(t, c.tool, c.input))); got != c.want {
			t.Errorf("%s %v\n  is   %s\n  want %s", c.tool, c.input, got, c.want)
		}
	}
}

// TestShellInputs: in whatever form a shell tool is given its line, and in which it is not.
func TestShellInputs(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"git status"}`, "shell     ir allow"},
		{"commandExecution", `{"command":"git status","cwd":"` + p.cwd + `"}`, "shell     ir allow"},
		{"commandExecution", `{"command":"git status","cwd":null}`, "shell     ir allow"},
		{"commandExecution", `{"command":"touch x","cwd":"sub"}`, "shell     i- -"},
		{"commandExecution", `{"command":"touch ../x","cwd":"sub"}`, "shell     -- -"},
		{"commandExecution", `{"command":"touch x","cwd":"/"}`, "shell     -- -"},
		{"commandExecution", `{"command":"rm x","cwd":"/"}`, "dangerous -- -"},
		{"commandExecution", `{"command":"rm x","cwd":1}`, "dangerous -- -"},
		{"shell", `{"command":["bash","-lc","git status"]}`, "shell     i- -"},
		{"shell", `{"command":["bash","-lc","git push"]}`, "dangerous -- -"},
		{"shell", `{"command":["git","push"]}`, "dangerous -- -"},
		{"shell", `{"command":["git","stash"]}`, "shell     -- deny"},
		{"shell", `{"command":["ls","$(git push)"]}`, "shell     ir -"},
		{"shell", `{"command":["ls","*"]}`, "shell     ir -"},
		{"shell", `{"command":[]}`, "dangerous -- -"},
		{"shell", `{"command":[1]}`, "dangerous -- -"},
		{"exec_command", `{"cmd":"ls"}`, "shell     ir -"},
		{"exec_command", `{"cmd":"ls","command":"git push"}`, "dangerous -- -"},
		{"exec_command", `{"cmd":"ls","with_escalated_permissions":true}`, "shell     -- -"},
		{"Bash", `{"command":"git status","dangerouslyDisableSandbox":true}`, "shell     -- -"},
		{"Bash", `{"command":"git status","dangerouslyDisableSandbox":false}`, "shell     ir allow"},
		{"Bash", `{"command":"git status","env":{"GIT_PAGER":"x"}}`, "dangerous -- -"},
		{"Bash", `{"Command":"git status"}`, "dangerous -- -"},
		{"Bash", `{"command":"git status","COMMAND":"git push"}`, "dangerous -- -"},
		{"Bash", `{"command":"git status","command":"git push"}`, "dangerous -- -"},
		{"Bash", `{"command":null}`, "dangerous -- -"},
		{"Bash", `{"command":1}`, "dangerous -- -"},
		{"Bash", `{}`, "dangerous -- -"},
		{"Bash", `"git status"`, "dangerous -- -"},
		{"Bash", `{"command":"git status"`, "dangerous -- -"},
		{"Bash", ``, "dangerous -- -"},
		{"Bash", `{"command":"git stash"`, "dangerous -- deny"},
		{"Bash", `{"command":""}`, "shell     i- -"},
		{"Bash", `{"command":"ls \ud800"}`, "dangerous -- -"},
		{"PowerShell", `{"command":"ls"}`, "dangerous -- -"},
		{"write_stdin", `{"chars":"git push\n"}`, "dangerous -- -"},
		{"write_stdin", `{"chars":"git stash\n"}`, "dangerous -- deny"},
	} {
		f, err := lookAt(Prompt{Tool: c.tool, Input: json.RawMessage(c.input), Cwd: p.cwd}, p.settings)
		if got := strings.TrimSpace(shown(f)); err != nil || got != c.want {
			t.Errorf("%s %s (%v)\n  is   %s\n  want %s", c.tool, c.input, err, got, c.want)
		}
	}
}

// TestCwd: without a folder nothing is inside, and nothing may be removed.
func TestCwd(t *testing.T) {
	p := newPlace(t)
	for _, cwd := range []string{"", "work", ".", "\x00/"} {
		for line, want := range map[string]string{"touch x": "shell     -- -", "rm x": "dangerous -- -"} {
			p := &place{cwd, p.settings}
			if got := strings.TrimSpace(shown(p.look(t, line))); got != want {
				t.Errorf("%q: %s is %s, want %s", cwd, line, got, want)
			}
		}
	}
}

// TestHome: ~ is the home that is known, unless the line says otherwise.
func TestHome(t *testing.T) {
	p := newPlace(t)
	p.settings.Home = p.cwd
	for line, want := range map[string]string{
		"rm ~/x": "shell     i- -", `rm "$HOME/x"`: "shell     i- -", "touch ~/x": "shell     i- -",
		"HOME=sub; rm ~/x": "dangerous -- -", "export HOME=sub; rm ~/x": "dangerous -- -", "HOME=sub; touch ~/x": "shell     -- -",
	} {
		if got := strings.TrimSpace(shown(p.look(t, line))); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
	p.settings.Home = ""
	if got := p.look(t, "rm ~/x"); got.Kind != kindDangerous {
		t.Errorf("with a home that nobody knows rm ~/x is %s", shown(got))
	}
}

// TestBlockedPath: the path at which an agent was stopped is one that the prompt names.
func TestBlockedPath(t *testing.T) {
	p := newPlace(t)
	for blocked, want := range map[string]bool{"": true, p.cwd + "/x": true, "/etc": false, "out": false} {
		f, err := lookAt(Prompt{Tool: "Bash", Input: json.RawMessage(`{"command":"make"}`), Cwd: p.cwd, BlockedPath: blocked}, p.settings)
		if err != nil || f.Inside != want {
			t.Errorf("%q: inside is %v, want %v (%v)", blocked, f.Inside, want, err)
		}
	}
}

// TestSystemPrograms: a name is the system's only where the system has it.
func TestSystemPrograms(t *testing.T) {
	p := newPlace(t)
	system := p.settings.Path
	for path, want := range map[string]bool{
		system: true, "/nowhere:" + system: true, "": false,
		p.cwd + "/bin:" + system: false, system + ":" + p.cwd + "/bin": true,
		"bin:" + system: false, ":" + system: false, ".:" + system: false,
		filepath.Dir(p.cwd) + "/elsewhere": false,
	} {
		p.settings.Path = path
		if f := p.look(t, "ls"); f.ReadOnly != want {
			t.Errorf("with PATH=%s ls is read-only: %v, want %v", path, f.ReadOnly, want)
		}
	}
	p.settings.Path, p.cwd = system, system
	if p.look(t, "ls").ReadOnly {
		t.Error("a program in the agent's own folder counts as the system's")
	}
}

// TestSettings: each list of the settings takes the place of its default.
func TestSettings(t *testing.T) {
	p := newPlace(t)
	p.settings.Network, p.settings.Publishes, p.settings.Credentials = []string{"make"}, []string{"ship"}, []string{"mine"}
	p.settings.Protected, p.settings.ReadOnly = []string{"vendor"}, []string{"cat"}
	for line, want := range map[string]string{
		"make": "network   -- -", "ssh host": "shell     i- -", "npm ship": "dangerous -- -", "npm publish": "shell     i- -",
		"cat .env": "shell     ir allow", "touch sub/mine": "dangerous -- -", "touch vendor/x": "shell     -- -", "touch .claude/x": "shell     i- -",
		"ls": "shell     i- -", "git push": "dangerous -- -",
	} {
		if got := strings.TrimSpace(shown(p.look(t, line))); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
}

// TestInputDigest: each of tool, folder, input and secret changes it; how the JSON is written
// does not.
func TestInputDigest(t *testing.T) {
	secret, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	of := func(secret []byte, tool, cwd, input string) string {
		return inputDigest(secret, tool, cwd, json.RawMessage(input))
	}
	first := of(secret, "Bash", "/work", `{"a":1,"b":"x"}`)
	if want := "151770044a043282a0c3818dcde61d3350033276a334ca105c1b856fa9b78e06"; first != want {
		t.Errorf("the digest is %s, want %s", first, want)
	}
	if again := of(secret, "Bash", "/work", ` { "b": "\u0078", "a": 1.0 } `); again != first {
		t.Error("the same input has two digests")
	}
	seen := map[string]bool{first: true}
	for _, d := range []string{
		of(other, "Bash", "/work", `{"a":1,"b":"x"}`), of(secret, "bash", "/work", `{"a":1,"b":"x"}`),
		of(secret, "Bash", "/work/", `{"a":1,"b":"x"}`), of(secret, "Bash", "/work", `{"a":1,"b":"y"}`),
		of(secret, "Bash", "/work", `{"a":1}`), of(secret, "Bash", "/work", ``), of(secret, "Bash", "/work", `{`),
		of(secret, "Bash", "/work", `"7b"`), of(secret, `Bash","tool":"x`, "/work", `{"a":1,"b":"x"}`),
	} {
		if seen[d] {
			t.Errorf("%s is the digest of two prompts", d)
		}
		seen[d] = true
	}
	p := newPlace(t)
	key := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	a, b := p.look(t, "x "+key), p.look(t, "x "+strings.ToUpper(key))
	if a.InputDigest == b.InputDigest {
		t.Error("prompts with different secrets have one digest")
	}
}

// TestSecretSize: without a secret there are no facts.
func TestSecretSize(t *testing.T) {
	for _, n := range []int{0, 31, 33} {
		f, err := lookAt(Prompt{Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Cwd: "/"}, Settings{Secret: make([]byte, n)})
		if err == nil || f.Kind != "" {
			t.Errorf("%d bytes: %+v, %v", n, f, err)
		}
	}
}

// TestMasked: secrets are masked wherever they stand in the input, the rest stays.
func TestMasked(t *testing.T) {
	key := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	random := "q8Zr2LmX9vTb4KpW7sYd"
	for input, want := range map[string]string{
		`{"command": "ls -la", "n": 1.50, "list": [true, null]}`:         `{"command":"ls -la","n":1.50,"list":[true,null]}`,
		`{"command":"curl -H ` + key + `"}`:                              `{"command":"curl -H [redacted:github_token]"}`,
		`{"a":[{"b":"` + strings.ReplaceAll(key, "g", `\u0067`) + `"}]}`: `{"a":[{"b":"[redacted:github_token]"}]}`,
		`{"` + key + `":1}`:              `{"[redacted:github_token]":1}`,
		`{"password":"` + random + `"}`:  `{"password":"[redacted:named_secret]"}`,
		`{"api_key":["` + random + `"]}`: `{"api_key":["[redacted:named_secret]"]}`,
		`{"name":"` + random + `"}`:      `{"name":"` + random + `"}`,
		`"` + key + `"`:                  `"[redacted:github_token]"`,
		`{"command":"x`:                  `null`,
		``:                               `null`,
	} {
		if got := string(masked(json.RawMessage(input), false)); got != want {
			t.Errorf("%s\n  is   %s\n  want %s", input, got, want)
		}
	}
}

// tableLines are the lines of the table that are parsed and stand in one line each.
func tableLines(t testing.TB) (lines []string) {
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.SplitSeq(string(data), "\n") {
		if len(row) > 19 && row[0] != '#' {
			lines = append(lines, unwritten.Replace(row[19:]))
		}
	}
	return lines
}

// completeLines are those of tableLines that end where they end: what follows the others, in
// which a word, a command or an end is missing, becomes a part of them.
func completeLines(t testing.TB) (lines []string) {
	for _, line := range tableLines(t) {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), ""); err == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// atMost reports whether facts allow nothing that others do not.
func atMost(f, than facts) bool {
	return (f.Kind == kindDangerous || than.Kind != kindDangerous) && !(f.Inside && !than.Inside) && !(f.ReadOnly && !than.ReadOnly) && !(f.Listed == "allow" && than.Listed != "allow") && !(f.Listed != "deny" && than.Listed == "deny")
}
