package cli_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// atDesk returns a home with a specification and a script of agents, and a terminal of 80 columns.
func atDesk(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	h.columns = 80
	h.env = append(h.env, "TERM=xterm-256color")
	for name, to := range map[string]string{"spec.md": "spec.md", "agents.jsonl": "agents.jsonl"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "undertaking", name))
		if err != nil {
			t.Fatal(err)
		}
		h.file(to, string(text))
	}
	if err := os.Mkdir(filepath.Join(h.dir, "tree"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

var undertake = []string{"undertake", "spec.md", "--agent", "scripted:agents.jsonl", "--cwd", "tree", "--allow", "Write"}

// modes returns the terminal's modes.
func (t *terminal) modes() *term.State {
	t.Helper()
	m, err := term.GetState(int(t.pty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// given checks that a terminal is given back as it was.
func (t *terminal) given(text string) {
	t.Helper()
	if after := t.modes(); !reflect.DeepEqual(after, t.before) {
		t.Errorf("the terminal's modes were %+v, and are %+v", t.before, after)
	}
	if strings.LastIndex(text, "\x1b[?1049l") < strings.LastIndex(text, "\x1b[?1049h") || !strings.Contains(text, "\x1b[?1049h") {
		t.Error("the other screen is not left")
	}
	if strings.LastIndex(text, "\x1b[?25h") < strings.LastIndex(text, "\x1b[?25l") {
		t.Error("the cursor is hidden")
	}
}

// TestUndertakeOnTerminal: the plan is shown and agreed to, the decision is made by keys, another
// terminal watches, and the end is the command's.
func TestUndertakeOnTerminal(t *testing.T) {
	h := atDesk(t)
	at := h.terminal(nil, undertake...)
	at.expect("\x1b[?1049h")
	at.expect("ORACLE")
	at.expect("understanding: A CSV file of the invoices")
	at.expect("YOUR MOVE")
	at.send("\x1bOS") // F4
	at.expect("No tasks are listed yet.")
	at.send("\x1bOS")
	at.expect("/assent begins the work")
	if err := pty.Setsize(at.pty, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	at.send("/assent\r")
	at.expect("DECISION")
	at.expect("sound: It holds.")
	watching := h.terminal(nil, "watch")
	watching.expect("DECISION")
	at.send("\x1bOQ") // F2
	at.expect("Which move?")
	at.send("1")
	at.expect("END")
	at.expect("export.csv is there, checked, and judged sound by two.")
	at.expect("Any key leaves.")
	watching.expect("Any key leaves.")
	watching.send("x")
	watching.ends(0)
	at.send("x")
	text := at.ends(0)
	at.given(at.text)
	if !strings.Contains(text, "fulfilled: $0.58 spent") {
		t.Errorf("it ends with %q", text)
	}
}

// TestUndertakeLeft: Ctrl-C twice leaves, SIGTERM ends it, and both give the terminal back; what
// was there goes on.
func TestUndertakeLeft(t *testing.T) {
	h := atDesk(t)
	at := h.terminal(nil, undertake...)
	at.expect("YOUR MOVE")
	at.send("\x03")
	at.expect("DEPARTURE")
	at.expect("goes on.")
	at.send("\x03")
	text := at.ends(130)
	at.given(at.text)
	if !strings.Contains(text, "dialai undertake --resume ") {
		t.Errorf("it ends with %q", text)
	}
	resume := []string{"undertake", "--resume", "--allow", "Write"}
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(end) { // as nohup has it, for all that this starts
			continue
		}
		at = h.terminal(nil, resume...)
		at.expect("YOUR MOVE")
		if err := at.cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		at.ends(130)
		at.given(at.text)
	}
	at = h.terminal(nil, append(resume, "--plain")...)
	at.expect("awaiting_assent your move")
	at.send("/nothing\n")
	at.expect("there is no /nothing")
	at.send("/assent\n")
	at.expect("decided: assent")
	at.expect("verifying your move")
	at.send("/decide unsound\n")
	at.expect("decided: unsound")
	at.expect("summoning orch-2 opened")
	at.expect("your move") // the script has no more turns
	at.send("/quit\n")
	at.ends(130)
}

// TestUndertakeAsksFirst: without a specification the screen asks for it, and where work is
// unfinished a line asks what becomes of that.
func TestUndertakeAsksFirst(t *testing.T) {
	h := atDesk(t)
	at := h.terminal(nil, append([]string{"undertake"}, undertake[2:]...)...)
	at.expect("ARBITER")
	at.expect("Say what is to be done")
	at.send("Export the invoices\r")
	at.expect("understanding: A CSV file")
	at.send("\x03\x03")
	at.ends(130)
	at = h.terminal(nil, undertake...)
	at.expect("(r)esume the newest")
	at.send("l\n")
	at.expect("Export the invoices\r\n  session")
	at.expect("(r)esume the newest")
	at.send("q\n")
	at.ends(1)
	at = h.terminal(nil, undertake...)
	at.expect("(r)esume the newest")
	at.send("r\n")
	at.expect("understanding: A CSV file")
	at.send("\x03\x03")
	at.ends(130)
}
