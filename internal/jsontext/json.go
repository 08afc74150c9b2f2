package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// MaxDepth is the deepest nesting of arrays and objects that Compact accepts.
const MaxDepth = 64

const hexDigits = "0123456789abcdef"

// plain[c] is true if the byte c stands for itself inside a JSON string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf
	}
	return t
}()

// AppendString appends s as a JSON string in the form of RFC 8785: only what
// must be escaped is escaped. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendFloat appends f in the number form of RFC 8785, which is that of
// ECMAScript: the shortest decimal that reads back as f, with an exponent below
// 1e-6 and from 1e21 on. It panics if f is not finite: JSON has no such number.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic(fmt.Sprintf("exact: %v is no JSON number", f))
	}
	if f == 0 {
		return append(dst, '0') // -0 too
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes at least two exponent digits, ECMAScript does not.
	if n := len(dst); n-start >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// FormatFloat returns what AppendFloat appends.
func FormatFloat(f float64) string { return string(AppendFloat(nil, f)) }

// Compact returns one JSON value in canonical form: no blanks, members in the
// order they were written, numbers and strings as RFC 8785 writes them. It
// refuses duplicate members, numbers outside float64, halves of surrogate pairs,
// nesting deeper than [MaxDepth] and anything after the value.
func Compact(data []byte) ([]byte, error) {
	return rewriter{data: data, number: canonicalNumber}.rewrite()
}

// Tidy is Compact but for numbers, which keep the digits they were written
// with. It is for values that pass through and belong to somebody else.
func Tidy(data []byte) ([]byte, error) {
	return rewriter{data: data, number: numberAsWritten}.rewrite()
}

func canonicalNumber(dst []byte, n json.Number) ([]byte, error) {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, exact.ErrRange)
	}
	return AppendFloat(dst, f), nil
}

func numberAsWritten(dst []byte, n json.Number) ([]byte, error) { return append(dst, n...), nil }

// Canonical returns one JSON value in the form of RFC 8785 (JCS): no blanks, members
// sorted by the UTF-16 code units of their names, strings and numbers as ECMAScript
// writes them. Two texts that mean the same have the same form, on every machine.
// Numbers are those of float64, so that two that are no further apart than it can
// tell are the same; one beyond its range, for which the RFC has no form, keeps its
// digits. Half a surrogate pair, which the RFC refuses, is read as U+FFFD. It refuses
// what Compact refuses, but for these and numbers.
func Canonical(data []byte) ([]byte, error) {
	return rewriter{data: data, number: canonicalOrWritten, jcs: true}.rewrite()
}

func canonicalOrWritten(dst []byte, n json.Number) ([]byte, error) {
	if out, err := canonicalNumber(dst, n); err == nil {
		return out, nil
	}
	return numberAsWritten(dst, n)
}

type rewriter struct {
	data   []byte
	dec    *json.Decoder
	number func([]byte, json.Number) ([]byte, error)
	jcs    bool // members are sorted, and half a surrogate pair is U+FFFD
}

func (w rewriter) rewrite() ([]byte, error) {
	if !utf8.Valid(w.data) {
		return nil, fmt.Errorf("the text is not UTF-8")
	}
	w.dec = json.NewDecoder(bytes.NewReader(w.data))
	w.dec.UseNumber()
	out, err := w.value(make([]byte, 0, len(w.data)), 0)
	if err != nil {
		return nil, err
	}
	if _, err := w.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the value")
	}
	return out, nil
}

// token reads a token. It refuses half of a surrogate pair, which encoding/json would turn
// into U+FFFD without a word: nobody would know what was meant.
func (w *rewriter) token() (json.Token, error) {
	begin := w.dec.InputOffset()
	tok, err := w.dec.Token()
	if s, ok := tok.(string); !ok || err != nil || w.jcs || !strings.ContainsRune(s, utf8.RuneError) {
		return tok, err
	}
	if at := HalfPair(w.data[begin:w.dec.InputOffset()]); at >= 0 {
		at += int(begin)
		return nil, fmt.Errorf("%s, character %d of it, is half of a surrogate pair and stands for no character", w.data[at:at+6], utf8.RuneCount(w.data[:at])+1)
	}
	return tok, nil
}

// HalfPair returns where in a valid JSON text a surrogate is escaped without its other
// half, such as \ud800 alone; -1 if nowhere.
func HalfPair(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		unit, _ := unitAt(text[i:])
		if !utf16.IsSurrogate(rune(unit)) {
			i++ // the escaped character
			continue
		}
		if _, n := unescape(text[i:]); n != 12 {
			return i
		}
		i += 11
	}
	return -1
}

func (w *rewriter) value(dst []byte, depth int) ([]byte, error) {
	tok, err := w.token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		return w.composite(dst, t, depth+1)
	case string:
		return AppendString(dst, t), nil
	case json.Number:
		return w.number(dst, t)
	case bool:
		return strconv.AppendBool(dst, t), nil
	}
	return append(dst, "null"...), nil
}

func (w *rewriter) composite(dst []byte, open json.Delim, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	dst = append(dst, byte(open))
	begin, members, seen := len(dst), []member(nil), map[string]bool{}
	for first := true; w.dec.More(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		start, name := len(dst), ""
		if open == '{' {
			tok, err := w.token()
			if err != nil {
				return nil, err
			}
			if name = tok.(string); seen[name] {
				return nil, fmt.Errorf("duplicate member %q", name)
			}
			seen[name] = true
			dst = append(AppendString(dst, name), ':')
		}
		var err error
		if dst, err = w.value(dst, depth); err != nil {
			return nil, err
		}
		if w.jcs && open == '{' {
			members = append(members, member{utf16.Encode([]rune(name)), start, len(dst)})
		}
	}
	if _, err := w.dec.Token(); err != nil { // the closing bracket
		return nil, err
	}
	sortMembers(dst, begin, members)
	return append(dst, byte(open)+2), nil // '[' and ']', '{' and '}' are two apart
}

// A member is one of an object: the UTF-16 units of its name, and where it stands.
type member struct {
	name       []uint16
	start, end int
}

// sortMembers puts the members of an object, which stand in text from begin on, in order.
func sortMembers(text []byte, begin int, members []member) {
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.name, b.name) })
	var sorted []byte
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, text[m.start:m.end]...)
	}
	copy(text[begin:], sorted)
}
