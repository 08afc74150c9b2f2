package exact

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in pico-dollars: 1e12 is one dollar. It
// holds up to about 9.2 million dollars. Sums saturate, they never wrap.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000_000_000

// maxExponent bounds the decimal exponents that are expanded, so that
// "1e999999999" costs nothing to refuse.
const maxExponent = 40

// ParseMoney reads a decimal number of dollars, as JSON writes it. Amounts finer
// than a pico-dollar round up, away from zero, so that no cost becomes free. The
// error wraps [ErrRange] if the amount does not fit.
func ParseMoney(s string) (Money, error) {
	if !IsNumber(s) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > maxExponent || e < -400 {
			return 0, fmt.Errorf("%s: %w", s, ErrRange)
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(Dollar)))
	q, rem := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rem.Sign() != 0 {
		q.Add(q, big.NewInt(int64(r.Sign())))
	}
	if !q.IsInt64() {
		return 0, fmt.Errorf("%s dollars: %w", s, ErrRange)
	}
	return Money(q.Int64()), nil
}

// IsNumber reports whether s has the form of a JSON number.
func IsNumber(s string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	if s == "" || s[0] != '-' && !digit(s[0]) || !digit(s[len(s)-1]) { // no blanks around it
		return false
	}
	return json.Valid([]byte(s))
}

// MoneyFromFloat converts f dollars by its shortest decimal form, so 0.1 is
// exactly ten cents. NaN, infinities and amounts that do not fit are refused.
func MoneyFromFloat(f float64) (Money, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%v: %w", f, ErrRange)
	}
	return ParseMoney(strconv.FormatFloat(f, 'g', -1, 64))
}

// Add returns m + n, saturated.
func (m Money) Add(n Money) Money { return Money(AddSat(int64(m), int64(n))) }

// Times returns n times m, saturated. Neither may be negative.
func (m Money) Times(n int64) Money {
	hi, lo := bits.Mul64(uint64(m), uint64(n))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return Money(lo)
}

// AddSat returns a + b, saturated at the limits of int64.
func AddSat(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// String returns m in dollars as an exact decimal: "0.00015".
func (m Money) String() string { return string(appendDecimal(nil, int64(m), 12)) }

// Append appends what String returns.
func (m Money) Append(dst []byte) []byte { return appendDecimal(dst, int64(m), 12) }

// MarshalJSON returns m as an exact JSON number of dollars.
func (m Money) MarshalJSON() ([]byte, error) { return m.Append(nil), nil }

// UnmarshalJSON reads a JSON number of dollars exactly.
func (m *Money) UnmarshalJSON(data []byte) error {
	if v, ok := decimal(data, 12); ok {
		*m = Money(v)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil || len(data) > 0 && data[0] == '"' {
		return fmt.Errorf("%s is not a number of dollars", data)
	}
	v, err := ParseMoney(n.String())
	if err == nil {
		*m = v
	}
	return err
}

// PerMillion returns the price of n units at m for a million, rounded up to the
// next pico-dollar, so that no use is free. n must not be negative; the result
// saturates.
func (m Money) PerMillion(n int64) Money {
	const million = 1_000_000
	hi, lo := bits.Mul64(uint64(m), uint64(n))
	lo, carry := bits.Add64(lo, million-1, 0)
	hi += carry
	if hi >= million {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, million)
	return Money(min(q, math.MaxInt64))
}
