package guard

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// A text is one output after a single pass over it: in lower case, and cut into
// tokens. It is scratch memory, used again for the next output.
type text struct {
	lower  []byte   // in lower case; only ASCII texts have it
	tokens []uint64 // a hash of each token, in order
	ascii  bool
}

// padding lets eight bytes be read anywhere in a text.
const padding = 8

const (
	low7 = 0x7f7f7f7f7f7f7f7f
	high = 0x8080808080808080
)

// read lower-cases s and, if tokens is set, hashes its tokens: the words between
// Unicode white space, in lower case.
func (t *text) read(s string, tokens bool) {
	t.tokens = t.tokens[:0]
	if t.ascii = t.readASCII(s); t.ascii {
		if tokens {
			t.cut()
		}
		return
	}
	if tokens {
		t.cutUnicode(s)
	}
}

// readASCII lower-cases s into t.lower, eight bytes at a time, and reports
// whether all of it is ASCII.
func (t *text) readASCII(s string) bool {
	n := len(s)
	if cap(t.lower) < n+padding {
		t.lower = make([]byte, 0, n+n/4+padding)
	}
	dst := t.lower[:n+padding]
	copy(dst, s)
	clear(dst[n:])
	var seen uint64
	for i := 0; i < n; i += 8 {
		x := binary.LittleEndian.Uint64(dst[i:])
		seen |= x
		// A byte is an upper-case letter if it is at least 'A' and not above 'Z'.
		atLeastA := x&low7 + (0x80-'A')*0x0101010101010101
		aboveZ := x&low7 + (0x7f-'Z')*0x0101010101010101
		binary.LittleEndian.PutUint64(dst[i:], x|(atLeastA&^aboveZ&^x&high)>>2)
	}
	t.lower = dst[:n]
	return seen&high == 0
}

// cut hashes the tokens of an ASCII text. It looks for white space 64 bytes at a
// time, so that the length of words, which nobody can predict, costs little.
func (t *text) cut() {
	n := len(t.lower)
	if most := n/2 + 1; cap(t.tokens) < most {
		t.tokens = make([]uint64, 0, most+most/4)
	}
	padded, tokens := t.lower[:n+padding], t.tokens[:cap(t.tokens)]
	count, start := 0, 0 // start of the token that is being read
	for base := 0; base < n; base += 64 {
		for blanks := blanksIn(padded[base:]); blanks != 0; blanks &= blanks - 1 {
			at := base + bits.TrailingZeros64(blanks)
			if at >= n || !blank(padded[at]) {
				continue // another control character is part of its word
			}
			if at > start {
				tokens[count] = hashToken(padded, start, at)
				count++
			}
			start = at + 1
		}
	}
	if n > start {
		tokens[count] = hashToken(padded, start, n)
		count++
	}
	t.tokens = tokens[:count]
}

// blanksIn returns a bit for each of the first 64 bytes that is a blank or a
// control character.
func blanksIn(b []byte) (blanks uint64) {
	for w := 0; w < 64 && w+8 <= len(b); w += 8 {
		x := binary.LittleEndian.Uint64(b[w:])
		above := (x&low7 + (0x7f-' ')*0x0101010101010101) & high
		blanks |= ((^above & high) >> 7 * 0x0102040810204080 >> 56) << w
	}
	return blanks
}

// blank reports whether an ASCII byte is white space to Unicode.
func blank(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// Odd numbers with bits well spread, to multiply by.
const (
	prime1 = 0x9e3779b97f4a7c15
	prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
)

// hashToken hashes padded[start:end]. The hash is the same in every process and
// version, since states that contain it are kept.
func hashToken(padded []byte, start, end int) uint64 {
	h := uint64(end-start) * prime3
	for ; end-start > 8; start += 8 {
		h = (h ^ binary.LittleEndian.Uint64(padded[start:])) * prime1
		h ^= h >> 29
	}
	last := binary.LittleEndian.Uint64(padded[start:]) & (^uint64(0) >> (64 - 8*uint(end-start)))
	h = (h ^ last) * prime1
	return h ^ h>>32
}

// spread mixes the bits of a hash.
func spread(h uint64) uint64 {
	h *= prime1
	h ^= h >> 32
	h *= prime2
	return h ^ h>>29
}

// hashBytes hashes b as it is.
func hashBytes(b []byte) uint64 { return hashInto(0, b) }

// hashInto hashes b and its length, from a seed. Without the length, a text and
// the same with zero bytes behind it would be one.
func hashInto(h uint64, b []byte) uint64 {
	h += uint64(len(b)) * prime3
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * prime1
		h ^= h >> 29
	}
	var last uint64
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	return spread(h ^ last)
}

// cutUnicode hashes the tokens of any text. Bytes that are no UTF-8 count as the
// replacement character.
func (t *text) cutUnicode(s string) {
	buf := t.lower[:0]
	flush := func() {
		if len(buf) > 0 {
			n := len(buf)
			buf = append(buf, make([]byte, padding)...)
			t.tokens = append(t.tokens, hashToken(buf, 0, n))
			buf = buf[:0]
		}
	}
	for _, r := range s {
		if unicode.IsSpace(r) {
			flush()
			continue
		}
		buf = utf8.AppendRune(buf, unicode.ToLower(r))
	}
	flush()
	t.lower = buf
}
