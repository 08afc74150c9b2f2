package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

// undertake runs dialai undertake until a human is asked, and returns what it prints.
func (c *claudeRun) undertake(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(program, append(append([]string{"undertake"}, args...), "--no-wait", "--allow", "Write", "--store", c.store)...)
	cmd.Dir = filepath.Dir(c.store)
	cmd.Env = append(append(os.Environ(), agenttest.ClaudeEnv(c.fake, filepath.Dir(c.store))...), "DIALAI_CLAUDE_BIN="+agenttest.Program(c.t, "claude"))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		c.t.Fatalf("undertake: %v\n%s%s", err, &out, &problems)
	}
	return out.String()
}

// TestUndertakeClaude: Claude Code works in turns that end with moves, asks for what it may do,
// and is gone on with in the same session by another process, which knows what was said before.
func TestUndertakeClaude(t *testing.T) {
	c := claudeAt(t)
	write := func(name string) agenttest.Step {
		return agenttest.Uses("Write", map[string]any{"file_path": filepath.Join(c.cwd, name), "content": name})
	}
	submit := func(transition string, more map[string]any) agenttest.Step {
		input := map[string]any{"transition": transition, "message": "that was " + transition}
		for name, value := range more {
			input[name] = value
		}
		return agenttest.Uses("mcp__dialai__submit", input)
	}
	claim := map[string]any{"accomplished": []string{"all"}, "remaining": []string{}}
	spec := filepath.Join(filepath.Dir(c.store), "spec.md")
	text := agenttest.Prompt("Write two files.", write("a.txt"), submit("lost", nil), submit("report", nil), agenttest.Step{Text: "First turn."}, submit("complete", claim), agenttest.Step{Text: "Second turn."})
	if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	told := c.undertake("--solo", spec, "--cwd", c.cwd, "--check", "test -f a.txt", "--model", "claude-haiku-4-5")
	for _, want := range []string{"may use Write", "report → working: that was report", "complete → checking", "checks passed → ruling", "your move"} {
		if !strings.Contains(told, want) {
			t.Errorf("nobody was told %q:\n%s", want, told)
		}
	}
	if !c.told("no move that you may make now") {
		t.Error("the model was not told that a move is refused")
	}
	before := c.worker()
	if before.SessionID == "" || before.Turns != 2 || before.Open || !c.exists("a.txt") {
		t.Errorf("the worker is %+v", before)
	}

	reply := agenttest.Prompt("Also b.txt.", write("b.txt"), submit("complete", claim), agenttest.Step{Text: "Third turn."})
	c.dialai("say", c.id(), reply, "--store", c.store)
	c.undertake("--resume", c.id())
	after := c.worker()
	if after.SessionID != before.SessionID || after.Turns != 3 || !c.exists("b.txt") {
		t.Errorf("the worker was %+v, and is %+v", before, after)
	}
	requests := c.fake.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "First turn.") {
		t.Error("the session that was gone on with does not know what was said before")
	}
}

// A worker is one as dialai status has it.
type worker struct {
	SessionID string
	Turns     int
	Open      bool
}

func (c *claudeRun) status() (list []struct {
	Session string
	Workers []worker
}) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.dialai("status", "--json", "--store", c.store)), &list); err != nil || len(list) != 1 || len(list[0].Workers) != 1 {
		c.t.Fatalf("the status is %+v, %v", list, err)
	}
	return list
}

func (c *claudeRun) id() string     { return c.status()[0].Session }
func (c *claudeRun) worker() worker { return c.status()[0].Workers[0] }
