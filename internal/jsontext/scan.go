package jsontext

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Bytes are looked at eight at a time: a number with each of them in its lowest bit,
// and in its highest.
const (
	scanOnes = 0x0101010101010101
	scanHigh = 0x8080808080808080
)

// SkipPlain returns the index of the first byte from i on that does not simply stand
// for itself in a JSON string: a quote, a backslash, a control character or one beyond
// ASCII. It is the length of data if there is none.
func SkipPlain(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		quote, slash := x^'"'*scanOnes, x^'\\'*scanOnes
		// The lowest byte that is marked is one; those above may be marked by a borrow.
		if found := ((x - ' '*scanOnes) | (quote - scanOnes) | (slash - scanOnes) | x) & scanHigh; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}
