package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// An entry is the line in which is typed. It may hold line breaks.
type entry struct {
	text []rune
	at   int // the cursor
}

// maxTyped is how many characters may be typed: more than anything that is said may have.
const maxTyped = 128 << 10

func (e *entry) insert(s string) {
	r := []rune(s)
	r = r[:min(len(r), max(0, maxTyped-len(e.text)))]
	e.text = append(e.text[:e.at:e.at], append(r, e.text[e.at:]...)...)
	e.at += len(r)
}

func (e *entry) backspace() {
	if e.at > 0 {
		e.text = append(e.text[:e.at-1:e.at-1], e.text[e.at:]...)
		e.at--
	}
}

func (e *entry) delete() {
	if e.at < len(e.text) {
		e.text = append(e.text[:e.at:e.at], e.text[e.at+1:]...)
	}
}

func (e *entry) move(n int) { e.at = min(len(e.text), max(0, e.at+n)) }

// take returns what was typed, and empties the entry.
func (e *entry) take() string {
	s := string(e.text)
	*e = entry{}
	return s
}

// shown returns what fits of what is typed into a width, a line break as ⏎, and the column of the
// cursor in it. It looks at what is near the cursor only: much may have been pasted.
func (e *entry) shown(width int) (line string, column int) {
	before := oneLine(e.text[max(0, e.at-4*max(1, width)):e.at])
	after := oneLine(e.text[e.at:min(len(e.text), e.at+4*max(1, width))])
	if room := max(1, width-2); ansi.StringWidth(before) > room {
		before = ansi.TruncateLeft(before, ansi.StringWidth(before)-room, "")
	}
	return ansi.Truncate(before+after, width, ""), ansi.StringWidth(before)
}

func oneLine(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' {
			r = '⏎'
		}
		b.WriteRune(r)
	}
	return clean(b.String())
}
