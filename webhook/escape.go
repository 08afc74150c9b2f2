package webhook

import (
	"strings"
	"unicode/utf8"
)

// maxEscapes is how many kinds of escapes inside of each other are undone.
const maxEscapes = 2

// maxBackslashes is how many backslashes an escape may begin with: each time that JSON
// is put into JSON there are twice as many.
const maxBackslashes = 8

// escapes reports whether there may be an escape in a text under which a secret would
// not be seen.
func escapes(text string) bool {
	for _, begin := range [...]string{`\u`, `\/`, `\x`, `\U`, `%`} {
		if strings.Contains(text, begin) {
			return true
		}
	}
	return false
}

// underEscapes adds where words stand in a text, some of their characters escaped.
func underEscapes(found []stretch, text string, words []core) []stretch {
	begin := [256]bool{'\\': true, '%': true}
	for i := range words {
		begin[words[i].text[0]] = true
	}
	for at := 0; at < len(text); at++ {
		if !begin[text[at]] {
			continue
		}
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], `\`))
		at += max(run-maxBackslashes, 0)
		first := unescape(text, at, maxEscapes)
		for i := range words {
			if first.begins(words[i].text) == 0 {
				continue
			}
			if end := matches(text, at, words[i].text); end > at {
				found = append(found, words[i].around(text, at, end))
			}
		}
		at += max(min(run, maxBackslashes)-1, 0)
	}
	return found
}

// matches returns where a word ends that begins at a place of a text, some of its
// characters escaped; -1 if it does not.
func matches(text string, at int, word string) (end int) {
	for len(word) > 0 {
		c := unescape(text, at, maxEscapes)
		width := c.begins(word)
		if width == 0 {
			return -1
		}
		at, word = at+c.size, word[width:]
	}
	return at
}

// A character is one of a text, without its escapes.
type character struct {
	value rune
	octet bool // the value is a byte, maybe a part of a character
	size  int  // in the text, in bytes; 0 at its end
}

// begins returns how many bytes of a word the character is; 0 if it begins otherwise.
func (c character) begins(word string) int {
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
	case c.value == '\\':
		return backslash(text, at, c, depth-1)
	}
	return c
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
