package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// isTerminal reports whether w is one.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// widthOf returns how many columns a terminal has; 80 if it does not say.
func widthOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// A paint colours text, or leaves it as it is.
type paint bool

// paintFor returns colours for a terminal, unless NO_COLOR is set
// (https://no-color.org) or the terminal cannot show them.
func (a *app) paintFor(w io.Writer) paint {
	return paint(isTerminal(w) && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb")
}

func (p paint) code(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.code("1", s) }
func (p paint) red(s string) string    { return p.code("31", s) }
func (p paint) green(s string) string  { return p.code("32", s) }
func (p paint) yellow(s string) string { return p.code("33", s) }
func (p paint) dim(s string) string    { return p.code("2", s) }

// progress shows, on a terminal's stderr, whom a long step is waiting for. A nil
// progress shows nothing.
type progress struct {
	out   io.Writer
	width int // of the terminal; the line must not be longer
	quit  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	since time.Time
	names []string // specialists that have not answered
	shown bool
}

// quietFor is how long a step may take before it is talked about.
const quietFor = time.Second

func (a *app) newProgress() *progress {
	if !isTerminal(a.err) || a.env("TERM") == "dumb" || a.flags.quiet || a.flags.json {
		return nil
	}
	p := &progress{out: a.err, width: widthOf(a.err), quit: make(chan struct{})}
	p.done.Go(p.run)
	return p
}

func (p *progress) run() {
	ticker := time.NewTicker(quietFor / 5)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := time.Since(p.since)
	if len(p.names) == 0 || waited < quietFor {
		return
	}
	names, room := strings.Join(p.names, ", "), p.width-len("waiting for … (9999s)")
	if runes := []rune(names); len(runes) > room {
		names = string(runes[:max(0, room)]) + "…"
	}
	fmt.Fprintf(p.out, "\r\x1b[Kwaiting for %s (%ds)", clean(names), int(waited.Seconds()))
	p.shown = true
}

func (p *progress) observe(r runner.Record) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.names = time.Now(), nil
	for _, ask := range r.After.OpenAsks() {
		switch {
		case ask.OfGuards():
			p.names = append(p.names, "what the guards asked")
		case ask.Role == machine.Proposer || ask.Role == machine.Arbiter:
			p.names = append(p.names, ask.SpecialistID)
		}
	}
}

// clear removes the line, so that others can be printed.
func (p *progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// stop ends it.
func (p *progress) stop() {
	if p == nil {
		return
	}
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	p.done.Wait()
	p.clear()
}
