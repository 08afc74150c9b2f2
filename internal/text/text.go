// Package text reads what agents say and what they hand to tools, and says how much
// two of these are alike, at a speed at which every step can be compared with all
// before it.
//
// A [Text] is an output after one pass: lower case, a hash, a hash of each word.
// [AppendNgrams] and [Print] make of the words what outputs are compared by, exactly
// and by sample; a [GramCounter] counts what repeats. [Sketch] is a word of 64 bits
// by which arguments are near each other or not. A [JSONHasher] hashes a JSON value by
// what it means, on wish without what disguises a loop: see [NonceOf] and [Unseen].
// A [Pattern] is a regular expression with the literal that it needs, so that most
// texts need no more than a search.
//
// All hashes are of one process or of its logs: equal inputs have equal hashes on every
// machine. Nothing here may be used by two goroutines at once, but for Pattern.
package text

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// A Text is one output after a single pass over it: in lower case, hashed, and
// cut into tokens. It is scratch memory, used again for the next output.
type Text struct {
	Lower  []byte   // in lower case; only ASCII texts have it
	Tokens []uint64 // a hash of each token, in order
	Hash   uint64   // of the text as it is
	ASCII  bool
}

// padding lets a block be read anywhere in a text.
const padding = blockRead

const (
	ones = 0x0101010101010101
	low7 = 0x7f * ones
	high = 0x80 * ones
)

// Read lower-cases and hashes s and, if tokens is set, hashes its tokens: the
// words between Unicode white space, in lower case.
func (t *Text) Read(s string, tokens bool) {
	t.Tokens = t.Tokens[:0]
	if t.ASCII = t.readASCII(s); t.ASCII {
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
func (t *Text) readASCII(s string) bool {
	n := len(s)
	if cap(t.Lower) < n+padding {
		t.Lower = make([]byte, 0, n+n/4+padding)
	}
	src, dst := BytesOf(s), t.Lower[:n+padding]
	whole := n &^ 31
	l := lanes{Prime1, Prime2, prime3, uint64(n)}
	seen := l.take(dst[:whole], src[:whole])
	var last [32]byte
	copy(last[:], src[whole:])
	seen |= l.take(dst[whole:whole+32], last[:])
	clear(dst[whole+32:])
	t.Lower, t.Hash = t.Lower[:n], spread(spread(spread(spread(l.a)^l.b)^l.c)^l.d)
	return seen&high == 0
}

// lanes are four hashes that are computed side by side.
type lanes struct{ a, b, c, d uint64 }

// take hashes src, a multiple of 32 bytes, writes it to dst in lower case and
// returns the bits that were set in any eight bytes.
func (l *lanes) take(dst, src []byte) (seen uint64) {
	a, b, c, d := l.a, l.b, l.c, l.d
	for len(src) >= 32 && len(dst) >= 32 {
		v, to := (*[32]byte)(src), (*[32]byte)(dst)
		w, x := binary.LittleEndian.Uint64(v[0:]), binary.LittleEndian.Uint64(v[8:])
		y, z := binary.LittleEndian.Uint64(v[16:]), binary.LittleEndian.Uint64(v[24:])
		binary.LittleEndian.PutUint64(to[0:], lowered(w))
		binary.LittleEndian.PutUint64(to[8:], lowered(x))
		binary.LittleEndian.PutUint64(to[16:], lowered(y))
		binary.LittleEndian.PutUint64(to[24:], lowered(z))
		seen |= w | x | y | z
		a, b = bits.RotateLeft64(a^w, 29)*Prime1, bits.RotateLeft64(b^x, 29)*Prime1
		c, d = bits.RotateLeft64(c^y, 29)*Prime1, bits.RotateLeft64(d^z, 29)*Prime1
		src, dst = src[32:], dst[32:]
	}
	*l = lanes{a, b, c, d}
	return seen
}

// lowered returns eight ASCII bytes in lower case. A byte is an upper-case letter
// if it is at least 'A' and not above 'Z'.
func lowered(x uint64) uint64 {
	atLeastA, aboveZ := x+(0x80-'A')*ones, x+(0x7f-'Z')*ones
	return x | (atLeastA^aboveZ)&high>>2
}

// cut hashes the tokens of an ASCII text. It looks for white space 64 bytes at a
// time, so that the length of words, which nobody can predict, costs little.
func (t *Text) cut() {
	n := len(t.Lower)
	if most := n/2 + 1; cap(t.Tokens) < most {
		t.Tokens = make([]uint64, 0, most+most/4)
	}
	padded := t.Lower[:n+padding]
	padded[n] = ' ' // ends the last token
	tokens := t.Tokens[:0]
	for base := 0; base <= n; { // a token begins here
		block := (*[blockRead]byte)(padded[base:])
		if blanks := blanksIn((*[64]byte)(block[:])); blanks != 0 {
			var next int
			tokens, next = cutBlock(tokens, block, blanks)
			base += next
			continue
		}
		end := blankFrom(padded, base+64)
		tokens = append(tokens, hashToken(padded, base, end))
		base = end + 1
	}
	padded[n] = 0
	t.Tokens = tokens
}

// blankFrom returns the index of the first white space from at on; there is some.
func blankFrom(padded []byte, at int) int {
	for {
		if blanks := blanksIn((*[64]byte)(padded[at:])); blanks != 0 {
			return at + bits.TrailingZeros64(blanks)
		}
		at += 64
	}
}

// blockRead is how much of a text is read for a block of 64 bytes: eight bytes
// from each of them on.
const blockRead = 64 + 8

// cutBlock appends the hashes of the tokens of a block, the first of which begins
// with it, that end at one of the blanks. It returns where the next one begins.
func cutBlock(tokens []uint64, block *[blockRead]byte, blanks uint64) ([]uint64, int) {
	room := tokens[len(tokens):cap(tokens)]
	count, start := 0, 0
	for ; blanks != 0; blanks &= blanks - 1 {
		at := bits.TrailingZeros64(blanks)
		length := uint(at - start)
		if length-1 < 8 && count < len(room) {
			w := &shortWords[length%16]
			room[count] = mixed((binary.LittleEndian.Uint64(block[start&63:]) & w.mask) ^ w.seed)
			count++
		} else if length > 8 {
			room[count] = hashToken(block[:], start, at)
			count++
		}
		start = at + 1
	}
	return tokens[:len(tokens)+count], start
}

// shortWords has, for each length of a word up to eight bytes, the bits it takes and
// what its length adds to its hash.
var shortWords = func() (w [16]struct{ mask, seed uint64 }) {
	for n := range uint64(9) {
		w[n].mask, w[n].seed = 1<<(8*n)-1, n*prime3
	}
	return w
}()

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
	Prime1 = 0x9e3779b97f4a7c15
	Prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
)

// hashToken hashes padded[start:end]. The hash is the same in every process and
// version, since states that contain it are kept.
func hashToken(padded []byte, start, end int) uint64 {
	length, h := uint64(end-start), uint64(0)
	for ; end-start > 8; start += 8 {
		h = (h ^ binary.LittleEndian.Uint64(padded[start:])) * Prime1
		h ^= h >> 29
	}
	last := binary.LittleEndian.Uint64(padded[start:]) & shortWords[(end-start)%16].mask
	return mixed(h ^ last ^ length*prime3)
}

// mixed ends a hash of a token.
func mixed(h uint64) uint64 {
	h *= Prime1
	return h ^ h>>32
}

// spread mixes the bits of a hash.
func spread(h uint64) uint64 {
	h *= Prime1
	h ^= h >> 32
	h *= Prime2
	return h ^ h>>29
}

// HashBytes hashes b as it is.
func HashBytes(b []byte) uint64 { return HashInto(0, b) }

// HashInto hashes b and its length, from a seed. Without the length, a text and
// the same with zero bytes behind it would be one.
func HashInto(h uint64, b []byte) uint64 { return spread(fold(h, b)) }

// fold is hashInto without the last step: enough to tell texts apart.
func fold(h uint64, b []byte) uint64 {
	h += uint64(len(b)) * prime3
	rest := b
	for ; len(rest) > 8; rest = rest[8:] {
		h = (h ^ binary.LittleEndian.Uint64(rest)) * Prime1
		h ^= h >> 29
	}
	switch n := len(b); {
	case n >= 8: // the last eight bytes, some of them again
		return h ^ binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		return h ^ uint64(binary.LittleEndian.Uint32(b)) ^ uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		return h ^ uint64(b[0]) ^ uint64(b[n/2])<<8 ^ uint64(b[n-1])<<16
	}
	return h
}

// cutUnicode hashes the tokens of any text. Bytes that are no UTF-8 count as the
// replacement character.
func (t *Text) cutUnicode(s string) {
	buf := t.Lower[:0]
	flush := func() {
		if len(buf) > 0 {
			n := len(buf)
			buf = append(buf, make([]byte, 8)...) // hashToken reads eight bytes at a time
			t.Tokens = append(t.Tokens, hashToken(buf, 0, n))
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
	t.Lower = buf
}

// StringOf shares bytes that nobody changes.
func StringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// BytesOf shares the bytes of a string, for reading only.
func BytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
