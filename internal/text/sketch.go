package text

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// Zeros are put behind what is read 64 bytes at a time.
var Zeros [padding]byte

// Sketch returns 64 bits that stand for the set of words in padded[:n]: of sixteen
// groups of words the lowest hash, in four bits, 15 where a group is empty (one
// permutation hashing, Li, Owen, Zhang 2012; b-bit minwise hashing, Li, König
// 2010). A word is a run of ASCII letters and digits, or of bytes beyond ASCII.
// Behind padded[:n] come zeros.
func Sketch(padded []byte, n int) uint64 {
	var g groups
	g.clear()
	start, inWord := 0, uint64(0) // 1 if a word goes on from the block before
	for base := 0; base <= n; base += 64 {
		block := (*[blockRead]byte)(padded[base:])
		in := wordsIn((*[64]byte)(block[:]))
		before := in<<1 | inWord
		starts, ends := in&^before, before&^in
		if inWord != 0 && ends != 0 {
			g.word(padded, start, base+bits.TrailingZeros64(ends))
			ends &= ends - 1
		}
		for ; ends != 0; ends &= ends - 1 {
			at := bits.TrailingZeros64(starts)
			starts &= starts - 1
			length := uint(bits.TrailingZeros64(ends) - at)
			if length <= 8 {
				g.add(binary.LittleEndian.Uint64(block[at&63:])&shortWords[length%16].mask, length)
			} else {
				g.word(padded, base+at, base+at+int(length))
			}
		}
		if inWord = in >> 63; starts != 0 {
			start = base + bits.TrailingZeros64(starts)
		}
	}
	return g.bits()
}

// groups are the lowest hashes of sixteen groups of words.
type groups [16]uint32

func (g *groups) clear() {
	for i := range g {
		g[i] = math.MaxUint32
	}
}

// word counts the word padded[start:end].
func (g *groups) word(padded []byte, start, end int) {
	if n := end - start; n <= 8 {
		g.add(binary.LittleEndian.Uint64(padded[start:])&shortWords[n].mask, uint(n))
	} else {
		g.add(HashBytes(padded[start:end]), uint(n))
	}
}

// add counts a word of the given length: the word itself, or its hash if it is
// longer than eight bytes.
func (g *groups) add(word uint64, length uint) {
	h := (word ^ uint64(length)*prime3) * Prime1
	h ^= h >> 32
	slot := &g[h&15]
	*slot = min(*slot, uint32(h>>4)&0x7fffffff)
}

// bits returns four bits for each group.
func (g *groups) bits() (all uint64) {
	for i, low := range g {
		nibble := uint64(15)
		if low != math.MaxUint32 {
			nibble = uint64(low*uint32(Prime2>>32)) * 15 >> 32
		}
		all |= nibble << (4 * i)
	}
	return all
}

// wordsIn returns a bit for each of 64 bytes that is part of a word.
func wordsIn(b *[64]byte) uint64 {
	return wordsInHalf((*[32]byte)(b[:32])) | wordsInHalf((*[32]byte)(b[32:]))<<32
}

func wordsInHalf(b *[32]byte) uint64 {
	return packed(wordBytes(binary.LittleEndian.Uint64(b[0:]))) | packed(wordBytes(binary.LittleEndian.Uint64(b[8:])))<<8 |
		packed(wordBytes(binary.LittleEndian.Uint64(b[16:])))<<16 | packed(wordBytes(binary.LittleEndian.Uint64(b[24:])))<<24
}

// wordBytes sets the high bit of each byte that is part of a word. Digits have the
// bit that makes a letter small, so both are looked for in lower case; the control
// characters that become digits so do not occur in JSON.
func wordBytes(x uint64) uint64 {
	low := (x | ' '*ones) & low7
	digit := (low + (0x80-'0')*ones) ^ (low + (0x7f-'9')*ones)
	letter := (low + (0x80-'a')*ones) ^ (low + (0x7f-'z')*ones)
	return (digit | letter | x) & high
}

// Differing counts the groups in which two sketches differ.
func Differing(a, b uint64) int {
	x := a ^ b
	return bits.OnesCount64((x | x>>1 | x>>2 | x>>3) & 0x1111111111111111)
}

// Similar reports whether two sketches are of sets whose Jaccard similarity is
// estimated as at least j.
func Similar(a, b uint64, j exact.Billionths) bool {
	differs := Differing(a, b)
	full := a & b // four set bits are an empty group
	empty := full & (full >> 1) & (full >> 2) & (full >> 3) & 0x1111111111111111
	groups := 16 - bits.OnesCount64(empty)
	alike := groups - differs
	return groups > 0 && int64(alike)*1e9 >= int64(groups)*int64(j)
}

// MostDiffering returns in how many groups similar sketches differ at most: as many
// as if no group is empty.
func MostDiffering(j exact.Billionths) int { return int(16 * (1e9 - int64(j)) / 1e9) }

// WordByte says which bytes words are made of.
var WordByte = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
	}
	return set
}()
