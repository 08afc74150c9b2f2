package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

// TestFullUndertakeClaude: Claude Code is the manager, the worker and both verifiers. Each has
// the tools of its part alone, and is told what its part needs: the worker the plan, a verifier
// nothing of the talk; the manager is one session over three processes, and what is agreed with it is
// what is done.
func TestFullUndertakeClaude(t *testing.T) {
	c := claudeAt(t)
	submit := func(transition string, more map[string]any) agenttest.Step {
		input := map[string]any{"transition": transition, "message": "THE " + strings.ToUpper(transition) + " OF IT"}
		for name, value := range more {
			input[name] = value
		}
		return agenttest.Uses("mcp__dialai__submit", input)
	}
	plan := map[string]any{"understanding": "a file", "deliverables": []string{"a.txt"}, "out_of_scope": []string{}, "done_when": []string{"a.txt is there"}, "check": "test -f a.txt"}
	finding := map[string]any{"findings": []any{map[string]any{"text": "it is there", "evidence": "ls"}}}
	write := agenttest.Uses("Write", map[string]any{"file_path": filepath.Join(c.cwd, "a.txt"), "content": "a"})
	write.Tools = append(write.Tools, submit("complete", map[string]any{"accomplished": []string{"a.txt"}, "remaining": []string{}}).Tools...)
	moves := []struct {
		legal string
		step  agenttest.Step
	}{
		{"ask, state_plan, decline", submit("state_plan", plan)}, {"brief, escalate", submit("brief", nil)}, {"clarify, begin", submit("begin", map[string]any{"understanding": "u", "approach": "a", "tasks": []string{"a.txt"}})},
		{"report, inquire, hand_off, complete", write}, {"question, pass_on, accept_report, escalate", submit("accept_report", nil)}, {"sound, incomplete, unsound", submit("sound", finding)}, {"fulfil, reopen", submit("fulfil", nil)},
	}
	c.fake.Answers(func(r agenttest.Request) (agenttest.Step, bool) {
		_, legal, asked := strings.Cut(r.Since, "Legal moves now: ")
		for _, m := range moves {
			if asked && strings.HasPrefix(legal, m.legal+".") {
				return m.step, true
			}
		}
		return agenttest.Step{Text: "The turn is over."}, true
	})
	spec := filepath.Join(filepath.Dir(c.store), "spec.md")
	if err := os.WriteFile(spec, []byte("Write a.txt."), 0o600); err != nil {
		t.Fatal(err)
	}
	told := c.undertake(spec, "--cwd", c.cwd, "--model", "claude-haiku-4-5")
	id := c.list()[0].Session
	for _, want := range []string{"awaiting_assent your move", "done when: a.txt is there"} {
		if !strings.Contains(told, want) {
			t.Errorf("nobody was told %q:\n%s", want, told)
		}
	}
	c.decide(id, "assent")
	told = c.undertake("--resume", id)
	if !c.exists("a.txt") || !strings.Contains(told, "checks passed → verifying") || !strings.Contains(told, "verifying your move") {
		t.Errorf("it came to\n%s", told)
	}
	c.decide(id, "sound")
	c.runs(0, "--resume", id)

	parts := map[string]int{}
	for _, r := range c.fake.Requests() {
		part := ""
		for of, words := range map[string]string{"manager": "You manage one undertaking", "worker": "You are worker 1", "verifier": "You judge work that others have done"} {
			if strings.Contains(r.System, words) {
				part = of
			}
		}
		if part == "" {
			continue // of the program's own
		}
		parts[part]++
		var own []string
		for _, tool := range r.Tools {
			if !strings.HasPrefix(tool, "mcp__dialai__") && tool != "DeferredToolPlaceholder" { // which can do nothing
				own = append(own, tool)
			}
		}
		slices.Sort(own)
		if want := map[string]string{"manager": "", "verifier": "Bash Read"}[part]; part != "worker" && strings.Join(own, " ") != want {
			t.Errorf("the %s has the tools %v, want %s", part, own, want)
		}
		body := string(r.Body)
		if part == "verifier" && (strings.Contains(body, "THE BRIEF OF IT") || strings.Contains(body, "THE BEGIN OF IT") || !strings.Contains(body, "a.txt is there")) {
			t.Errorf("a verifier is told\n%s", r.Since)
		}
		if part == "worker" && !strings.Contains(body, "THE BRIEF OF IT") {
			t.Errorf("the worker is told\n%s", r.Since)
		}
	}
	if parts["manager"] < 4 || parts["worker"] < 2 || parts["verifier"] < 2 {
		t.Errorf("requests were %v", parts)
	}
	s := c.list()[0]
	if managers := s.Others["manager"]; len(managers) != 1 || managers[0].Turns != 4 || len(s.Workers) != 1 || len(s.Others["verifier-a"]) != 1 {
		t.Errorf("the status is %+v", s)
	}
}

// list returns what status says, of ended undertakings too.
func (c *claudeRun) list() []standing {
	c.t.Helper()
	b := bench{c.t, filepath.Dir(c.store)}
	out, _ := b.dialaiOn(c.store, "sessions", "--machine", "undertaking", "--json")
	_, id, _ := strings.Cut(out, `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	return []standing{b.statusOf(c.store, id)}
}

func (c *claudeRun) decide(id, move string) {
	c.t.Helper()
	b := bench{c.t, filepath.Dir(c.store)}
	if out, code := b.dialaiOn(c.store, "decide", id, move); code != 0 && code != 5 {
		c.t.Fatalf("decide %s: %d\n%s", move, code, out)
	}
}

// runs runs dialai undertake, which has to end with a code.
func (c *claudeRun) runs(code int, args ...string) {
	c.t.Helper()
	cmd := exec.Command(program, append(append([]string{"undertake"}, args...), "--no-wait", "--store", c.store)...)
	cmd.Dir = filepath.Dir(c.store)
	cmd.Env = append(append(os.Environ(), agenttest.ClaudeEnv(c.fake, filepath.Dir(c.store))...), "DIALAI_CLAUDE_BIN="+agenttest.Program(c.t, "claude"))
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != code {
		c.t.Fatalf("undertake exits with %d, want %d\n%s", cmd.ProcessState.ExitCode(), code, out)
	}
}
