// Package exact holds the numbers and the text forms that must come out the
// same on every machine and in every order: weights and scores as int64
// billionths, money as int64 pico-dollars, and JSON in the canonical form of
// RFC 8785. Nothing here does I/O, and everything may be used concurrently.
package exact

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// ErrRange is wrapped by every error about a number that is not finite or too
// large for its type.
var ErrRange = errors.New("number out of range")

// One is a full vote, a certain probability, a score of 1.
const One Billionths = 1_000_000_000

// Billionths is a weight, score, threshold, margin or probability: 1e9 is 1.
// Sums of Billionths do not depend on the order of their terms.
type Billionths int64

// FromFloat rounds f to billionths, the nearest, halves away from zero. It
// returns an error wrapping [ErrRange] unless |f| <= 1e9.
func FromFloat(f float64) (Billionths, error) {
	if !(math.Abs(f) <= 1e9) { // written so that NaN is refused too
		return 0, fmt.Errorf("%v: %w", f, ErrRange)
	}
	return Billionths(math.Round(f * 1e9)), nil
}

// Float returns b as a float64, for display and for JSON numbers.
func (b Billionths) Float() float64 { return float64(b) / 1e9 }

// String returns b as a plain decimal of at most nine places, without trailing
// zeros.
func (b Billionths) String() string { return string(appendDecimal(nil, int64(b), 9)) }

// Append appends what String returns.
func (b Billionths) Append(dst []byte) []byte { return appendDecimal(dst, int64(b), 9) }

// MarshalJSON returns b as a JSON number of at most nine decimals.
func (b Billionths) MarshalJSON() ([]byte, error) { return appendDecimal(nil, int64(b), 9), nil }

// UnmarshalJSON reads a JSON number and rounds it to billionths.
func (b *Billionths) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return fmt.Errorf("%s is not a number", data)
	}
	v, err := FromFloat(f)
	if err == nil {
		*b = v
	}
	return err
}

// Text2 returns b with exactly two decimals, halves away from zero: 0.125 is
// "0.13", as in the texts of the arbiter.
func (b Billionths) Text2() string {
	neg := b < 0
	if neg {
		b = -b
	}
	cents := (int64(b) + 5_000_000) / 10_000_000
	s := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	if neg && cents != 0 {
		s = "-" + s
	}
	return s
}

// Share returns part/total in billionths, the nearest, halves away from zero.
// The product is computed in 128 bits, so it cannot overflow. A total of 0 or
// less gives 0.
func Share(part, total Billionths) Billionths {
	if total <= 0 {
		return 0
	}
	neg := part < 0
	if neg {
		part = -part
	}
	hi, lo := bits.Mul64(uint64(part), uint64(One))
	lo, carry := bits.Add64(lo, uint64(total)/2, 0)
	hi += carry
	if hi >= uint64(total) {
		return Billionths(math.MaxInt64) // part is astronomically larger than total
	}
	q, _ := bits.Div64(hi, lo, uint64(total))
	if q > math.MaxInt64 {
		q = math.MaxInt64
	}
	if neg {
		return -Billionths(q)
	}
	return Billionths(q)
}

// appendDecimal appends v / 10^places without trailing zeros.
func appendDecimal(dst []byte, v int64, places int) []byte {
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	unit := uint64(1)
	for range places {
		unit *= 10
	}
	dst = strconv.AppendUint(dst, u/unit, 10)
	frac := u % unit
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.')
	for frac > 0 {
		unit /= 10
		dst = append(dst, byte('0'+frac/unit))
		frac %= unit
	}
	return dst
}
