package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/agent/agenttest"
)

// A real agent asks dialai permit for its permissions. It is Claude Code, whose provider is a
// server of the test, which says what the prompt tells it to.

// A claudeRun is what one run of the program needs.
type claudeRun struct {
	t     *testing.T
	fake  *agenttest.Server
	cwd   string
	store string
}

func claudeAt(t *testing.T) *claudeRun {
	t.Helper()
	t.Parallel()
	agenttest.Program(t, "claude")
	return &claudeRun{t: t, fake: agenttest.Start(t), cwd: t.TempDir(), store: filepath.Join(t.TempDir(), "dialai.db")}
}

// start starts it with a prompt, and returns how to wait for its end.
func (c *claudeRun) start(prompt string, args ...string) (wait func() (output string)) {
	c.t.Helper()
	cmd := exec.Command(agenttest.Program(c.t, "claude"), append([]string{"-p", prompt, "--setting-sources", "project", "--model", "claude-haiku-4-5"}, args...)...)
	cmd.Dir = c.cwd
	cmd.Env = append(os.Environ(), agenttest.ClaudeEnv(c.fake, c.t.TempDir())...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() string {
		if err := cmd.Wait(); err != nil {
			c.t.Errorf("claude: %v\n%s", err, &out)
		}
		return out.String()
	}
}

// dialai runs the program and returns what it prints.
func (c *claudeRun) dialai(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = c.cwd
	out, err := cmd.Output()
	if args[0] == "decide" && cmd.ProcessState.ExitCode() == 6 { // the machine's end is no goal: it was denied
		err = nil
	}
	if err != nil {
		c.t.Fatalf("dialai %q: %v", args, err)
	}
	return string(out)
}

// question waits until there is one, and returns its session.
func (c *claudeRun) question() (session string) {
	c.t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		if _, err := os.Stat(c.store); err != nil {
			continue
		}
		d := json.NewDecoder(strings.NewReader(c.dialai("inbox", "--json", "--store", c.store)))
		for d.More() {
			var q struct {
				SessionID string `json:"sessionId"`
			}
			if err := d.Decode(&q); err != nil {
				c.t.Fatal(err)
			}
			if q.SessionID != "" {
				return q.SessionID
			}
		}
	}
	c.t.Fatal("no question came")
	return ""
}

func (c *claudeRun) exists(name string) bool {
	_, err := os.Stat(filepath.Join(c.cwd, name))
	return err == nil
}

// told reports whether the model was told something.
func (c *claudeRun) told(what string) bool {
	for _, r := range c.fake.Requests() {
		if strings.Contains(r.Since, what) {
			return true
		}
	}
	return false
}

func touch(name string) agenttest.Step {
	return agenttest.Uses("Bash", map[string]any{"command": "touch " + name, "description": "make a file"})
}

// TestClaudeHook: with the settings that dialai agents hooks prints, what the agent asks is a
// question of the inbox, and what is ruled happens; a reason reaches the model.
func TestClaudeHook(t *testing.T) {
	c := claudeAt(t)
	settings := c.dialai("agents", "hooks", "claude", "--store", c.store)
	if err := os.MkdirAll(filepath.Join(c.cwd, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.cwd, ".claude", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	wait := c.start(agenttest.Prompt("Go on.", touch("allowed"), touch("refused"), agenttest.Step{Text: "That is all."}))
	first := c.question()
	if c.exists("allowed") {
		t.Error("it was done before it was ruled")
	}
	c.dialai("decide", first, "allow", "--quiet", "--store", c.store)
	c.dialai("decide", c.question(), "deny", "--data", `{"message":"Write a test first."}`, "--quiet", "--store", c.store)
	if out := wait(); !strings.Contains(out, "That is all.") {
		t.Errorf("it printed %q", out)
	}
	if !c.exists("allowed") || c.exists("refused") {
		t.Errorf("allowed is there: %v, refused is there: %v", c.exists("allowed"), c.exists("refused"))
	}
	if !c.told("Write a test first.") {
		t.Error("the model was not told why")
	}
}

// TestClaudePromptTool: the same by the tool of dialai permit --mcp, to which the program leaves
// its prompts.
func TestClaudePromptTool(t *testing.T) {
	c := claudeAt(t)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"dialai": map[string]any{
		"command": program, "args": []string{"permit", "--mcp", "--store", c.store}}}})
	if err != nil {
		t.Fatal(err)
	}
	wait := c.start(agenttest.Prompt("Go on.", touch("allowed"), touch("refused"), agenttest.Step{Text: "That is all."}),
		"--strict-mcp-config", "--mcp-config", string(config), "--permission-prompt-tool", "mcp__dialai__permit")
	c.dialai("decide", c.question(), "allow", "--quiet", "--store", c.store)
	c.dialai("decide", c.question(), "deny", "--data", `{"message":"Write a test first."}`, "--quiet", "--store", c.store)
	wait()
	if !c.exists("allowed") || c.exists("refused") {
		t.Errorf("allowed is there: %v, refused is there: %v", c.exists("allowed"), c.exists("refused"))
	}
	if !c.told("Write a test first.") {
		t.Error("the model was not told why")
	}
}
