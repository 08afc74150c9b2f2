package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/bridge"
	"github.com/dialai/dialai/agent/claude"
	"github.com/dialai/dialai/agent/codex"
	"github.com/dialai/dialai/agent/internal/process"
)

// The test binary is also two programs: a bridge, and an agent that speaks as Claude Code does.
const program = "DIALAI_TEST_BRIDGE"

func TestMain(m *testing.M) {
	switch os.Getenv(program) {
	case "bridge":
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else it is the end of us
		self, _ := os.Executable()
		err := bridge.Serve(context.Background(), os.Stdin, os.Stdout, func(string) (agent.Agent, error) { return claude.New(self, program+"=agent"), nil })
		if err != nil {
			os.Exit(1)
		}
	case "agent":
		speak()
	default:
		os.Exit(m.Run())
	}
}

// speak answers requests, says which session it is of, and does not end with its input.
func speak() {
	fmt.Fprintln(os.Stderr, "mark "+os.Getenv("DIALAI_SESSION"))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var l struct {
			Type string `json:"type"`
			ID   string `json:"request_id"`
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Type == "control_request" {
			fmt.Printf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"claude_code_version":"0","totalTokens":1,"maxTokens":200000}}}`+"\n", l.ID)
		}
	}
	time.Sleep(time.Hour)
}

// gone waits until no process of a session is left.
func gone(t *testing.T, mark string) {
	t.Helper()
	left := process.Leftovers(mark)
	for until := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(until); left = process.Leftovers(mark) {
		runtime.Gosched()
	}
	if len(left) > 0 {
		t.Errorf("%v of %s are left", left, mark)
	}
}

// TestNothingLeft: however the bridge ends, no process of an agent is left.
func TestNothingLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what outlives its host is found on Linux only")
	}
	for _, how := range []string{"SIGKILL", "end of input", "end of output", "shutdown"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			self, _ := os.Executable()
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), program+"=bridge")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			h := &host{t: t, out: bufio.NewScanner(out), served: make(chan error, 1)}
			marks := []string{}
			for n := range 2 {
				_, _ = fmt.Fprintf(in, `{"cmd":"spawn","id":"a%d"}`+"\n", n)
				h.until("session", fmt.Sprintf("id=a%d", n))
				for h.seen = 0; ; {
					e := h.until("log", fmt.Sprintf("id=a%d", n))
					if mark, is := strings.CutPrefix(e.text("text"), "mark "); is {
						marks = append(marks, mark)
						break
					}
				}
			}
			for _, mark := range marks {
				if len(process.Leftovers(mark)) == 0 {
					t.Fatalf("nothing of %s is found", mark)
				}
			}
			switch how {
			case "SIGKILL":
				_ = cmd.Process.Kill()
			case "end of input":
				_ = in.Close()
			case "end of output":
				_ = out.Close()
				_, _ = io.WriteString(in, `{"cmd":"list"}`+"\n")
			case "shutdown":
				_, _ = io.WriteString(in, `{"cmd":"shutdown"}`+"\n")
			}
			for h.out.Scan() {
			}
			_ = cmd.Wait()
			for _, mark := range marks {
				gone(t, mark)
			}
		})
	}
}

// TestClaude: the real program summons an orchestrator, is told that its context gets full with
// the result of that, asks to be allowed something, and leaves nothing when it is killed.
func TestClaude(t *testing.T) {
	path := agenttest.Program(t, "claude")
	s := agenttest.Start(t)
	h := serve(t, agents{"": claude.New(path, agenttest.ClaudeEnv(s, t.TempDir())...)})
	dir := t.TempDir()
	h.send(line(m{"cmd": "spawn", "req": 1, "id": "manager", "config": m{"model": "claude-haiku-4-5", "system_prompt": "You are the manager.", "cwd": dir,
		"mcp_tools": []string{"spawn_orchestrator"}, "permission": m{"deny": []string{"Bash(rm*)"}}}}))
	e := h.until("session", "agent=claude", "resumed=false")
	if e.number("window") <= e.number("ceiling") || !strings.Contains(fmt.Sprint(e["capabilities"]), "block_compaction") {
		t.Errorf("%v", e)
	}
	summon := agenttest.Uses("mcp__dialai__spawn_orchestrator", m{"prompt": "Write the export."})
	summon.CacheRead = int64(e.number("ceiling")) * 3 / 4
	mark := agenttest.Uses("Bash", m{"command": "echo $DIALAI_SESSION >mark.txt", "description": "a mark"})
	remove := agenttest.Uses("Bash", m{"command": "rm mark.txt", "description": "remove it"})
	mark.CacheRead, remove.CacheRead = summon.CacheRead, summon.CacheRead
	h.send(line(m{"cmd": "message", "req": 2, "id": "manager", "content": agenttest.Prompt("Go on.", summon, mark, remove, agenttest.Step{Text: "Summoned.", CacheRead: summon.CacheRead})}))
	h.until("context_warning", "level=soft", "pct=75")
	h.until("tool_call", "tool=spawn_orchestrator", "orch=orch-1", "input=map[prompt:Write the export.]")
	ask := h.until("permission", "tool=Bash")
	h.send(line(m{"cmd": "approve", "id": "manager", "ask": ask["ask"], "allow": true}))
	h.until("done", "outcome=done", "unprompted=false")
	if len(h.all("permission")) != 1 || len(h.all("context_warning")) != 1 || len(h.all("tool_done", "ok=false")) != 1 {
		t.Errorf("%s", h)
	}
	if told := s.Requests()[1].Since; !strings.Contains(told, "Orchestrator orch-1 summoned. Awaiting their response.") || !strings.Contains(told, "[Notice] Your context is 75 % full.") {
		t.Errorf("the model was told %q", told)
	}
	if system := s.Requests()[0].System; !strings.Contains(system, "You are the manager.") {
		t.Error("the model was not given the persona")
	}
	text, err := os.ReadFile(dir + "/mark.txt")
	session := strings.TrimSpace(string(text))
	if err != nil || !strings.HasSuffix(session, "/manager") {
		t.Fatalf("%q, %v", text, err)
	}
	if runtime.GOOS == "linux" && len(process.Leftovers(session)) == 0 {
		t.Errorf("nothing of %s is found", session)
	}
	h.send(`{"cmd":"usage","id":"manager","req":3}`, `{"cmd":"kill","id":"manager","req":4}`)
	if e := h.until("ok", "req=3"); e.number("context_pct") <= 0 {
		t.Errorf("%v", e)
	}
	h.until("exit", "left=[]")
	if runtime.GOOS == "linux" {
		gone(t, session)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
}

// TestClaudeCrash: of the real program that is killed in its turn the host is told why the turn
// failed, that it ended, and the exit; then the conversation can be gone on with.
func TestClaudeCrash(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("its processes are found on Linux only")
	}
	path := agenttest.Program(t, "claude")
	s := agenttest.Start(t)
	h := serve(t, agents{"": claude.New(path, agenttest.ClaudeEnv(s, t.TempDir())...)})
	dir := t.TempDir()
	config := m{"model": "claude-haiku-4-5", "cwd": dir, "permission": m{"allow": []string{"Bash"}}}
	h.send(line(m{"cmd": "spawn", "id": "a", "config": config}))
	opened := h.until("session")
	h.send(line(m{"cmd": "message", "id": "a", "content": agenttest.Prompt("Begin.", agenttest.Step{Text: "begun"})}))
	h.until("done") // what the program writes down in its first turn it may not have when it is killed in that
	mark := agenttest.Uses("Bash", m{"command": "echo $DIALAI_SESSION >mark.txt", "description": "a mark"})
	h.send(line(m{"cmd": "message", "id": "a", "content": agenttest.Prompt("Go on.", mark, agenttest.Step{Text: "late", Millis: 60_000})}))
	h.until("tool_done", "ok=true")
	text, err := os.ReadFile(dir + "/mark.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range process.Leftovers(strings.TrimSpace(string(text))) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	h.until("error", "code=crashed", "retryable=true")
	h.until("done", "outcome=crashed")
	h.until("exit", "code=-1", "signal=killed", "left=[]")
	config["resume"] = opened["session_id"]
	h.send(line(m{"cmd": "spawn", "id": "a", "config": config}))
	if e := h.until("session"); e["session_id"] != opened["session_id"] || e["resumed"] != true {
		t.Errorf("%v", e)
	}
	h.send(line(m{"cmd": "message", "id": "a", "content": agenttest.Prompt("Again.", agenttest.Step{Text: "here"})}))
	h.until("assistant", "text=here")
	if err := h.end(); err != nil || len(h.all("error")) != 1 || len(h.all("permission")) != 0 {
		t.Errorf("%v\n%s", err, h)
	}
}

// TestCodex: the real program summons an orchestrator, has its permission asked, and ends.
func TestCodex(t *testing.T) {
	path := agenttest.Program(t, "codex")
	s := agenttest.Start(t)
	home := t.TempDir()
	settings := fmt.Sprintf("model = \"of-the-test\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"%s/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n", s.URL)
	if err := os.WriteFile(home+"/config.toml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	h := serve(t, agents{"": codex.New(path, "HOME="+home, "CODEX_HOME="+home, "FAKE_KEY=dummy")})
	h.send(line(m{"cmd": "spawn", "id": "a", "config": m{"cwd": t.TempDir(), "mcp_tools": []string{"spawn_orchestrator"}}}))
	h.until("session", "agent=codex")
	summon := agenttest.Uses("spawn_orchestrator", m{"prompt": "Write the export."})
	summon.CacheRead = 200_000
	touch := agenttest.Uses("exec_command", m{"cmd": "touch a"})
	h.send(line(m{"cmd": "message", "id": "a", "content": agenttest.Prompt("Go on.", summon, touch, agenttest.Step{Text: "Summoned."})}),
		`{"cmd":"message","id":"a","content":"Stop.","deliver":"now","req":7}`)
	h.until("error", "code=unsupported", "req=7")
	h.until("tool_call", "orch=orch-1", "input=map[prompt:Write the export.]")
	h.until("context_warning")
	ask := h.until("permission", "tool=exec_command")
	h.send(line(m{"cmd": "approve", "id": "a", "ask": ask["ask"], "allow": false, "reason": "Not now."}))
	h.until("done", "outcome=done")
	h.send(`{"cmd":"kill","id":"a"}`)
	h.until("exit", "left=[]")
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
}
