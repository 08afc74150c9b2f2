package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A multiplexer is tmux with a shell in its only pane.
type multiplexer struct {
	*home
	server string
}

// tmux starts a shell in a pane of so many columns and lines. Where there is no tmux the test is
// skipped; with DIALAI_REQUIRE_AGENTS=1 it fails.
func (h *home) tmux(columns, lines int) *multiplexer {
	h.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("DIALAI_REQUIRE_AGENTS") == "1" {
			h.Fatal("no tmux: apt-get install tmux")
		}
		h.Skip("no tmux: apt-get install tmux")
	}
	m := &multiplexer{h, fmt.Sprintf("dialai-test-%d", os.Getpid())}
	m.ask("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines), "PS1='> ' exec sh")
	socket := strings.TrimSpace(m.ask("display-message", "-p", "#{socket_path}"))
	h.Cleanup(func() { _, _ = m.command("kill-server").Run(), os.Remove(socket) })
	return m
}

func (m *multiplexer) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-L", m.server}, args...)...)
	cmd.Dir, cmd.Env = m.dir, m.env
	return cmd
}

// ask has tmux do something, and returns what it says.
func (m *multiplexer) ask(args ...string) string {
	m.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// types types a text, and then keys by their names.
func (m *multiplexer) types(text string, keys ...string) {
	m.Helper()
	if text != "" {
		m.ask("send-keys", "-l", text)
	}
	for _, key := range keys {
		m.ask("send-keys", key)
	}
}

// resize makes the pane larger or smaller.
func (m *multiplexer) resize(columns, lines int) {
	m.Helper()
	m.ask("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines))
}

// sees waits until all texts are seen at the same time, in their order, and returns all that is.
func (m *multiplexer) sees(texts ...string) (all string) {
	m.Helper()
	m.until(func() string {
		all = m.ask("capture-pane", "-p")
		rest := all
		for _, text := range texts {
			_, after, seen := strings.Cut(rest, text)
			if !seen {
				return fmt.Sprintf("%q is not seen:\n%s", text, all)
			}
			rest = after
		}
		return ""
	})
	return all
}

// TestUndertakeInTmux: in a terminal that somebody else has written, the screen shows the state, who
// works, how full their context is and the tasks; what is typed is heard, it follows the size of the
// terminal, and what was there before is there again after it.
func TestUndertakeInTmux(t *testing.T) {
	h := atDesk(t)
	h.file("agents.jsonl", agentsInTmux)
	m := h.tmux(80, 24)
	m.sees(">")
	m.types("echo seen $((40 + 2)) before", "Enter")
	m.sees("\nseen 42 before\n")
	m.types("dialai "+strings.Join(undertake, " ")+" --allow Bash", "Enter")
	m.sees("║ THE ORACLE ", "understanding: A CSV file of the invoices", "║ awaiting_assent · YOUR MOVE · ")
	m.types("With a header, please.", "Enter") // a ruling
	m.sees("understanding: A CSV file with a header", "║ the manager changes the plan by it ", "YOUR MOVE")
	m.types("", "Home")
	m.sees("║ You ", "║   With a header, please. ")
	m.types("/assent", "Enter")
	weaving := func(columns int) []string {
		rule := strings.Repeat("═", columns-2)
		return []string{
			"╔" + rule + "╗\n║ THE WEAVING ", "║ Task: Export invoices ", "║ Orchestrator I ..", ". ██░░░░░░░░  21% ║\n║ └─ Bash ", "║ ○ write export.csv ",
			"║ weaving · orch-1 moves · $0.25/20 · mgr 6% · working", "║\n╚" + rule + "╝\n",
		}
	}
	m.sees(weaving(80)...)
	m.resize(60, 16)
	m.sees(weaving(60)...)
	m.resize(20, 16)
	m.sees("60×16 needed, 20×16…\n" + strings.Repeat("\n", 15))
	m.resize(80, 24)
	m.sees(weaving(80)...)
	m.types("Keep it short.")
	m.sees("║ > Keep it short. ")
	m.types("", "Enter") // a word
	m.sees("║ the manager gets it in its turn ")
	m.types("/log respond", "Enter")
	m.sees("║ THE LOG ", " manager respond → weaving: It will be. ")
	m.types("", "Escape")
	m.sees("║ THE WEAVING ")
	h.file("tree/done", "")
	m.sees("║ THE DECISION ", "YOUR MOVE")
	m.types("", "F2")
	m.sees("Which move?")
	m.types("1")
	m.sees("║ THE END ", "║ Any key leaves. ")
	m.types("x")
	if all := m.sees("\nseen 42 before\n", "> dialai undertake ", "\nfulfilled: $0.58 spent, in tree\n>"); strings.Contains(all, "║") {
		t.Errorf("the screen is still seen:\n%s", all)
	}
}

// agentsInTmux are a manager to whom two things are said, and a worker that waits for a file.
const agentsInTmux = `{"as": "manager", "used": 9000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "state_plan", "message": "This is what I have understood.", "understanding": "A CSV file of the invoices", "deliverables": ["export.csv"], "out_of_scope": ["sending it"], "done_when": ["it is there"], "check": "test -e done"}}
{"as": "manager", "used": 10000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "state_plan", "message": "Now with it.", "understanding": "A CSV file with a header", "deliverables": ["export.csv"], "out_of_scope": ["sending it"], "done_when": ["it is there"], "check": "test -e done"}}
{"as": "manager", "used": 11000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "brief", "message": "Write export.csv as the plan says."}}
{"as": "orchestrator", "used": 15000, "window": 200000, "cost_usd": 0.10, "submit": {"transition": "begin", "message": "I write the file.", "understanding": "one file", "approach": "write it", "tasks": ["write export.csv"]}}
{"as": "orchestrator", "used": 42000, "window": 200000, "cost_usd": 0.10, "tools": [{"tool": "Bash", "input": {"command": "until test -e done; do sleep 0.1; done"}}], "submit": {"transition": "complete", "message": "export.csv is there", "accomplished": ["export.csv"], "remaining": []}}
{"as": "manager", "used": 12000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "respond", "message": "It will be."}}
{"as": "manager", "used": 13000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "accept_report", "message": "The record says all of it is there."}}
{"as": "verifier-a", "used": 8000, "window": 200000, "cost_usd": 0.04, "submit": {"transition": "sound", "message": "It holds.", "findings": [{"text": "it is there", "evidence": "ls"}]}}
{"as": "verifier-b", "used": 8000, "window": 200000, "cost_usd": 0.04, "submit": {"transition": "sound", "message": "It holds.", "findings": [{"text": "it is there", "evidence": "ls"}]}}
{"as": "manager", "used": 14000, "window": 200000, "cost_usd": 0.05, "submit": {"transition": "fulfil", "message": "export.csv is there."}}
`
