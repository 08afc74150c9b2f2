package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/agent/agenttest"
)

// TestUndertakeEndsLeftovers: what the processes of an agent have started goes on when the process
// that drives the undertaking is killed, which status tells; who goes on with it ends that first, says
// so, and works in a tree that nobody else changes.
func TestUndertakeEndsLeftovers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what outlives its host is found on Linux only")
	}
	path, fake := agenttest.Program(t, "acp"), agenttest.Start(t)
	d := undertakingIn(t, "")
	pipe := filepath.Join(t.TempDir(), "pid")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	var started atomic.Bool
	fake.Answers(func(r agenttest.Request) (agenttest.Step, bool) {
		if len(r.Tools) > 0 && started.CompareAndSwap(false, true) {
			return agenttest.Uses("bash", map[string]any{"command": "setsid sh -c 'echo $$ >" + pipe + "; exec sleep 600' & sleep 600", "description": "of the test"}), true
		}
		if strings.Contains(r.Since, "is the move of this turn") || len(r.Tools) == 0 {
			return agenttest.Step{Text: "The turn is over."}, true
		}
		return agenttest.Uses("dialai_submit", map[string]any{"transition": "complete", "message": "done", "accomplished": []string{"up"}, "remaining": []string{}}), true
	})
	env := append(os.Environ(), agenttest.OpenCodeEnv(t, fake, t.TempDir())...)
	undertake := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(append([]string{"undertake"}, args...), "--no-wait", "--allow", "Bash", "--store", "d.db")...)
		cmd.Dir, cmd.Env = d.dir, env
		return cmd
	}
	killed, told := undertake("--solo", "spec.md", "--agent", "acp:'"+path+"' acp", "--cwd", "work"), new(bytes.Buffer)
	killed.Stdout, killed.Stderr = told, told
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ended, pid := make(chan error, 1), make(chan string, 1)
	go func() { ended <- killed.Wait() }()
	go func() {
		text, _ := os.ReadFile(pipe) // which waits for who writes
		pid <- strings.TrimSpace(string(text))
	}()
	var proc string
	select {
	case p := <-pid:
		proc = "/proc/" + p + "/stat"
	case err := <-ended:
		t.Fatalf("it ended before the agent had started anything: %v\n%s", err, told)
	}
	_ = killed.Process.Kill()
	<-ended
	if runs := running(proc); !runs {
		t.Fatal("what the agent has started ended with its host, and nothing is left to be ended")
	}
	status := exec.Command(program, "status", "--store", "d.db")
	status.Dir = d.dir
	if out, err := status.Output(); err != nil || !strings.Contains(string(out), "now      gone") {
		t.Errorf("its status is %s, %v", out, err)
	}
	text, _ := undertake("--resume").CombinedOutput()
	if told := string(text); !strings.Contains(told, "processes that orch-1 has left") || !strings.Contains(told, "orchestrator complete") {
		t.Errorf("gone on with it says\n%s", told)
	}
	if running(proc) {
		t.Error("it still runs")
	}
}

// running reports whether a process runs, by its file stat: what has ended, and nobody has waited
// for, does not.
func running(stat string) bool {
	text, err := os.ReadFile(stat)
	return err == nil && !bytes.Contains(text, []byte(") Z "))
}
