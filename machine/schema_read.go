package machine

import (
	"slices"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// A quickReader reads one JSON value. Its methods report whether it is one, and
// satisfies what is asked of it, for certain.
type quickReader struct {
	data []byte
	at   int
}

// quickDepth is how deep a value may nest before it is left to the library.
const quickDepth = 100

func (r *quickReader) skip() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// next skips blanks and returns the next byte, 0 at the end.
func (r *quickReader) next() byte {
	r.skip()
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *quickReader) value(q *quick, depth int) bool {
	if depth > quickDepth || q != nil && q.never {
		return false
	}
	switch c := r.next(); c {
	case '{':
		return q.may(typeObject) && r.object(q, depth)
	case '[':
		return q.may(typeArray) && r.array(q, depth)
	case '"':
		text, ok := r.text()
		return ok && (q == nil || q.types.has(typeString)) && q.allows(text)
	case 't':
		return r.word("true") && q.is(typeBoolean, true)
	case 'f':
		return r.word("false") && q.is(typeBoolean, false)
	case 'n':
		return r.word("null") && q.is(typeNull, nil)
	default:
		return r.number(q)
	}
}

// may reports whether objects, or arrays, are allowed.
func (q *quick) may(t typeSet) bool { return q == nil || q.types.has(t) && q.enum == nil }

// is reports whether a value of that type is allowed.
func (q *quick) is(t typeSet, v any) bool {
	return q == nil || q.types.has(t) && (q.enum == nil || slices.Contains(q.enum, v))
}

func (r *quickReader) word(w string) bool {
	if len(r.data)-r.at < len(w) || string(r.data[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

// A quickText is a string as it is written: what is between its quotes, by how many
// bytes its escapes are longer than a character each, and whether some of it is beyond
// ASCII.
type quickText struct {
	raw     []byte
	escapes int
	wide    bool
}

// length returns how many characters the string has.
func (t quickText) length() int {
	if t.wide {
		return utf8.RuneCount(t.raw) - t.escapes
	}
	return len(t.raw) - t.escapes
}

// text reads a string. Halves of surrogate pairs are left to the library.
func (r *quickReader) text() (t quickText, ok bool) {
	start := r.at + 1
	for i := exact.SkipPlain(r.data, start); i < len(r.data); i = exact.SkipPlain(r.data, i) {
		switch c := r.data[i]; {
		case c == '"':
			r.at, t.raw = i+1, r.data[start:i]
			return t, true
		case c == '\\':
			n := escapeLength(r.data[i:])
			if n == 0 {
				return t, false
			}
			i, t.escapes = i+n, t.escapes+n-1
		case c < ' ':
			return t, false
		default:
			i, t.wide = i+1, true
		}
	}
	return t, false
}

// escapeLength returns the length of the escape of one character that b begins with, 0
// if it is none.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	if len(b) < 6 {
		return 0
	}
	for _, c := range b[2:6] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0
		}
	}
	if b[2]|0x20 == 'd' && (b[3] == '8' || b[3] == '9' || b[3]|0x20 >= 'a' && b[3]|0x20 <= 'f') {
		return 0
	}
	return 6
}

// number reads a number of at most 15 digits without an exponent: then its value is
// exactly known. Others are left to the library.
func (r *quickReader) number(q *quick) bool {
	negative := r.at < len(r.data) && r.data[r.at] == '-'
	if negative {
		r.at++
	}
	start := r.at
	whole := r.digits()
	if whole == 0 || whole > 1 && r.data[start] == '0' {
		return false
	}
	fraction := 0
	if r.at < len(r.data) && r.data[r.at] == '.' {
		r.at++
		if fraction = r.digits(); fraction == 0 {
			return false
		}
	}
	if whole+fraction > 15 || r.at < len(r.data) && r.data[r.at]|0x20 == 'e' {
		return false
	}
	if q == nil || q.enum == nil && !q.limited() {
		return q == nil || q.types.has(typeNumber) || fraction == 0 && q.types.has(typeInteger)
	}
	f := decimal(r.data[start:r.at], fraction)
	if negative {
		f = -f
	}
	return q.takes(f, fraction == 0)
}

// limited reports whether the value of a number matters.
func (q *quick) limited() bool {
	return q.min != nil || q.max != nil || q.over != nil || q.under != nil
}

// takes reports whether a number is allowed; whole says that it is written without a
// fraction.
func (q *quick) takes(f float64, whole bool) bool {
	if !q.types.has(typeNumber) && (!whole || !q.types.has(typeInteger)) {
		return false
	}
	if q.enum != nil && !slices.ContainsFunc(q.enum, func(v any) bool { n, ok := v.(float64); return ok && n == f }) {
		return false
	}
	return q.bounded(f)
}

// digits passes over digits and returns how many there are.
func (r *quickReader) digits() int {
	start := r.at
	for r.at < len(r.data) && r.data[r.at]-'0' <= 9 {
		r.at++
	}
	return r.at - start
}

// decimal returns the value of at most 15 digits, of which so many are behind a point.
// Both numbers that it divides are exact, so the quotient is rounded once, as reading
// the text would be.
func decimal(text []byte, fraction int) float64 {
	var n, scale int64 = 0, 1
	for _, c := range text {
		if c != '.' {
			n = 10*n + int64(c-'0')
		}
	}
	for range fraction {
		scale *= 10
	}
	return float64(n) / float64(scale)
}

func (r *quickReader) array(q *quick, depth int) bool {
	var items *quick
	if q != nil {
		items = q.items
	}
	r.at++
	n := 0
	for ; ; n++ {
		if r.next() == ']' && n == 0 {
			break
		}
		if !r.value(items, depth+1) {
			return false
		}
		if c := r.next(); c == ']' {
			n++
			break
		} else if c != ',' {
			return false
		}
		r.at++
	}
	r.at++
	return q == nil || within(n, q.minItems, q.maxItems)
}

func (r *quickReader) object(q *quick, depth int) bool {
	r.at++
	m := members{of: q}
	n := 0
	for ; ; n++ {
		c := r.next()
		if c == '}' && n == 0 {
			break
		}
		if c != '"' {
			return false
		}
		name, ok := r.text()
		if !ok || r.next() != ':' {
			return false
		}
		r.at++
		below, known := m.next(name)
		if !known || !r.value(below, depth+1) {
			return false
		}
		if c = r.next(); c == '}' {
			n++
			break
		} else if c != ',' {
			return false
		}
		r.at++
	}
	r.at++
	return q == nil || m.seen&q.required == q.required && q.counts(n, m.seen)
}

// members are those of one object that were read so far.
type members struct {
	of       *quick
	seen     uint64 // a bit for each that the schema names
	expected int    // which of those comes next if they come by name
}

// next returns what the value of the member of that name must satisfy. known is false
// for one that is there twice, and for names that are not told apart by their bytes.
func (m *members) next(name quickText) (below *quick, known bool) {
	if m.of == nil {
		return nil, true
	}
	i := m.of.place(name.raw, m.expected)
	switch {
	case name.escapes > 0:
		return nil, false
	case i == len(m.of.members):
		return m.of.extra, !name.wide // what is no UTF-8 is read as something else
	case m.seen&(1<<i) != 0:
		return nil, false
	}
	m.seen |= 1 << i
	m.expected = i + 1
	return m.of.members[i].value, true
}

// place returns where a member stands among those that the schema names, looking from
// where it is expected on; as many as there are if it is none of them.
func (q *quick) place(name []byte, expected int) int {
	for i := expected; i < len(q.members); i++ {
		if q.members[i].name == string(name) {
			return i
		}
	}
	for i := range min(expected, len(q.members)) {
		if q.members[i].name == string(name) {
			return i
		}
	}
	return len(q.members)
}

// counts reports whether there are as many members as there may be. Of those that the
// schema does not name two could be the same, so then their number is not known.
func (q *quick) counts(n int, seen uint64) bool {
	if q.minExtra == nil && q.maxExtra == nil {
		return true
	}
	named := 0
	for ; seen != 0; seen &= seen - 1 {
		named++
	}
	return n <= named+1 && within(n, q.minExtra, q.maxExtra)
}
