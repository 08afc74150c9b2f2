package render

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// IsTerminal reports whether w is one.
func IsTerminal(w any) bool {
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

// TableWidth returns how many columns a terminal has; 0 if w is none.
func TableWidth(w any) int {
	if !IsTerminal(w) {
		return 0
	}
	return widthOf(w)
}

// A Paint colours text, or leaves it as it is.
type Paint bool

// PaintFor returns colours for a terminal, unless NO_COLOR is set
// (https://no-color.org) or the terminal cannot show them.
func PaintFor(w io.Writer, env func(name string) string) Paint {
	return Paint(IsTerminal(w) && env("NO_COLOR") == "" && env("TERM") != "dumb")
}

func (p Paint) code(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold returns text in bold.
func (p Paint) Bold(s string) string { return p.code("1", s) }

// Red returns text in red.
func (p Paint) Red(s string) string { return p.code("31", s) }

// Green returns text in green.
func (p Paint) Green(s string) string { return p.code("32", s) }

// Yellow returns text in yellow.
func (p Paint) Yellow(s string) string { return p.code("33", s) }

// Dim returns text dimmed.
func (p Paint) Dim(s string) string { return p.code("2", s) }

// Progress shows, on a terminal's stderr, whom a long step is waiting for, or when the
// timer comes that a run waits for. A nil progress shows nothing.
type Progress struct {
	*statusLine

	mu    sync.Mutex
	since time.Time
	names []string // specialists that have not answered
	timer string   // what the session's timer executes; "" if it has none
	due   time.Time
}

// quietFor is how long a step may take before it is talked about.
const quietFor = time.Second

// NewProgress begins to show on a screen, which may be nil, whom a session waits for.
func NewProgress(screen io.Writer) *Progress {
	p := &Progress{}
	p.statusLine = newStatusLine(screen, p.waiting)
	p.start()
	return p
}

// waiting returns the line.
func (p *Progress) waiting(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := now.Sub(p.since)
	switch {
	case waited < quietFor || len(p.names) == 0 && p.timer == "":
		return ""
	case len(p.names) == 0:
		return fmt.Sprintf("%s in %s", p.timer, max(0, p.due.Sub(now)).Round(time.Second))
	}
	names, room := strings.Join(p.names, ", "), p.width-len("waiting for … (9999s)")
	if runes := []rune(names); len(runes) > room {
		names = string(runes[:max(0, room)]) + "…"
	}
	return fmt.Sprintf("waiting for %s (%ds)", names, int(waited.Seconds()))
}

// Observe takes in a record: whom the session waits for after it.
func (p *Progress) Observe(r session.Change) {
	p.Follow(r.After)
}

// Follow takes in where a session stands.
func (p *Progress) Follow(s *session.Session) {
	if p.statusLine == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.names, p.timer = time.Now(), nil, ""
	if t := s.Timer(); t != nil {
		p.timer, p.due = t.Name, s.DueAt().Time()
	}
	for _, ask := range s.OpenAsksFor("") { // who looks at a screen nobody knows
		switch {
		case ask.OfGuards():
			p.names = append(p.names, "what the guards asked")
		case ask.Role == machine.Proposer || ask.Role == machine.Arbiter:
			p.names = append(p.names, cmp.Or(ask.SpecialistID, "somebody"))
		}
	}
}
