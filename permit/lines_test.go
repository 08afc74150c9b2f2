package permit

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is found into testdata/lines.txt")

// A place is a folder of an agent, with a system beside it: programs, links that lead out of
// the folder and into it.
type place struct {
	cwd      string
	settings Settings
}

// newPlace makes one. Below cwd lie sub, a.txt, in (a link to sub), out (a link out), key (a
// link to credentials), bin with a program ls of its own.
func newPlace(t testing.TB) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cwd, system := filepath.Join(root, "work"), filepath.Join(root, "system")
	for _, dir := range []string{"work/sub/deep", "work/bin", "system", "elsewhere", "home/.ssh"} {
		must(os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, name := range strings.Fields("ls cat head tail wc grep rg find stat pwd echo git") {
		must(os.WriteFile(filepath.Join(system, name), nil, 0o755))
	}
	must(os.WriteFile(filepath.Join(cwd, "bin/ls"), nil, 0o755))
	must(os.WriteFile(filepath.Join(root, "elsewhere/ls"), nil, 0o755))
	must(os.WriteFile(filepath.Join(cwd, "a.txt"), nil, 0o644))
	must(os.Symlink("sub", filepath.Join(cwd, "in")))
	must(os.Symlink(filepath.Join(root, "elsewhere"), filepath.Join(cwd, "out")))
	must(os.Symlink("../../home/.ssh/id_rsa", filepath.Join(cwd, "sub/mine")))
	must(os.Symlink("loop", filepath.Join(cwd, "loop")))
	p := &place{cwd, Settings{Secret: make([]byte, 32), Home: filepath.Join(root, "home"), Path: system, SystemDirs: []string{system}}}
	p.settings.Rules = rules(t, []string{"Bash(git status*)", "Bash(go test*)", "Bash(npm run lint)", "Bash(cat*)", "Bash(timeout*)", "Bash(sh*)", "Bash(cd*)"}, []string{"Bash(git reset*)", "Bash(docker*)", "Bash(rm -rf /*)"})
	return p
}

func rules(t testing.TB, allow, deny []string) (r Rules) {
	t.Helper()
	for list, into := range map[*[]string]*[]Pattern{&allow: &r.Allow, &deny: &r.Deny} {
		for _, text := range *list {
			p, err := ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			*into = append(*into, p)
		}
	}
	return r
}

// look looks at a line of Bash.
func (p *place) look(t testing.TB, line string) facts {
	t.Helper()
	return p.lookAt(t, "Bash", map[string]any{"command": line, "description": "what it does"})
}

func (p *place) lookAt(t testing.TB, tool string, input any) facts {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	f, err := lookAt(Prompt{Tool: tool, Input: data, Cwd: p.cwd}, p.settings)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shown writes facts as the table does.
func shown(f facts) string {
	flag := func(set bool, letter string) string {
		if set {
			return letter
		}
		return "-"
	}
	listed := f.Listed
	if listed == "" {
		listed = "-"
	}
	return fmt.Sprintf("%-9s %s%s %-5s", f.Kind, flag(f.Inside, "i"), flag(f.ReadOnly, "r"), listed)
}

var unwritten = strings.NewReplacer("␤", "\n", "␍", "\r", "␀", "\x00", "␛", "\x1b", "␠", "\u00a0", "␣", "\u200b", "␥", "\u202e")

// TestLines: each line of shell in testdata/lines.txt is what the table says. In it ␤ is a
// line feed, ␍ a carriage return, ␀ a zero byte, ␛ an escape, ␠ a blank that does not break, ␣
// one without width, ␥ what turns the direction of text; %CWD% is the folder, %SYSTEM%
// where the programs of the system are.
func TestLines(t *testing.T) {
	p := newPlace(t)
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	count := 0
	for i, row := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if row == "" || row[0] == '#' {
			out.WriteString(row + "\n")
			continue
		}
		want, line := row[:18], row[19:]
		got := shown(p.look(t, unwritten.Replace(strings.NewReplacer("%CWD%", p.cwd, "%SYSTEM%", p.settings.Path).Replace(line))))
		if count++; got != want && !*update {
			t.Errorf("lines.txt:%d: %s\n  is   %s\n  want %s", i+1, line, got, want)
		}
		out.WriteString(got + " " + line + "\n")
	}
	if count < 300 {
		t.Errorf("only %d lines", count)
	}
	if *update {
		if err := os.WriteFile("testdata/lines.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
