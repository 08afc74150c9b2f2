package graph

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How wide a text will be, without a font: a table of the widths of common sans-serif letters,
// with four percent on top, so that what is measured fits in any of them. Texts are cut and
// wrapped between clusters (a letter with its accents, an emoji with its joiners), and what
// could change the direction or the structure of the file is taken out first (clean).

// A font is one of the few sizes in which the SVG writes text.
type font struct {
	size int // in pixels
	bold bool
}

// narrow holds the widths of the characters from space to tilde in thousandths
// of the font size, as in the common sans-serif fonts.
var narrow = [...]int{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// wide lists the ranges of characters as wide as the font is high.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115F, 1}, {0x2190, 0x21FF, 1}, {0x2600, 0x27BF, 1}, {0x2E80, 0xA4CF, 1},
		{0xAC00, 0xD7A3, 1}, {0xF900, 0xFAFF, 1}, {0xFE30, 0xFE6F, 1}, {0xFF00, 0xFFE6, 1},
	},
	R32: []unicode.Range32{{0x12000, 0x123FF, 1}, {0x1F000, 0x1FAFF, 1}, {0x20000, 0x3FFFD, 1}},
}

// width estimates how many pixels s needs, rather too many than too few.
func (f font) width(s string) int { return f.pixels(units(s)) }

// units returns the width of s in thousandths of the font size.
func units(s string) int {
	sum := 0
	for _, r := range s {
		sum += runeWidth(r)
	}
	return sum
}

func (f font) pixels(units int) int {
	if f.bold {
		units += units / 16
	}
	return (units*f.size*104/100 + 999) / 1000
}

func runeWidth(r rune) int {
	switch {
	case r >= ' ' && r <= '~':
		return narrow[r-' ']
	case attached(r) || unicode.Is(unicode.Cf, r):
		return 0
	case unicode.Is(wide, r):
		return 1100
	case unicode.IsUpper(r):
		return 740
	}
	return 640
}

// attached reports whether r is drawn together with the character before it.
func attached(r rune) bool {
	return unicode.IsOneOf([]*unicode.RangeTable{unicode.Mn, unicode.Me, unicode.Mc}, r) ||
		r == zeroWidthJoiner || r >= 0x1F3FB && r <= 0x1F3FF
}

const zeroWidthJoiner = '\u200D'

// clusters splits s where it may be cut without changing what is left.
func clusters(s string) []string {
	var list []string
	start, glued, flags := 0, false, 0
	for i, r := range s {
		flag := r >= 0x1F1E6 && r <= 0x1F1FF
		if i > 0 && !attached(r) && !glued && !(flag && flags%2 == 1) {
			list = append(list, s[start:i])
			start, flags = i, 0
		}
		if flag {
			flags++
		}
		glued = r == zeroWidthJoiner
	}
	return append(list, s[start:])
}

// cut returns s if it fits into max pixels, else its beginning and an ellipsis.
func (f font) cut(s string, max int) string {
	if f.width(s) <= max {
		return s
	}
	end, used := 0, units("…")
	for _, c := range clusters(s) {
		if used += units(c); f.pixels(used) > max {
			break
		}
		end += len(c)
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// wrap breaks s into at most n lines of at most max pixels, where it can
// between words; the last line is cut.
func (f font) wrap(s string, max, n int) []string {
	var lines []string
	for s = strings.TrimSpace(s); len(lines) < n-1 && f.width(s) > max; {
		end := f.breakAt(s, max)
		lines = append(lines, strings.TrimSpace(s[:end]))
		s = strings.TrimSpace(s[end:])
	}
	return append(lines, f.cut(s, max))
}

// breakAt returns where the first line of s ends: after the last separator that
// fits if that leaves a third of the line filled, else after the last cluster.
func (f font) breakAt(s string, max int) int {
	end, word, used, filled := 0, 0, 0, 0
	for _, c := range clusters(s) {
		used += units(c)
		if c != " " && f.pixels(used) > max && end > 0 {
			break
		}
		end += len(c)
		if strings.ContainsAny(c, " -_/") {
			word, filled = end, used
		}
	}
	if f.pixels(filled) > max/3 {
		return word
	}
	return end
}

// lineWidth returns the width of the longest line.
func (f font) lineWidth(lines []string) int {
	longest := 0
	for _, l := range lines {
		longest = max(longest, f.width(l))
	}
	return longest
}

// clean replaces what must not appear in a drawing (control and directional
// characters, and what is no character at all) by the replacement character.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.IsControl(r),
			unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Noncharacter_Code_Point, r),
			r == '\u2028', r == '\u2029':
			return utf8.RuneError
		}
		return r
	}, s)
}

// flat is clean for texts of several lines: it makes one line of them.
func flat(s string) string { return clean(strings.Join(strings.Fields(s), " ")) }
