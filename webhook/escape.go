package webhook

import (
	"html"
	"strings"
	"unicode/utf8"
)

// Finds a word in a text some of whose characters are escaped, broken across lines, or
// in other case. unescape reads the character at a place: itself, or what a backslash
// escape, a percent escape or a reference of HTML stands for, escapes inside of each
// other to a depth of two. The word is matched character by character from every place
// where its first one, or an escape, could begin.
//
// The end of a line may be marked by a character that the word also has ("=", "\",
// "+"); then both readings are tried, within a number of steps that grows with the
// word, so no text takes long.

// maxEscapes is how many kinds of escapes inside of each other are undone.
const maxEscapes = 2

// maxBackslashes is how many backslashes an escape may begin with: each time that JSON
// is put into JSON there are twice as many.
const maxBackslashes = 8

// inDisguise adds where words stand in a text, some of their characters escaped, in
// several lines, or in other case.
func inDisguise(found []stretch, text string, words []core) []stretch {
	begin := [256]bool{'\\': true, '%': true, '&': true}
	for i := range words {
		c := words[i].text[0]
		begin[c] = true
		if words[i].fold && 'a' <= c && c <= 'z' {
			begin[c&^0x20] = true
		}
	}
	for at := 0; at < len(text); at++ {
		if !begin[text[at]] {
			continue
		}
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], `\`))
		at += max(run-maxBackslashes, 0)
		first := unescape(text, at, maxEscapes)
		for i := range words {
			if first.begins(words[i].text, words[i].fold) == 0 {
				continue
			}
			if end := words[i].matches(text, at); end > at {
				found = append(found, words[i].around(text, at, end))
			}
		}
		at += max(min(run, maxBackslashes)-1, 0)
	}
	return found
}

// matches returns where a word ends that begins at a place of a text, some of its
// characters escaped, or lines broken between them; -1 if it does not.
func (f *core) matches(text string, at int) (end int) {
	steps := 4*len(f.text) + 64
	return f.match(text, at, f.text, &steps)
}

// match is matches for what is left of the word. What marks the end of a line that goes
// on may also be a part of the word: both are tried, as long as there are steps.
func (f *core) match(text string, at int, word string, steps *int) (end int) {
	for len(word) > 0 {
		if *steps--; *steps < 0 {
			return -1
		}
		c := unescape(text, at, maxEscapes)
		width := c.begins(word, f.fold)
		mark := c.value == '=' || c.value == '\\' || c.value == '+'
		if len(word) < len(f.text) && (width == 0 || mark) {
			next := broken(text, at, maxEscapes)
			after := unescape(text, next, maxEscapes)
			switch n := after.begins(word, f.fold); {
			case width == 0:
				at, c, width = next, after, n
			case n > 0 && next > at:
				if end := f.match(text, next+after.size, word[n:], steps); end >= 0 {
					return end
				}
			}
		}
		if width == 0 {
			return -1
		}
		at, word = at+c.size, word[width:]
	}
	return at
}

// broken returns where a text goes on after a break of lines, or a place where one may
// be broken, that begins at a place of it, escapes undone to a depth; at if there is none there. A backslash or an
// equals sign at the end of a line says that it goes on.
func broken(text string, at, depth int) int {
	breaks, marked := false, false
	next := at
	for {
		switch c := wholeAt(text, next, depth); {
		case c.size == 0:
		case c.value == '\n' || c.value == '\r' || softBreak(c.value):
			breaks = true
			next += c.size
			continue
		case c.value == ' ' || c.value == '\t' || c.value == '+' && !breaks: // a blank in a query
			next += c.size
			continue
		case (c.value == '\\' || c.value == '=') && !breaks && !marked:
			marked = true
			next += c.size
			continue
		}
		if breaks {
			return next
		}
		return at
	}
}

// softBreak reports whether r is where a line may be broken, or shows nothing.
func softBreak(r rune) bool {
	return r == 0xAD || r >= 0x200B && r <= 0x200D || r == 0x2028 || r == 0x2029 || r == 0x2060 || r == 0xFEFF
}

// A character is one of a text, without its escapes.
type character struct {
	value rune
	octet bool // the value is a byte, maybe a part of a character
	size  int  // in the text, in bytes; 0 at its end
}

// wholeAt returns the character at a place of a text, in UTF-8 where it takes several
// bytes, each of which may be escaped.
func wholeAt(text string, at, depth int) character {
	c := unescape(text, at, depth)
	if !c.octet || c.value < utf8.RuneSelf {
		return c
	}
	var room [utf8.UTFMax]byte
	read := append(room[:0], byte(c.value))
	size := c.size
	for !utf8.FullRune(read) {
		next := unescape(text, at+size, depth)
		if !next.octet {
			return c
		}
		read, size = append(read, byte(next.value)), size+next.size
	}
	if r, n := utf8.DecodeRune(read); n == len(read) {
		return character{r, false, size}
	}
	return c
}

// begins returns how many bytes of a word the character is; 0 if it begins otherwise.
// With fold the word is in lower case, and ASCII letters may be in either.
func (c character) begins(word string, fold bool) int {
	if fold && 'A' <= c.value && c.value <= 'Z' {
		c.value |= 0x20
	}
	if c.octet {
		if c.size > 0 && rune(word[0]) == c.value {
			return 1
		}
		return 0
	}
	if r, n := utf8.DecodeRuneInString(word); c.size > 0 && r == c.value {
		return n
	}
	return 0
}

// unescape returns the character at a place of a text. Escapes inside of each other are
// undone to a depth.
func unescape(text string, at, depth int) character {
	switch {
	case at >= len(text):
		return character{}
	case depth == 0:
		return character{rune(text[at]), true, 1}
	}
	c := unescape(text, at, depth-1)
	switch {
	case !c.octet:
	case c.value == '%':
		if v, size := hexadecimal(text, at+c.size, 2, depth-1); size > 0 {
			return character{v, true, c.size + size}
		}
	case c.value == '&':
		return entity(text, at, c, depth-1)
	case c.value == '\\':
		return backslash(text, at, c, depth-1)
	}
	return c
}

// maxEntity is how long the name or the number of an entity is at most, with what begins
// and ends it: zeros may stand before a number.
const maxEntity = 16

// entity returns what a reference of HTML stands for that begins with c, an ampersand; c
// if there is none. Lines may be broken within it.
func entity(text string, at int, c character, depth int) character {
	var name [maxEntity]byte
	var sizes [maxEntity + 1]int // of so many bytes of the name, in the text
	name[0], sizes[1] = '&', c.size
	n := 1
	for ; n < maxEntity && name[n-1] != ';'; n++ {
		from := at + sizes[n]
		next := unescape(text, from, depth)
		if next.value <= ' ' || next.value == '=' || next.value == '\\' || next.value >= utf8.RuneSelf {
			from = broken(text, from, depth)
			next = unescape(text, from, depth)
		}
		if next.size == 0 || next.value >= utf8.RuneSelf || next.value == '&' {
			break
		}
		name[n], sizes[n+1] = byte(next.value), from-at+next.size
	}
	if n == 1 {
		return c
	}
	read := html.UnescapeString(string(name[:n]))
	v, width := utf8.DecodeRuneInString(read)
	used := n - len(read) + width // what follows the reference is left as it is
	if v == utf8.RuneError || !strings.HasSuffix(string(name[:n]), read[width:]) || used < 3 {
		return c
	}
	return character{v, v < utf8.RuneSelf, sizes[used]}
}

// backslash returns what an escape stands for that begins with c, a backslash, or with
// several of them; c if there is none.
func backslash(text string, at int, c character, depth int) character {
	size := c.size
	kind := unescape(text, at+size, depth)
	for n := 1; n < maxBackslashes && kind.size > 0 && kind.value == '\\'; n++ {
		size += kind.size
		kind = unescape(text, at+size, depth)
	}
	size += kind.size
	switch kind.value {
	case '/', '"', '\'':
		return character{kind.value, true, size}
	case 'n':
		return character{'\n', true, size}
	case 'r':
		return character{'\r', true, size}
	case 't':
		return character{'\t', true, size}
	case 'x', 'u', 'U':
		digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[kind.value]
		if v, more := hexadecimal(text, at+size, digits, depth); more > 0 {
			return character{v, digits == 2 || v < utf8.RuneSelf, size + more}
		}
	}
	return c
}

// hexadecimal returns the value of n hexadecimal digits at a place of a text, and how long
// they are there; a size of 0 says that there are none.
func hexadecimal(text string, at, n, depth int) (v rune, size int) {
	for range n {
		c := unescape(text, at+size, depth)
		digit := strings.IndexRune("0123456789abcdefABCDEF", c.value)
		if c.size == 0 || digit < 0 {
			return 0, 0
		}
		if digit > 15 {
			digit -= 6
		}
		v, size = v<<4|rune(digit), size+c.size
	}
	return v, size
}
