package jsontext

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns what the JSON string says that begins with the quote at a place of data,
// and where it ends; next is 0 if there is none. The text is a part of data, or else buf,
// which grows as it needs to and is returned for the next one. Invalid UTF-8 and halves of
// surrogate pairs become U+FFFD, as they do in encoding/json.
func Unquote(data []byte, at int, buf []byte) (text, _ []byte, next int) {
	start := at + 1
	end := SkipPlain(data, start)
	if end < len(data) && data[end] == '"' {
		return data[start:end], buf, end + 1
	}
	buf, end = appendUnquoted(append(buf[:0], data[start:end]...), data, end)
	if end == len(data) || data[end] != '"' {
		return nil, buf, 0
	}
	return buf, buf, end + 1
}

// SkipString returns where the JSON string ends that begins with the quote at a place of
// data, for those who need not know what it says; 0 if there is none.
func SkipString(data []byte, at int) (next int) {
	for at = SkipPlain(data, at+1); at < len(data); {
		n := 0
		switch c := data[at]; {
		case c == '"':
			return at + 1
		case c == '\\':
			_, n = unescape(data[at:])
		case c >= utf8.RuneSelf:
			n = 1
		}
		if n == 0 {
			break
		}
		at = SkipPlain(data, at+n)
	}
	return 0
}

// appendUnquoted appends what a string says from a place of it on, up to the byte that
// ends the string or makes it none, or to the end of b.
func appendUnquoted(dst, b []byte, at int) (_ []byte, end int) {
	for at < len(b) {
		var r rune
		n := 0
		switch c := b[at]; {
		case c == '\\':
			r, n = unescape(b[at:])
		case c >= utf8.RuneSelf:
			r, n = utf8.DecodeRune(b[at:])
		}
		if n == 0 {
			return dst, at
		}
		next := SkipPlain(b, at+n)
		dst, at = append(utf8.AppendRune(dst, r), b[at+n:next]...), next
	}
	return dst, at
}

// shortEscapes has the character that each letter stands for behind a backslash.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns what the escape stands for that b begins with, and its length; 0 if it is
// none.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	if c := shortEscapes[b[1]]; c != 0 {
		return rune(c), 2
	}
	unit, ok := unitAt(b)
	if !ok {
		return 0, 0
	}
	if low, ok := unitAt(b[6:]); ok && utf16.IsSurrogate(rune(unit)) {
		if r := utf16.DecodeRune(rune(unit), rune(low)); r != utf8.RuneError {
			return r, 12
		}
	}
	return rune(unit), 6 // half a pair is written as the replacement
}

// unitAt returns the UTF-16 unit of an escape such as \u00e9 that b begins with; ok is false
// if there is none.
func unitAt(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}

// Units returns the UTF-16 units of a valid JSON string, of which quoted is what is written
// between its quotes. Halves of surrogate pairs are kept.
func Units(quoted []byte) (units []uint16) {
	for len(quoted) > 0 {
		if unit, ok := unitAt(quoted); ok {
			units, quoted = append(units, unit), quoted[6:]
			continue
		}
		r, n := utf8.DecodeRune(quoted)
		if r == '\\' {
			r, n = unescape(quoted)
		}
		units, quoted = utf16.AppendRune(units, r), quoted[n:]
	}
	return units
}
