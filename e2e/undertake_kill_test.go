package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// turnsThatCost are those of a scripted worker: $0.60 in all.
const turnsThatCost = `{"text":"I begin.","used":20000,"window":200000,"cost_usd":0.1,"wait_ms":20,"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}],"submit":{"transition":"report","message":"a.txt"}}
{"used":30000,"window":200000,"cost_usd":0.2,"wait_ms":20,"submit":{"transition":"report","message":"still there"}}
{"used":40000,"window":200000,"cost_usd":0.3,"wait_ms":20,"submit":{"transition":"complete","message":"done","accomplished":["a.txt"],"remaining":[]}}
`

// TestUndertakeOverKills: whenever the process that drives an undertaking is killed, another goes
// on with the same session of the agent and comes to the same end: no move is made twice, what
// every turn has cost is counted once, and the logs and the dump are whole.
func TestUndertakeOverKills(t *testing.T) {
	t.Parallel()
	for line := 2; ; line++ {
		dir := t.TempDir()
		for name, text := range map[string]string{"spec.md": "Write a.txt", "turns.jsonl": turnsThatCost} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
			t.Fatal(err)
		}
		dialai := func(args ...string) (string, int) {
			cmd := exec.Command(program, append(args, "--store", "d.db")...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if _, exited := err.(*exec.ExitError); err != nil && !exited {
				t.Fatal(err)
			}
			return string(out), cmd.ProcessState.ExitCode()
		}
		if !killedAt(t, dir, line) {
			if line < 10 {
				t.Errorf("it wrote %d lines only", line)
			}
			return
		}
		out, code := dialai("undertake", "--resume", "--no-wait", "--allow", "Write")
		if code != 3 {
			t.Fatalf("killed at line %d, gone on with it exits with %d:\n%s", line, code, out)
		}
		var list []struct {
			State   string
			Session string
			Spent   struct{ USD json.Number }
			Workers []worker
		}
		out, _ = dialai("status", "--json")
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
			t.Fatalf("killed at line %d: %v\n%s", line, err, out)
		}
		if s := list[0]; s.State != "ruling" || len(s.Workers) != 1 || s.Spent.USD != "0.6" && s.Spent.USD.String() < "0.6" {
			t.Errorf("killed at line %d it is %+v", line, s)
		}
		if out, code := dialai("store", "verify"); code != 0 {
			t.Errorf("killed at line %d: %s", line, out)
		}
		log, _ := dialai("log", list[0].Session, "--json")
		if n := strings.Count(log, `"kind":"executed"`); n != 4 {
			t.Errorf("killed at line %d, %d moves were executed, want report, report, complete, passed", line, n)
		}
		var dump struct{ State string }
		text, err := os.ReadFile(filepath.Join(dir, "undertakings", list[0].Session+".json"))
		if err != nil || json.Unmarshal(text, &dump) != nil || dump.State != "ruling" {
			t.Errorf("killed at line %d the dump is %s, %v", line, text, err)
		}
	}
}

// killedAt begins an undertaking and kills it when it writes a line of that number; false if
// it ends before.
func killedAt(t *testing.T, dir string, line int) bool {
	t.Helper()
	cmd := exec.Command(program, "undertake", "--solo", "spec.md", "--agent", "scripted:turns.jsonl", "--cwd", "work", "--check", "test -f a.txt", "--allow", "Write", "--no-wait", "--store", "d.db")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if n == line {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return true
		}
	}
	_ = cmd.Wait()
	return false
}
