package tui

import "github.com/charmbracelet/x/ansi"

// An entry is the line in which is typed. It may hold line breaks.
type entry struct {
	text []rune
	at   int // the cursor
}

func (e *entry) insert(s string) {
	r := []rune(s)
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
// cursor in it.
func (e *entry) shown(width int) (line string, column int) {
	var before, after string
	for i, r := range e.text {
		s := clean(string(r))
		if r == '\n' {
			s = "⏎"
		}
		if i < e.at {
			before += s
		} else {
			after += s
		}
	}
	for ansi.StringWidth(before) > max(1, width-2) {
		before = string([]rune(before)[1:])
	}
	return ansi.Truncate(before+after, width, ""), ansi.StringWidth(before)
}
