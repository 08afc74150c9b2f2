package guard

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// A text is one output after a single pass over it: in lower case, hashed, and
// cut into tokens. It is scratch memory, used again for the next output.
type text struct {
	lower  []byte   // in lower case; only ASCII texts have it
	tokens []uint64 // a hash of each token, in order
	hash   uint64   // of the text as it is
	ascii  bool
}

// padding lets a block of 64 bytes be read anywhere in a text.
const padding = 64

const (
	ones = 0x0101010101010101
	low7 = 0x7f * ones
	high = 0x80 * ones
)

// read lower-cases and hashes s and, if tokens is set, hashes its tokens: the
// words between Unicode white space, in lower case.
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

// readASCII lower-cases s into t.lower, hashes it into t.hash and reports whether
// all of it is ASCII; if not, t.lower is of no use. It takes 32 bytes at a time
// and hashes them in four lanes, since a multiplication takes longer than all
// else there is to do for eight bytes.
func (t *text) readASCII(s string) bool {
	n := len(s)
	if cap(t.lower) < n+padding {
		t.lower = make([]byte, 0, n+n/4+padding)
	}
	src, dst := bytesOf(s), t.lower[:n+padding]
	var last [32]byte
	var seen uint64
	a, b, c, d := uint64(prime1), uint64(prime2), uint64(prime3), uint64(n)
	for more := true; more && len(dst) >= 32; dst = dst[32:] {
		if more = len(src) >= 32; !more {
			copy(last[:], src)
			src = last[:]
		}
		w, x := binary.LittleEndian.Uint64(src[0:]), binary.LittleEndian.Uint64(src[8:])
		y, z := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:32])
		binary.LittleEndian.PutUint64(dst[0:], lowered(w))
		binary.LittleEndian.PutUint64(dst[8:], lowered(x))
		binary.LittleEndian.PutUint64(dst[16:], lowered(y))
		binary.LittleEndian.PutUint64(dst[24:], lowered(z))
		seen |= w | x | y | z
		a, b = bits.RotateLeft64(a^w, 29)*prime1, bits.RotateLeft64(b^x, 29)*prime1
		c, d = bits.RotateLeft64(c^y, 29)*prime1, bits.RotateLeft64(d^z, 29)*prime1
		src = src[32:]
	}
	clear(dst)
	t.lower, t.hash = t.lower[:n], spread(spread(spread(spread(a)^b)^c)^d)
	return seen&high == 0
}

// lowered returns eight ASCII bytes in lower case. A byte is an upper-case letter
// if it is at least 'A' and not above 'Z'.
func lowered(x uint64) uint64 {
	atLeastA, aboveZ := x+(0x80-'A')*ones, x+(0x7f-'Z')*ones
	return x | (atLeastA^aboveZ)&high>>2
}

// cut hashes the tokens of an ASCII text. It looks for white space 64 bytes at a
// time, so that the length of words, which nobody can predict, costs little.
func (t *text) cut() {
	n := len(t.lower)
	if most := n/2 + 1; cap(t.tokens) < most {
		t.tokens = make([]uint64, 0, most+most/4)
	}
	padded, tokens := t.lower[:n+padding], t.tokens[:cap(t.tokens)]
	padded[n] = ' ' // ends the last token
	count, start := 0, 0
	for base := 0; base <= n; base += 64 {
		for blanks := blanksIn((*[64]byte)(padded[base:])); blanks != 0; blanks &= blanks - 1 {
			at := base + bits.TrailingZeros64(blanks)
			switch length := uint(at - start); {
			case length-1 < 8:
				word := binary.LittleEndian.Uint64(padded[start:]) & (^uint64(0) >> ((64 - 8*length) & 63))
				tokens[count] = hashWord(word, uint64(length))
				count++
			case length > 8:
				tokens[count] = hashToken(padded, start, at)
				count++
			}
			start = at + 1
		}
	}
	padded[n] = 0
	t.tokens = tokens[:count]
}

// blanksIn returns a bit for each of 64 ASCII bytes that is white space to
// Unicode: a blank, or from tab to carriage return.
func blanksIn(b *[64]byte) uint64 {
	return blanksInHalf((*[32]byte)(b[:32])) | blanksInHalf((*[32]byte)(b[32:]))<<32
}

func blanksInHalf(b *[32]byte) uint64 {
	return packed(blankBytes(binary.LittleEndian.Uint64(b[0:]))) | packed(blankBytes(binary.LittleEndian.Uint64(b[8:])))<<8 |
		packed(blankBytes(binary.LittleEndian.Uint64(b[16:])))<<16 | packed(blankBytes(binary.LittleEndian.Uint64(b[24:])))<<24
}

// blankBytes sets the high bit of each byte that is white space.
func blankBytes(x uint64) uint64 {
	other := x ^ ' '*ones + low7
	control := (x + (0x80-'\t')*ones) ^ (x + (0x7f-'\r')*ones)
	return (^other | control) & high
}

// packed gathers the high bits of eight bytes, the only ones set.
func packed(x uint64) uint64 { return x >> 7 * 0x0102040810204080 >> 56 }

// Odd numbers with bits well spread, to multiply by.
const (
	prime1 = 0x9e3779b97f4a7c15
	prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
)

// hashToken hashes padded[start:end]. The hash is the same in every process and
// version, since states that contain it are kept.
func hashToken(padded []byte, start, end int) uint64 {
	length, h := uint64(end-start), uint64(0)
	for ; end-start > 8; start += 8 {
		h = (h ^ binary.LittleEndian.Uint64(padded[start:])) * prime1
		h ^= h >> 29
	}
	last := binary.LittleEndian.Uint64(padded[start:]) & (^uint64(0) >> ((64 - 8*uint(end-start)) & 63))
	return hashWord(h^last, length)
}

// hashWord hashes the last, or only, eight bytes of a token.
func hashWord(word, length uint64) uint64 {
	h := (word ^ length*prime3) * prime1
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
	rest := b
	for ; len(rest) > 8; rest = rest[8:] {
		h = (h ^ binary.LittleEndian.Uint64(rest)) * prime1
		h ^= h >> 29
	}
	switch n := len(b); {
	case n >= 8: // the last eight bytes, some of them again
		h ^= binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		h ^= uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		h ^= uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return spread(h)
}

// cutUnicode hashes the tokens of any text. Bytes that are no UTF-8 count as the
// replacement character.
func (t *text) cutUnicode(s string) {
	buf := t.lower[:0]
	flush := func() {
		if len(buf) > 0 {
			n := len(buf)
			buf = append(buf, make([]byte, 8)...) // hashToken reads eight bytes at a time
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
