package text

import (
	"errors"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
)

// A hash of what a JSON value means, in one pass and without building the value. The
// hashes of an object's members are summed, so their order does not count; those of a
// list are chained, so it does. A string is hashed without its escapes, a number as
// digits and exponent, and each kind of value has a seed of its own.
//
// The same pass checks: syntax, depth, and members given twice, by their hashes. With
// normal it also leaves out what makes two equal calls look different: members with the
// names of nonces, characters that nobody sees, and, with fading, words that look made
// up for the occasion, also in a string that holds an object or a list as JSON. If at
// the top nothing else is left, the members that name the call count after all.
//
// Hashes may collide, so whoever needs certainty compares again (SameJSON), which reads
// values as this file does.

// A JSONHasher checks one JSON value and hashes what it means, in one pass over
// its bytes: the order of members, blanks, escapes and the way a number is
// written do not count; the order of arrays does. Numbers are compared as
// decimals, so 1, 1.0 and 1e0 are one number and no large integer is taken for
// another.
//
// Equal values have equal hashes. Whoever needs certainty compares equal hashes
// again ([SameJSON]).
type JSONHasher struct {
	data []byte
	at   int
	keys []uint64    // of the objects that are being read, the innermost last
	last number      // the number that was read last
	buf  []byte      // a string without its escapes, or a number without its point
	only bool        // the value is only checked, and its hash is of no use
	held *JSONHasher // reads what strings hold as JSON; nil until one does

	seen   bool // what nobody sees does not count
	normal bool // nor do nonces
	fading bool // nor do values that look made up for the occasion
	gone   bool // of the scalar that was read last nothing was left, for that reason
}

// maxNesting is how deep arguments may nest.
const maxNesting = 64

var (
	errSyntax    = errors.New("it is not JSON")
	errNesting   = errors.New("it nests deeper than 64")
	errDuplicate = errors.New("an object has a member twice")
	errTrailing  = errors.New("something follows the value")
	errNumber    = errors.New("a number is out of range")
)

// HashNull returns the hash of null.
func HashNull() uint64 { return spread(seedNull) }

// Hash returns the hash of one JSON value.
func (h *JSONHasher) Hash(data []byte) (uint64, error) {
	h.only, h.seen, h.normal, h.fading = false, false, false, false
	return h.read(data)
}

// HashNormal is Hash without what disguises a loop.
func (h *JSONHasher) HashNormal(data []byte) (uint64, error) {
	h.only, h.seen, h.normal, h.fading = false, true, true, false
	return h.read(data)
}

// HashLasting is HashNormal without what looks made up for the occasion.
func (h *JSONHasher) HashLasting(data []byte) (uint64, error) {
	h.only, h.seen, h.normal, h.fading = false, true, true, true
	return h.read(data)
}

// HashResult is Hash, if seen is set without what nobody sees.
func (h *JSONHasher) HashResult(data []byte, seen bool) (uint64, error) {
	if v, err := h.Hash(data); err != nil || !seen {
		return v, err
	}
	h.seen = true
	return h.read(data)
}

// Check returns the error that Hash would return.
func (h *JSONHasher) Check(data []byte) error {
	h.only, h.seen, h.normal = true, false, false
	_, err := h.read(data)
	return err
}

func (h *JSONHasher) read(data []byte) (uint64, error) {
	h.data, h.at, h.keys = data, 0, h.keys[:0]
	v, err := h.value(0)
	if err != nil {
		return 0, err
	}
	if h.skip(); h.at < len(data) {
		return 0, errTrailing
	}
	return v, nil
}

func (h *JSONHasher) skip() {
	for h.at < len(h.data) {
		switch h.data[h.at] {
		case ' ', '\t', '\n', '\r':
			h.at++
		default:
			return
		}
	}
}

// next skips blanks and returns the next byte, 0 at the end.
func (h *JSONHasher) next() byte {
	h.skip()
	if h.at < len(h.data) {
		return h.data[h.at]
	}
	return 0
}

// Seeds keep values of different kinds apart.
const (
	seedObject = iota + 1
	seedArray
	seedString
	seedNumber
	seedTrue
	seedFalse
	seedNull
)

func (h *JSONHasher) value(depth int) (uint64, error) {
	switch c := h.next(); {
	case depth > maxNesting:
		return 0, errNesting
	case c == '{':
		return h.object(depth)
	case c == '[':
		return h.array(depth)
	case c == '"' && h.only:
		return 0, h.pass()
	case c == '"':
		s, err := h.str()
		if h.normal && err == nil && mayHold(s) {
			if v, err := h.embedded(s); err == nil {
				return v, nil
			}
		}
		v := HashInto(seedString, s)
		if h.normal && h.fading {
			v = h.lasting(v, s)
		}
		return v, err
	case c == 't':
		return spread(seedTrue), h.word("true")
	case c == 'f':
		return spread(seedFalse), h.word("false")
	case c == 'n':
		return spread(seedNull), h.word("null")
	default:
		v, err := h.number()
		if h.normal && h.fading && int64(len(h.last.digits))+h.last.exponent >= 10 {
			h.gone = true
		}
		return v, err
	}
}

// embedded hashes what a string holds as JSON, apart from the same that is no string. Each
// level needs more escapes than all within it, so there are not many.
func (h *JSONHasher) embedded(s []byte) (uint64, error) {
	if h.held == nil {
		h.held = new(JSONHasher)
	}
	h.held.only, h.held.seen, h.held.normal, h.held.fading = false, true, true, h.fading
	v, err := h.held.read(s)
	return spread(v*Prime2 + seedString), err
}

// lasting returns the hash of what is left of a string without what looks made up for
// the occasion, or whole if nothing is left.
func (h *JSONHasher) lasting(whole uint64, s []byte) uint64 {
	h.buf = appendLasting(h.buf[:0], s) // s may be h.buf
	if h.gone = len(h.buf) < len(s) && blank(h.buf); h.gone {
		return whole
	}
	return HashInto(seedString, h.buf)
}

func (h *JSONHasher) word(w string) error {
	if len(h.data)-h.at < len(w) || string(h.data[h.at:h.at+len(w)]) != w {
		return errSyntax
	}
	h.at += len(w)
	return nil
}

// object sums the hashes of its members, so that their order does not count.
func (h *JSONHasher) object(depth int) (uint64, error) {
	h.at++
	first := len(h.keys)
	var sum, aside uint64 // of the members that count, and of those that name the call
	ignored := 0
	for n := 0; ; n++ {
		c := h.next()
		if c == '}' && n == 0 {
			break
		}
		if c != '"' {
			return 0, errSyntax
		}
		name, err := h.str()
		if err != nil {
			return 0, err
		}
		key, kind := fold(seedString, name), NoNonce
		if !h.only {
			key = spread(key)
		}
		if h.normal {
			kind, h.gone = NonceOf(name), false
		}
		if h.next() != ':' {
			return 0, errSyntax
		}
		h.at++
		h.keys = append(h.keys, key)
		v, err := h.value(depth + 1)
		if err != nil {
			return 0, err
		}
		if h.normal && h.gone && kind == NoNonce {
			kind = callNonce
		}
		switch h.gone = false; {
		case kind == NoNonce && !h.only:
			sum += spread(key*Prime2 + v)
		case kind == callNonce:
			aside += spread(key*Prime2 + v)
		}
		if kind != NoNonce {
			ignored++
		}
		if c = h.next(); c == '}' {
			break
		} else if c != ',' {
			return 0, errSyntax
		}
		h.at++
	}
	h.at++
	keys := h.keys[first:]
	h.keys = h.keys[:first]
	if !h.seen && twice(keys) { // what is normalised was checked, and names may be equal then
		return 0, errDuplicate
	}
	if ignored == len(keys) && depth == 0 {
		sum = aside // there is nothing else to tell calls apart by
	}
	return spread(sum + seedObject + uint64(len(keys)-ignored)*prime3), nil
}

// twice reports whether a key occurs twice. It may reorder and overwrite keys.
func twice(keys []uint64) bool {
	if len(keys) > 12 {
		slices.Sort(keys)
		return len(slices.Compact(keys)) < len(keys)
	}
	for i := range keys {
		for j := range i {
			if keys[i] == keys[j] {
				return true
			}
		}
	}
	return false
}

func (h *JSONHasher) array(depth int) (uint64, error) {
	h.at++
	sum := uint64(seedArray)
	for n := 0; ; n++ {
		if h.next() == ']' && n == 0 {
			break
		}
		v, err := h.value(depth + 1)
		if err != nil {
			return 0, err
		}
		if h.normal && h.gone {
			v, h.gone = 0, false
		}
		sum = spread(sum*Prime2 + v)
		switch h.next() {
		case ']':
			h.at++
			return spread(sum), nil
		case ',':
			h.at++
		default:
			return 0, errSyntax
		}
	}
	h.at++
	return spread(sum), nil
}

// str reads a string and returns its bytes without escapes, valid until the next
// string or number is read.
func (h *JSONHasher) str() (text []byte, err error) {
	end := jsontext.SkipPlain(h.data, h.at+1)
	if end < len(h.data) && h.data[end] == '"' { // as almost always, so without a call
		text, h.at = h.data[h.at+1:end], end+1
	} else if text, h.buf, end = jsontext.Unquote(h.data, h.at, h.buf); end > 0 {
		h.at = end
	} else {
		return nil, errSyntax
	}
	if h.seen && FirstUnseen(text) >= 0 {
		h.buf = AppendSeen(h.buf[:0], text) // which h.buf may be
		return h.buf, nil
	}
	return text, nil
}

// pass reads a string of which only the syntax counts.
func (h *JSONHasher) pass() error {
	next := jsontext.SkipString(h.data, h.at)
	if next == 0 {
		return errSyntax
	}
	h.at = next
	return nil
}
