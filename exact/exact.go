// Package exact holds the numbers that must come out the same on every machine and
// in every order: weights and scores as int64 billionths, money as int64
// pico-dollars. Nothing here does I/O, and everything may be used concurrently.
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
	if v, ok := decimal(data, 9); ok {
		*b = Billionths(v)
		return nil
	}
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
	cents := (magnitude(b) + 5_000_000) / 10_000_000
	s := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	if b < 0 && cents != 0 {
		s = "-" + s
	}
	return s
}

// magnitude returns |b|, which for the least int64 is no int64.
func magnitude(b Billionths) uint64 {
	if b < 0 {
		return -uint64(b)
	}
	return uint64(b)
}

// Share returns part/total in billionths, the nearest, halves away from zero.
// The product is computed in 128 bits, so it cannot overflow; a part that is
// astronomically larger than the total saturates. A total of 0 or less gives 0.
func Share(part, total Billionths) Billionths {
	if total <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(magnitude(part), uint64(One))
	lo, carry := bits.Add64(lo, uint64(total)/2, 0)
	hi += carry
	q := uint64(math.MaxInt64)
	if hi < uint64(total) { // else the quotient is no uint64
		q, _ = bits.Div64(hi, lo, uint64(total))
		q = min(q, math.MaxInt64)
	}
	if part < 0 {
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

// decimal reads a plain decimal number of not too many digits as a multiple of
// ten to the minus places.
func decimal(raw []byte, places int) (v int64, ok bool) {
	digits, negative := raw, false
	if len(raw) > 0 && raw[0] == '-' {
		digits, negative = raw[1:], true
	}
	after := -1
	for _, b := range digits {
		switch {
		case b == '.' && after < 0:
			after = 0
			continue
		case b < '0' || b > '9':
			return 0, false
		case after >= 0:
			after++
		}
		if v = v*10 + int64(b-'0'); v > 1<<40 {
			return 0, false
		}
	}
	after = max(after, 0)
	if after > places || len(digits) == 0 || digits[0] == '.' || digits[len(digits)-1] == '.' || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' {
		return 0, false
	}
	for ; after < places; after++ {
		if v > (1<<62)/10 {
			return 0, false
		}
		v *= 10
	}
	if negative {
		v = -v
	}
	return v, true
}
