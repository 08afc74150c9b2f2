package cli_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// patience is how long a test waits for a program before it gives up.
const patience = 30 * time.Second

// A home is a directory in which programs run, with a store of its own.
type home struct {
	*testing.T
	dir string
	env []string

	program string // "" means dialai
	stdin   string // what run gives programs to read
	columns uint16 // of terminals; 0 means 60
}

func newHome(t *testing.T) *home {
	dir := t.TempDir()
	h := &home{T: t, dir: dir}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "DIALAI_") && name != "NO_COLOR" && name != "DATABASE_URL" {
			h.env = append(h.env, v)
		}
	}
	h.env = append(h.env, "XDG_DATA_HOME="+filepath.Join(dir, ".data"), "TERM=xterm", "EXAMPLE_WEBHOOK_TOKEN=hooktoken")
	return h
}

// service starts a hook whose address programs may call.
func (h *home) service() *hook {
	s := newHook()
	h.Cleanup(s.Close)
	h.env = append(h.env, "DIALAI_WEBHOOK_ALLOW="+s.address())
	return s
}

// awaits waits until a service was asked so many times for what it holds back.
func (h *home) awaits(s *hook, n int) {
	h.Helper()
	if err := s.await("/wait", n); err != nil {
		h.Fatal(err)
	}
}

// forget gives programs another store.
func (h *home) forget() { h.env = append(h.env, "XDG_DATA_HOME="+h.TempDir()) }

// file writes a file.
func (h *home) file(name, text string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(h.program, "dialai"), args...)
	cmd.Dir, cmd.Env = h.dir, h.env
	return cmd
}

// run runs the program to its end.
func (h *home) run(want int, args ...string) (stdout, stderr string) {
	h.Helper()
	cmd := h.command(args...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(h.stdin), &out, &problems
	if got := exitOf(h.T, cmd.Run()); got != want {
		h.Fatalf("dialai %q: exit code %d, want %d\n%s%s", args, got, want, &out, &problems)
	}
	return out.String(), problems.String()
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// A terminal is a pseudo-terminal with the program at it.
type terminal struct {
	*testing.T
	cmd    *exec.Cmd
	pty    *os.File
	before *term.State // its modes when it was opened

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something was printed
	text    string
	seen    int // what expect has found ends here
	closed  bool
}

// terminal starts the program at a terminal: stdin and stderr, and stdout unless
// out is given.
func (h *home) terminal(out io.Writer, args ...string) *terminal {
	h.Helper()
	cmd := h.command(args...)
	cmd.Stdout = out
	file, tty, err := pty.Open()
	if err == nil {
		err = pty.Setsize(file, &pty.Winsize{Rows: 24, Cols: cmp.Or(h.columns, 60)})
	}
	if err != nil {
		h.Fatal(err)
	}
	t := &terminal{T: h.T, cmd: cmd, pty: file, changed: make(chan struct{})}
	t.before = t.modes() // before the program can have changed them
	cmd.Stdin, cmd.Stderr = tty, tty
	if out == nil {
		cmd.Stdout = tty
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	tty.Close()
	go t.read()
	h.Cleanup(func() {
		cmd.Process.Kill()
		file.Close()
	})
	return t
}

func (t *terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := t.pty.Read(b)
		t.mu.Lock()
		t.text += string(b[:n])
		t.closed = err != nil // a terminal that everybody has left
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// expect waits until the program has printed text since it was last asked, and
// returns what was printed before that.
func (t *terminal) expect(text string) (before string) {
	t.Helper()
	late := time.After(patience)
	for {
		t.mu.Lock()
		rest, closed, changed := t.text[t.seen:], t.closed, t.changed
		i := strings.Index(rest, text)
		if i >= 0 {
			t.seen += i + len(text)
		}
		t.mu.Unlock()
		switch {
		case i >= 0:
			return rest[:i]
		case closed:
			t.Fatalf("the program ended without printing %q:\n%s", text, rest)
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("the program does not print %q:\n%s", text, rest)
		}
	}
}

// send types text.
func (t *terminal) send(text string) {
	t.Helper()
	if _, err := io.WriteString(t.pty, text); err != nil {
		t.Fatal(err)
	}
}

// ends waits until the program ends with an exit code, and returns everything
// that was printed.
func (t *terminal) ends(want int) string {
	t.Helper()
	timer := time.AfterFunc(patience, func() { t.cmd.Process.Kill() })
	defer timer.Stop()
	got := exitOf(t.T, t.cmd.Wait())
	for {
		t.mu.Lock()
		text, closed, changed := t.text, t.closed, t.changed
		t.mu.Unlock()
		if closed {
			if got != want {
				t.Fatalf("exit code %d, want %d:\n%s", got, want, text)
			}
			return strings.ReplaceAll(text, "\r\n", "\n")
		}
		<-changed
	}
}

// first returns what the group of a pattern matches first.
func first(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing matches %s in\n%s", pattern, text)
	}
	return m[1]
}
