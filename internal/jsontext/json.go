package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// JSON that comes out the same on every machine. encoding/json says whether a text is
// valid; then a walk over it writes it anew, and copies what stays as it is.
// Three forms differ in two things: Compact writes numbers as RFC 8785 does and keeps
// the order of members; Tidy keeps the digits of numbers too, for values that belong to
// somebody else; Canonical sorts members by the UTF-16 units of their names (RFC 8785,
// JCS), for digests.
//
// What could be understood in two ways is refused instead of repaired: a member twice,
// half a surrogate pair (which encoding/json would replace silently), depth without
// end, anything after the value. Canonical is for digests of what is stored already, so
// it reads half a pair as U+FFFD.

// TimeLayout is how a moment is written, in UTC: RFC 3339 with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

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
		panic(fmt.Sprintf("jsontext: %v is no JSON number", f))
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
	return rewrite(data, false, canonicalNumber)
}

// Tidy is Compact but for numbers, which keep the digits they were written
// with. It is for values that pass through and belong to somebody else.
func Tidy(data []byte) ([]byte, error) {
	return rewrite(data, false, numberAsWritten)
}

func canonicalNumber(dst, n []byte) ([]byte, error) {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, exact.ErrRange)
	}
	return AppendFloat(dst, f), nil
}

func numberAsWritten(dst, n []byte) ([]byte, error) { return append(dst, n...), nil }

// Canonical returns one JSON value in the form of RFC 8785 (JCS): no blanks, members
// sorted by the UTF-16 code units of their names, strings and numbers as ECMAScript
// writes them. Two texts that mean the same have the same form, on every machine.
// Numbers are those of float64, so that two that are no further apart than it can
// tell are the same; one beyond its range, for which the RFC has no form, keeps its
// digits. Half a surrogate pair, which the RFC refuses, is read as U+FFFD. It refuses
// what Compact refuses, but for these and numbers.
func Canonical(data []byte) ([]byte, error) {
	return rewrite(data, true, canonicalOrWritten)
}

func canonicalOrWritten(dst, n []byte) ([]byte, error) {
	if out, err := canonicalNumber(dst, n); err == nil {
		return out, nil
	}
	return numberAsWritten(dst, n)
}

// A rewriter walks through a text that encoding/json has found valid.
type rewriter struct {
	Cursor
	number func(dst, n []byte) ([]byte, error)
	jcs    bool // members are sorted, and half a surrogate pair is U+FFFD
}

func rewrite(data []byte, jcs bool, number func(dst, n []byte) ([]byte, error)) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the text is not UTF-8")
	}
	if !json.Valid(data) {
		return nil, invalid(data)
	}
	w := rewriter{Cursor{B: data}, number, jcs}
	return w.value(make([]byte, 0, len(data)), 0)
}

// invalid says why a text is not one JSON value.
func invalid(data []byte) error {
	var value json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&value); err != nil {
		return err
	}
	return fmt.Errorf("unexpected data after the value")
}

// text appends the string that comes next, and returns what it says. It refuses half of a
// surrogate pair, which would become U+FFFD without a word: nobody would know what was meant.
func (w *rewriter) text(dst []byte) (_, text []byte, err error) {
	w.Peek()
	begin := w.i
	raw := w.Raw()
	if !bytes.Contains(raw, []byte{'\\'}) {
		return append(dst, raw...), raw[1 : len(raw)-1], nil
	}
	if at := HalfPair(raw); at >= 0 && !w.jcs {
		at += begin
		return nil, nil, fmt.Errorf("%s, character %d of it, is half of a surrogate pair and stands for no character", w.B[at:at+6], utf8.RuneCount(w.B[:at])+1)
	}
	text, _, _ = Unquote(w.B, begin, nil)
	return AppendString(dst, string(text)), text, nil
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
	switch next := w.Peek(); next {
	case '{', '[':
		if depth++; depth > MaxDepth {
			return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
		}
		w.i++
		if next == '[' {
			return w.array(append(dst, '['), depth)
		}
		return w.object(append(dst, '{'), depth)
	case '"':
		dst, _, err := w.text(dst)
		return dst, err
	case 't', 'f', 'n':
		return append(dst, w.Raw()...), nil
	}
	return w.number(dst, w.Raw())
}

func (w *rewriter) array(dst []byte, depth int) (_ []byte, err error) {
	for first := true; w.more(']', first); first = false {
		if !first {
			dst = append(dst, ',')
		}
		if dst, err = w.value(dst, depth); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (w *rewriter) object(dst []byte, depth int) (_ []byte, err error) {
	var room [8]member
	begin, members := len(dst), room[:0]
	var seen map[string]bool // nil while there are few
	for first := true; w.more('}', first); first = false {
		if !first {
			dst = append(dst, ',')
		}
		m := member{start: len(dst)}
		var name []byte
		if dst, name, err = w.text(dst); err != nil {
			return nil, err
		}
		m.name = string(name)
		if seen == nil && len(members) == fewMembers {
			seen = map[string]bool{}
			for _, m := range members {
				seen[m.name] = true
			}
		}
		if seen[m.name] || seen == nil && slices.ContainsFunc(members, func(other member) bool { return other.name == m.name }) {
			return nil, fmt.Errorf("duplicate member %q", m.name)
		}
		if seen != nil {
			seen[m.name] = true
		}
		w.Peek()
		w.i++ // the colon
		if dst, err = w.value(append(dst, ':'), depth); err != nil {
			return nil, err
		}
		m.end = len(dst)
		members = append(members, m)
	}
	if w.jcs {
		sortMembers(dst, begin, members)
	}
	return append(dst, '}'), nil
}

// A member is one of an object: its name, and where it stands.
type member struct {
	name       string
	start, end int
}

// compareUnits orders names by their UTF-16 units.
func compareUnits(a, b member) int {
	if SkipPlain([]byte(a.name), 0) == len(a.name) && SkipPlain([]byte(b.name), 0) == len(b.name) {
		return strings.Compare(a.name, b.name)
	}
	return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
}

// sortMembers puts the members of an object, which stand in text from begin on, in order.
func sortMembers(text []byte, begin int, members []member) {
	if slices.IsSortedFunc(members, compareUnits) {
		return
	}
	slices.SortFunc(members, compareUnits)
	sorted := make([]byte, 0, len(text)-begin)
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, text[m.start:m.end]...)
	}
	copy(text[begin:], sorted)
}
