package cli_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// What a faulty program cannot do without a panic.
const (
	undrawn   = "☠"             // draw this
	untrimmed = "☣"             // take this at the end of a line that is entered
	noRandom  = "no-randomness" // make an id while there is a file of this name
)

// faulty makes faults in this process in places that the program takes for sound.
func faulty() {
	dividesByZero(unicode.Noncharacter_Code_Point, undrawn)
	dividesByZero(unicode.White_Space, untrimmed)
	uuid.SetRand(random{})
}

// dividesByZero has a table panic when it is asked for a character.
func dividesByZero(t *unicode.RangeTable, char string) {
	r := uint16([]rune(char)[0])
	t.R16 = append(slices.Clone(t.R16), unicode.Range16{Lo: r, Hi: r, Stride: 0})
	slices.SortFunc(t.R16, func(a, b unicode.Range16) int { return int(a.Lo) - int(b.Lo) })
}

type random struct{}

func (random) Read(p []byte) (int, error) {
	if _, err := os.Stat(noRandom); err == nil {
		return 0, errors.New("no randomness is left")
	}
	return rand.Read(p)
}

// atWork returns a home whose worker has a process that does not end by itself before there is a
// file done in the tree.
func atWork(t *testing.T) *home {
	h := atDesk(t)
	h.program = "dialai-faulty"
	h.file("agents.jsonl", `{"used": 52000, "window": 200000, "tools": [{"tool": "Bash", "input": {"command": "echo $$ >pid; test -e done || exec sleep 600"}}],`+
		` "submit": {"transition": "complete", "message": "all is there", "accomplished": ["all"], "remaining": []}}`)
	return h
}

var undertakeSolo = []string{"undertake", "--solo", "spec.md", "--agent", "scripted:agents.jsonl", "--cwd", "tree", "--allow", "Bash"}

// pid returns the process of the worker, when it has begun.
func (h *home) pid() (pid int) {
	h.Helper()
	h.until(func() string {
		text, _ := os.ReadFile(filepath.Join(h.dir, "tree", "pid"))
		line, whole := strings.CutSuffix(string(text), "\n")
		if pid, _ = strconv.Atoi(line); !whole {
			return "the worker has no process"
		}
		return ""
	})
	return pid
}

// until waits until nothing is missing any more.
func (h *home) until(missing func() string) {
	h.Helper()
	late := time.After(patience)
	each := time.NewTicker(20 * time.Millisecond)
	defer each.Stop()
	for what := missing(); what != ""; what = missing() {
		select {
		case <-each.C:
		case <-late:
			h.Fatal(what)
		}
	}
}

// afterScreen returns what was printed after the other screen was left.
func afterScreen(text string) string {
	return text[max(0, strings.LastIndex(text, "\x1b[?1049l")):]
}

// TestUndertakePanics: wherever the screen panics, the terminal is given back before it is told
// what the fault is and how to go on; no process of an agent is left, and nothing is lost.
func TestUndertakePanics(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*home, *terminal)
		says  string
	}{
		"drawing": {func(_ *home, at *terminal) { at.send(undrawn) }, "integer divide by zero"},
		"a key":   {func(_ *home, at *terminal) { at.send(untrimmed + "\r") }, "integer divide by zero"},
		"what a key asks for": {func(h *home, at *terminal) {
			h.file(noRandom, "")
			at.send("hurry\r")
		}, "no randomness is left"},
	} {
		t.Run(name, func(t *testing.T) {
			h := atWork(t)
			at := h.terminal(nil, undertakeSolo...)
			at.expect("THE WEAVING")
			at.expect("Orchestrator I")
			pid := h.pid()
			c.fault(h, at)
			told := afterScreen(at.ends(1))
			at.given(at.text)
			id := first(t, `hint: dialai-faulty undertake --resume (\S+) goes on\n`, told)
			for _, want := range []string{c.says, "goroutine ", "\nthe screen has failed"} {
				if !strings.Contains(told, want) {
					t.Errorf("it does not say %q:\n%s", want, told)
				}
			}
			if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
				t.Errorf("the worker's process has not ended: %v", err)
			}
			h.goesOn(id)
		})
	}
}

// goesOn checks that the worker goes on with its turn.
func (h *home) goesOn(id string) {
	h.Helper()
	h.program = ""
	h.file("tree/done", "")
	out, _ := h.run(3, "undertake", "--resume", id, "--allow", "Bash", "--no-wait")
	for _, want := range []string{"orch-1 26% opened again\n", "orchestrator complete → checking: all is there\n"} {
		if !strings.Contains(out, want) {
			h.Errorf("gone on with it does not say %q:\n%s", want, out)
		}
	}
}

// TestUndertakeLoopPanics: a panic beside the screen ends the process as any panic does, and the
// terminal is given back before; nothing is lost.
func TestUndertakeLoopPanics(t *testing.T) {
	h := atWork(t)
	at := h.terminal(nil, undertakeSolo...)
	at.expect("Orchestrator I")
	pid := h.pid()
	defer syscall.Kill(pid, syscall.SIGKILL)
	h.program = ""
	sessions, _ := h.run(0, "sessions", "--json")
	id := first(t, `"sessionId":"([^"]+)"`, sessions)
	h.file(noRandom, "")
	h.run(0, "say", id, "hurry")
	at.panics()
	h.program = "dialai-faulty" // which panics as soon as it goes on
	at = h.terminal(nil, "undertake", "--resume", id, "--allow", "Bash")
	at.panics()
	h.goesOn(id)
}

// panics checks that the process ends by a panic, after it has given the terminal back.
func (t *terminal) panics() {
	t.Helper()
	told := afterScreen(t.ends(2))
	t.given(t.text)
	if !strings.Contains(told, "panic: no randomness is left") {
		t.Errorf("it ends with %q", told)
	}
}

// TestUndertakeBeginPanics: when it panics before anything was begun, nothing was.
func TestUndertakeBeginPanics(t *testing.T) {
	h := atWork(t)
	h.file(noRandom, "")
	at := h.terminal(nil, slices.Concat(undertakeSolo[:2], undertakeSolo[3:])...)
	at.expect("Say what is to be done")
	at.send("Export the invoices\r")
	told := afterScreen(at.ends(1))
	at.given(at.text)
	if !strings.Contains(told, "no randomness is left") || !strings.Contains(told, "\nthe screen has failed") || strings.Contains(told, "hint:") {
		t.Errorf("it ends with %q", told)
	}
	if out, _ := h.run(0, "sessions"); strings.Contains(out, "undertaking") {
		t.Errorf("there is a session:\n%s", out)
	}
}

// TestWatchPanics: a panic of who watches is theirs alone.
func TestWatchPanics(t *testing.T) {
	h := atWork(t)
	h.program = ""
	at := h.terminal(nil, undertakeSolo...)
	at.expect("Orchestrator I")
	h.pid()
	h.program = "dialai-faulty"
	watching := h.terminal(nil, "watch")
	watching.expect("Orchestrator I")
	watching.send("\x1b[17~") // F6
	watching.expect("LOG")
	at.send(undrawn + "\r")
	told := afterScreen(watching.ends(1))
	watching.given(watching.text)
	if !strings.Contains(told, "integer divide by zero") || !strings.Contains(told, "\nthe screen has failed") {
		t.Errorf("it ends with %q", told)
	}
	at.send("\x03\x03")
	at.ends(130)
}
