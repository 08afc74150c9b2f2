package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

// team is the rest of an undertaking whose worker is a real agent.
const team = `{"as":"manager","submit":{"transition":"state_plan","message":"This.","understanding":"a.txt","deliverables":["a.txt"],"out_of_scope":[],"done_when":["it is there"],"check":"test -f a.txt"}}
{"as":"manager","submit":{"transition":"brief","message":"THE BRIEF"}}
{"as":"manager","submit":{"transition":"accept_report","message":"Judge it."}}
{"as":"verifier-a","submit":{"transition":"sound","message":"It is.","findings":[{"text":"there","evidence":"ls"}]}}
{"as":"verifier-b","submit":{"transition":"sound","message":"It is.","findings":[{"text":"there","evidence":"ls"}]}}
`

// TestUndertakeCodex: Codex works for a manager that follows a script.
func TestUndertakeCodex(t *testing.T) {
	t.Parallel()
	path, fake := agenttest.Program(t, "codex"), agenttest.Start(t)
	worksFor(t, fake, "codex", append(agenttest.CodexEnv(t, fake, t.TempDir()), "DIALAI_CODEX_BIN="+path), "submit", func(command string) agenttest.Step {
		return agenttest.Uses("exec_command", map[string]any{"cmd": command})
	})
}

// TestUndertakeOpenCode: so does OpenCode, by the Agent Client Protocol.
func TestUndertakeOpenCode(t *testing.T) {
	t.Parallel()
	path, fake := agenttest.Program(t, "acp"), agenttest.Start(t)
	worksFor(t, fake, "acp:'"+path+"' acp", agenttest.OpenCodeEnv(t, fake, t.TempDir()), "dialai_submit", func(command string) agenttest.Step {
		return agenttest.Uses("bash", map[string]any{"command": command, "description": "of the test"})
	})
}

// worksFor has a real agent work over two processes: it is briefed, begins, is refused a command
// with a reason, runs what is wanted and claims that it is done.
func worksFor(t *testing.T, fake *agenttest.Server, name string, env []string, tool string, runs func(command string) agenttest.Step) {
	d := undertakingIn(t, team)
	submit := func(transition string, more map[string]any) agenttest.Step {
		input := map[string]any{"transition": transition, "message": "that is " + transition}
		for name, value := range more {
			input[name] = value
		}
		return agenttest.Uses(tool, input)
	}
	pushed, worked := false, false
	fake.Answers(func(r agenttest.Request) (agenttest.Step, bool) {
		switch {
		case strings.Contains(r.Since, "Legal moves now: clarify, begin"):
			return submit("begin", map[string]any{"understanding": "u", "approach": "a", "tasks": []string{"a.txt"}}), true
		case !pushed && strings.Contains(r.Since, "Legal moves now: report, inquire"):
			pushed = true
			return runs("git push origin main"), true
		case strings.Contains(r.Since, "is the move of this turn"):
			return agenttest.Step{Text: "The turn is over."}, true
		case !worked:
			worked = true
			return runs("touch a.txt"), true
		}
		return submit("complete", map[string]any{"accomplished": []string{"a.txt"}, "remaining": []string{}}), true
	})
	undertake := func(args ...string) (string, int) {
		cmd := exec.Command(program, append(append([]string{"undertake"}, args...), "--no-wait", "--allow", "Bash(touch*)", "--deny", "Bash(git push*)", "--store", "d.db")...)
		cmd.Dir, cmd.Env = d.dir, append(os.Environ(), env...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := undertake("spec.md", "--agent", name, "--manager-agent", "scripted:turns.jsonl", "--verifier-agent", "scripted:turns.jsonl", "--cwd", "work"); code != 3 {
		t.Fatalf("it exits with %d\n%s", code, out)
	}
	id := d.status()[0].Session
	if out, code := d.dialai("decide", id, "assent"); code != 5 && code != 0 {
		t.Fatalf("assent exits with %d\n%s", code, out)
	}
	out, code := undertake("--resume")
	if s := d.status()[0]; code != 3 || s.State != "verifying" || len(s.Workers) != 1 {
		t.Fatalf("it exits with %d in %+v\n%s", code, s, out)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "work", "a.txt")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	heard := false
	for _, r := range fake.Requests() {
		heard = heard || strings.Contains(string(r.Body), "THE BRIEF")
	}
	if !heard || !strings.Contains(out, "may not use") {
		t.Errorf("briefed %v\n%s", heard, out)
	}
}
