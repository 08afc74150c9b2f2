package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
		d := undertakingIn(t, turnsThatCost)
		if !killedAt(t, d.dir, line, "undertake", "--solo", "spec.md", "--agent", "scripted:turns.jsonl", "--cwd", "work", "--check", "test -f a.txt") {
			if line < 10 {
				t.Errorf("it wrote %d lines only", line)
			}
			return
		}
		if out, code := d.dialai("undertake", "--resume", "--no-wait", "--allow", "Write"); code != 3 {
			t.Fatalf("killed at line %d, gone on with it exits with %d:\n%s", line, code, out)
		}
		s := d.status()[0]
		if s.State != "ruling" || len(s.Workers) != 1 || s.Spent.USD != "0.6" && s.Spent.USD.String() < "0.6" {
			t.Errorf("killed at line %d it is %+v", line, s)
		}
		if out, code := d.dialai("store", "verify"); code != 0 {
			t.Errorf("killed at line %d: %s", line, out)
		}
		log, _ := d.dialai("log", s.Session, "--json")
		if n := strings.Count(log, `"kind":"executed"`); n != 4 {
			t.Errorf("killed at line %d, %d moves were executed, want report, report, complete, passed", line, n)
		}
		var dump struct{ State string }
		text, err := os.ReadFile(filepath.Join(d.dir, "undertakings", s.Session+".json"))
		if err != nil || json.Unmarshal(text, &dump) != nil || dump.State != "ruling" {
			t.Errorf("killed at line %d the dump is %s, %v", line, text, err)
		}
	}
}

// TestUndertakeBegunOnce: of several who begin in one folder at the same time one does, in a working
// tree of its own; the others are told.
func TestUndertakeBegunOnce(t *testing.T) {
	t.Parallel()
	d := undertakingIn(t, turnsThatCost)
	d.dialai("sessions") // makes the store
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if out, err := exec.Command("git", append([]string{"-C", filepath.Join(d.dir, "work")}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	var begins sync.WaitGroup
	told, codes := make([]string, 4), make([]int, 4)
	for i := range told {
		begins.Go(func() {
			told[i], codes[i] = d.dialai("undertake", "--solo", "spec.md", "--agent", "scripted:turns.jsonl", "--cwd", "work", "--check", "test -f a.txt", "--allow", "Write", "--no-wait")
		})
	}
	begins.Wait()
	begun := 0
	for i, code := range codes {
		switch {
		case code == 3:
			begun++
		case code != 1 || !strings.Contains(told[i], "at the same time") && !strings.Contains(told[i], "unfinished work in this folder") && !strings.Contains(told[i], "another undertaking is just being begun"):
			t.Errorf("exit code %d: %s", code, told[i])
		}
	}
	if list := d.status(); begun != 1 || len(list) != 1 {
		t.Errorf("%d have begun, and there are %d", begun, len(list))
	}
}

// killedAt runs an undertaking and kills it when it writes a line of that number; false if it
// ends before.
func killedAt(t *testing.T, dir string, line int, args ...string) bool {
	t.Helper()
	cmd := exec.Command(program, append(args, "--allow", "Write", "--no-wait", "--store", "d.db")...)
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

// fullTurns are those of a manager, a worker and two verifiers: $0.80 in all.
const fullTurns = `{"as":"manager","cost_usd":0.1,"submit":{"transition":"state_plan","message":"This.","understanding":"a.txt","deliverables":["a.txt"],"out_of_scope":[],"done_when":["it is there"]}}
{"as":"manager","cost_usd":0.1,"submit":{"transition":"brief","message":"Write it."}}
{"as":"orchestrator","cost_usd":0.1,"submit":{"transition":"begin","message":"I do.","understanding":"a.txt","approach":"write","tasks":["a.txt"]}}
{"as":"orchestrator","cost_usd":0.1,"wait_ms":20,"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}],"submit":{"transition":"complete","message":"done","accomplished":["a.txt"],"remaining":[]}}
{"as":"manager","cost_usd":0.1,"submit":{"transition":"question","message":"How long is it?"}}
{"as":"orchestrator","cost_usd":0.1,"submit":{"transition":"recount","message":"One byte."}}
{"as":"manager","cost_usd":0.1,"submit":{"transition":"accept_report","message":"Judge it."}}
{"as":"verifier-a","cost_usd":0.05,"submit":{"transition":"sound","message":"It is.","findings":[{"text":"there","evidence":"ls"}]}}
{"as":"verifier-b","cost_usd":0.05,"submit":{"transition":"sound","message":"It is.","findings":[{"text":"there","evidence":"ls"}]}}
`

// TestFullUndertakeOverKills: likewise with a manager and verifiers, killed at any line after the
// human's assent.
func TestFullUndertakeOverKills(t *testing.T) {
	t.Parallel()
	for line := 3; ; line += 2 {
		d := undertakingIn(t, fullTurns)
		if out, code := d.dialai("undertake", "spec.md", "--agent", "scripted:turns.jsonl", "--cwd", "work", "--check", "test -f a.txt", "--no-wait"); code != 3 {
			t.Fatalf("it exits with %d:\n%s", code, out)
		}
		id := d.status()[0].Session
		if out, code := d.dialai("decide", id, "assent"); code != 5 && code != 0 {
			t.Fatalf("assent exits with %d:\n%s", code, out)
		}
		if !killedAt(t, d.dir, line, "undertake", "--resume") {
			if line < 20 {
				t.Errorf("it wrote %d lines only", line)
			}
			return
		}
		if out, code := d.dialai("undertake", "--resume", "--no-wait", "--allow", "Write"); code != 3 {
			t.Fatalf("killed at line %d, gone on with it exits with %d:\n%s", line, code, out)
		}
		s := d.status()[0]
		if s.State != "verifying" || len(s.Workers) != 1 || len(s.Others["manager"]) != 1 || s.Spent.USD.String() < "0.8" {
			t.Errorf("killed at line %d it is %+v", line, s)
		}
		if out, code := d.dialai("store", "verify"); code != 0 {
			t.Errorf("killed at line %d: %s", line, out)
		}
		log, _ := d.dialai("log", id, "--json")
		if n := strings.Count(log, `"kind":"executed"`); n != 10 {
			t.Errorf("killed at line %d, %d moves were executed, want 10", line, n)
		}
	}
}

// A bench is a folder with an undertaking.
type bench struct {
	*testing.T
	dir string
}

// undertakingIn returns a folder with a specification, a script and a tree.
func undertakingIn(t *testing.T, turns string) bench {
	t.Helper()
	d := bench{t, t.TempDir()}
	for name, text := range map[string]string{"spec.md": "Write a.txt", "turns.jsonl": turns} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(d.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// dialai runs a command in it.
func (d bench) dialai(args ...string) (string, int) { return d.dialaiOn("d.db", args...) }

// dialaiOn runs a command on a store.
func (d bench) dialaiOn(store string, args ...string) (string, int) {
	d.Helper()
	cmd := exec.Command(program, append(args, "--store", store)...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		d.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A standing is what status says.
type standing struct {
	State   string
	Session string
	Spent   struct{ USD json.Number }
	Workers []worker
	Others  map[string][]worker
}

func (d bench) status() (list []standing) {
	d.Helper()
	out, _ := d.dialai("status", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		d.Fatalf("%v\n%s", err, out)
	}
	return list
}

// statusOf returns what status says of an undertaking.
func (d bench) statusOf(store, id string) (s standing) {
	d.Helper()
	out, _ := d.dialaiOn(store, "status", id, "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		d.Fatalf("%v\n%s", err, out)
	}
	return s
}
