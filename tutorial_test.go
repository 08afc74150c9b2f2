package dialai_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// tutorials are played from their empty folder to their end.
var tutorials = []string{"docs/tutorial.md", "docs/approvals.md", "docs/permissions.md", "docs/serving.md", "docs/undertakings.md", "docs/bridge.md"}

// lineClock is the time of all lines that tell what happens.
const lineClock = "15:04:05 "

// A lesson plays a tutorial: it writes the files that the tutorial has the reader
// write, runs the commands in their order, and notes what they print.
type lesson struct {
	*shell
	name    string // of the tutorial
	text    string // as it is
	port    string // of the server that was started; "" if none was
	played  strings.Builder
	printed map[string]string // what an id that was printed is called in the tutorial
}

// TestTutorials plays the tutorials, and compares what every command prints with what they
// say. Ids and times differ. With -update it writes what was printed into them.
func TestTutorials(t *testing.T) {
	t.Parallel() // each waits for disks and processes, most of the time
	for _, name := range tutorials {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			l := &lesson{shell: newShell(t), name: name, text: string(text), printed: map[string]string{}}
			for _, tool := range []string{"curl", "jq"} {
				if _, err := exec.LookPath(tool); err != nil && strings.Contains(l.text, "$ "+tool+" ") {
					t.Skipf("the tutorial needs %s (Debian: apt-get install %s): %v", tool, tool, err)
				}
			}
			l.folder = filepath.Join(l.dir, "reader")
			if err := os.Mkdir(l.folder, 0o700); err != nil {
				t.Fatal(err)
			}
			l.play()
			if *update {
				if err := os.WriteFile(name, []byte(l.played.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// fenced matches a block of the tutorial: its language, the file that it is, if it is
// one, and what is in it.
var fenced = regexp.MustCompile("(?ms)^```(\\w+)(?: ([\\w.]+))?\n(.*?)^```$")

// play goes through the blocks of the tutorial.
func (l *lesson) play() {
	rest := 0
	for _, m := range fenced.FindAllStringSubmatchIndex(l.text, -1) {
		language, body := l.text[m[2]:m[3]], l.text[m[6]:m[7]]
		l.played.WriteString(l.text[rest:m[6]])
		rest = m[7]
		switch {
		case m[4] >= 0:
			l.write(l.text[m[4]:m[5]], body)
		case language == "console":
			body = l.console(body)
		case language == "mermaid":
			body = l.compare("dialai graph invoices.yaml", body)
		default:
			l.Errorf("%s: a block of %s that is neither a file nor commands:\n%s", l.name, language, body)
		}
		l.played.WriteString(body)
	}
	l.played.WriteString(l.text[rest:])
}

func (l *lesson) write(name, body string) {
	l.Helper()
	if err := os.WriteFile(filepath.Join(l.folder, name), []byte(body), 0o600); err != nil {
		l.Fatal(err)
	}
}

// console runs the commands of a block, and returns it with what they printed.
func (l *lesson) console(block string) string {
	l.Helper()
	var b strings.Builder
	for _, part := range regexp.MustCompile(`(?m)^\$ `).Split(block, -1)[1:] {
		line, want, _ := strings.Cut(part, "\n")
		fmt.Fprintf(&b, "$ %s\n", line)
		switch verb, argument, _ := strings.Cut(line, " "); verb {
		case "cd":
			l.folder = filepath.Join(l.folder, argument)
		case "export":
			l.env = append(l.env, l.run(`printf %s `+l.here(l.real(argument))))
		default:
			b.WriteString(l.compare(line, want))
		}
	}
	return b.String()
}

// Where the page has a server, and its data: the ones of the test are elsewhere.
const (
	pagePort = "8420"
	pageData = "~/.local/share"
)

// serve starts the server of a tutorial, in place of another terminal, until its end, and
// returns what it prints.
func (l *lesson) serve(command string, lines int) string {
	l.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	_, l.port, _ = net.SplitHostPort(free.Addr().String())
	free.Close()
	words := strings.Fields(command)
	cmd := exec.Command(filepath.Join(l.dir, words[0]), words[1:]...)
	cmd.Env = append(l.env, "DIALAI_PORT="+l.port)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	var text []byte
	for one := make([]byte, 1); lines > 0; {
		if _, err := io.ReadFull(out, one); err != nil {
			l.Fatalf("%s prints %q: %v", command, text, err)
		}
		if text = append(text, one[0]); one[0] == '\n' {
			lines--
		}
	}
	return string(text)
}

// here returns a text of the page as it is in the test; there does the reverse.
func (l *lesson) here(text string) string {
	if l.port == "" {
		return text
	}
	return strings.NewReplacer(":"+pagePort, ":"+l.port, pageData, filepath.Join(l.dir, "data")).Replace(text)
}

func (l *lesson) there(text string) string {
	if l.port == "" {
		return text
	}
	return strings.NewReplacer(":"+l.port, ":"+pagePort, filepath.Join(l.dir, "data"), pageData).Replace(text)
}

// compare runs a command and returns what it prints, with the tutorial's ids and times.
func (l *lesson) compare(line, want string) string {
	l.Helper()
	out := ""
	if strings.HasPrefix(line, "dialai serve") {
		out = l.serve(line, 2)
	} else {
		out = l.run(l.here(l.real(line)))
	}
	out = l.there(out)
	if !*update {
		l.learn(want, out)
		if got, want := plain(out), plain(want); got != want {
			l.Errorf("$ %s\nprints\n%s\n%s says\n%s", line, got, l.name, want)
		}
		return want
	}
	shown := idPattern.FindAllString(want, -1)
	out = idPattern.ReplaceAllStringFunc(out, func(id string) string {
		var old string
		if len(shown) > 0 {
			old, shown = shown[0], shown[1:]
		}
		return l.call(id, old)
	})
	if old := keyedPattern.FindAllString(want, -1); len(old) == len(keyedPattern.FindAllString(out, -1)) {
		out = keyedPattern.ReplaceAllStringFunc(out, func(string) (kept string) {
			kept, old = old[0], old[1:]
			return kept
		})
	}
	out = agePattern.ReplaceAllStringFunc(out, func(age string) string { return "  2m" + strings.Repeat(" ", len(age)-4) })
	out = clockPattern.ReplaceAllString(out, lineClock)
	return timePattern.ReplaceAllString(out, "2026-01-02T03:04:05.000Z")
}

// call names an id that was printed: as before, as the tutorial had it in this place,
// or anew.
func (l *lesson) call(id, old string) string {
	if name := l.printed[id]; name != "" {
		return name
	}
	name := old
	if len(name) != len(id) || l.ids[name] != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "tutorial %d", len(l.printed)))
		digits := hex.EncodeToString(sum[:])
		name = digits[:min(len(id), 12)]
		if len(id) > len(name) {
			name = fmt.Sprintf("%s-%s-4%s-8%s-%s", digits[:8], digits[8:12], digits[12:15], digits[15:18], digits[18:30])
		}
	}
	l.printed[id], l.ids[name] = name, id
	if short := id[:8]; len(id) > 12 && l.printed[short] == "" { // commands begin with that
		l.printed[short], l.ids[name[:8]] = name[:8], short
	}
	return name
}
