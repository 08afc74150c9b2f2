package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
)

// Unseen reports whether r shows nothing wherever it stands: all that [machine.Hidden]
// finds in names but blanks and line feeds. The separators of lines and paragraphs and
// what stands for an object that is not there are such, too.
func Unseen(r rune) bool {
	if uint32(r)-' ' < asciiSeen {
		return false
	}
	switch r {
	case '\u2028', '\u2029', '\uFFFC':
		return true
	}
	return machine.IsHidden(r) && !unicode.IsSpace(r)
}

// asciiSeen is how many characters of ASCII are seen, the blank included: they are the
// first from it on.
const asciiSeen = 0x7F - ' '

// FirstUnseen returns where the first character of s that shows nothing begins, -1 if
// there is none.
func FirstUnseen(s []byte) int {
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			x := binary.LittleEndian.Uint64(s[i:])
			if ((x+ones)|(x-' '*ones))&high == 0 { // eight bytes from ' ' to '~'
				i += 8
				continue
			}
		}
		if s[i]-' ' < asciiSeen {
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if Unseen(r) {
			return i
		}
		i += size
	}
	return -1
}

// AppendSeen appends s without what shows nothing. dst may be s[:0].
func AppendSeen(dst, s []byte) []byte {
	for {
		at := FirstUnseen(s)
		if at < 0 {
			return append(dst, s...)
		}
		_, size := utf8.DecodeRune(s[at:])
		dst, s = append(dst, s[:at]...), s[at+size:]
	}
}

// SameSeen reports whether a and b are the same but for what shows nothing.
func SameSeen(a, b []byte) bool {
	for {
		if len(a) > 0 && len(b) > 0 && a[0]-' ' < asciiSeen && b[0]-' ' < asciiSeen {
			if a[0] != b[0] {
				return false // as most names of tools are told apart
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := skipUnseen(a), skipUnseen(b)
		if len(x) == 0 || len(y) == 0 {
			return len(x) == len(y)
		}
		if x[0] != y[0] {
			return false
		}
		_, n := utf8.DecodeRune(x)
		_, m := utf8.DecodeRune(y)
		if string(x[:n]) != string(y[:m]) {
			return false
		}
		a, b = x[n:], y[m:]
	}
}

func skipUnseen(s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if !Unseen(r) {
			break
		}
		s = s[n:]
	}
	return s
}

// Disguises reports whether r must not reach a terminal as it is: a control character, or
// what prose in a machine file may not hold (see [machine.HiddenInProse]).
func Disguises(r rune) bool {
	if uint32(r)-' ' < asciiSeen {
		return false
	}
	_, at := machine.HiddenInProse(string(r))
	return at > 0 || unicode.IsControl(r)
}

// WriteJSON writes v as one line of JSON, as --json prints it and a server answers: without
// the escapes that HTML wants, and [Escaped].
func WriteJSON(w io.Writer, v any) error {
	line, err := jsontext.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(Escaped(line), '\n'))
	return err
}

// Escaped returns JSON with escapes for what disguises: JSON asks for those of C0 only, and
// a terminal obeys others too. What it says is the same.
func Escaped(json []byte) []byte {
	if !bytes.ContainsFunc(json, escapes) {
		return json
	}
	var b []byte
	for _, r := range string(json) {
		switch {
		case !escapes(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// escapes reports whether r stands inside a string of JSON and disguises; outside of strings
// there are only blanks of its kind.
func escapes(r rune) bool { return r >= 0x7F && Disguises(r) }
