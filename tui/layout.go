package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dialai/dialai/internal/text"
)

// One layout for all screens: a body of paragraphs is wrapped to the width, a window of its lines
// is shown, and a frame is drawn around it. A paragraph is asked for its lines again when the
// width changes, so that the one at the top of the window stays there.

// A para is a paragraph: its lines for a width in columns.
type para func(width int) []string

// clean returns text from outside without what a terminal would obey; lines stay lines.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		case text.Disguises(r):
			return '�'
		}
		return r
	}, s)
}

// flat returns text from outside fit for one line.
func flat(s string) string { return strings.ReplaceAll(clean(s), "\n", " ") }

// wrap breaks text into lines of at most width columns.
func wrap(s string, width int) []string {
	if width < 1 {
		width = 1
	}
	return strings.Split(ansi.Wrap(strings.TrimRight(s, "\n"), width, " "), "\n")
}

// prose is text from outside.
func prose(s string) para {
	return func(width int) []string { return wrap(clean(s), width) }
}

// strong is text from outside that stands out.
func strong(s string, look style) para {
	return func(width int) []string {
		lines := wrap(clean(s), width)
		for i := range lines {
			lines[i] = look.bold(lines[i])
		}
		return lines
	}
}

// spoken is what somebody says: who, and then the text, indented.
func spoken(who, s string, look style) para {
	return func(width int) []string {
		lines := []string{look.bold(who)}
		for _, line := range wrap(clean(s), width-2) {
			lines = append(lines, "  "+line)
		}
		return append(lines, "")
	}
}

// fixed is one line, cut where it is too long.
func fixed(s string) para {
	s = strings.ReplaceAll(s, "\n", " ")
	return func(width int) []string { return []string{ansi.Truncate(s, width, "…")} }
}

func blank(int) []string { return []string{""} }

// centred is a line in the middle.
func centred(s string) para {
	return func(width int) []string {
		return []string{strings.Repeat(" ", max(0, (width-ansi.StringWidth(s))/2)) + ansi.Truncate(s, width, "")}
	}
}

// pad cuts or fills a line to a width.
func pad(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}

// An anchor is the line at the top of a window: of which paragraph, and which of its lines.
type anchor struct{ para, line int }

// window returns height lines of a body, from the anchor on; the last ones without one, and where
// there are no more after it. below says whether there are lines after them. Only what is shown is
// wrapped.
func window(body []para, width, height int, at *anchor) (lines []string, below bool) {
	if at != nil && at.para < len(body) {
		for i, p := range body[max(0, at.para):] {
			of := p(width)
			if i == 0 {
				of = of[min(at.line, max(0, len(of)-1)):]
			}
			if lines = append(lines, of...); len(lines) > height {
				return lines[:height], true
			}
		}
	}
	if len(lines) < height { // the end, whole
		lines = nil
		for i := len(body) - 1; i >= 0 && len(lines) < height; i-- {
			lines = append(append([]string{}, body[i](width)...), lines...)
		}
		lines = lines[max(0, len(lines)-height):]
	}
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines, false
}

// scroll returns the anchor that is n lines further down; nil at the end, where what is newest is
// followed.
func scroll(body []para, width, height int, at *anchor, n int) *anchor {
	var starts []anchor
	top := -1
	for i, p := range body {
		for j := range p(width) {
			if at != nil && i == at.para && j <= at.line {
				top = len(starts)
			}
			starts = append(starts, anchor{i, j})
		}
	}
	last := max(0, len(starts)-height)
	if at == nil || top > last {
		top = last
	}
	if top = max(0, top+n); top >= last {
		return nil
	}
	return &starts[top]
}

// lines of a frame.
type border struct{ topLeft, topRight, bottomLeft, bottomRight, left, right, across, down string }

var (
	doubled = border{"╔", "╗", "╚", "╝", "╠", "╣", "═", "║"}
	plain   = border{"+", "+", "+", "+", "+", "+", "-", "|"}
)

// framed draws a frame around parts, with a line between two of them; note stands in the last of
// these lines.
func framed(b border, width int, note string, parts ...[]string) string {
	inner := width - 4
	var out strings.Builder
	rule := func(left, note, right string) {
		out.WriteString(left + strings.Repeat(b.across, max(0, width-2-ansi.StringWidth(note))) + note + right)
	}
	rule(b.topLeft, "", b.topRight)
	for i, part := range parts {
		if i > 0 {
			out.WriteString("\n")
			if i < len(parts)-1 {
				rule(b.left, "", b.right)
			} else {
				rule(b.left, note, b.right)
			}
		}
		for _, line := range part {
			out.WriteString("\n" + b.down + " " + pad(line, inner) + " " + b.down)
		}
	}
	out.WriteString("\n")
	rule(b.bottomLeft, "", b.bottomRight)
	return out.String()
}
