package exact_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
)

func TestParseMoney(t *testing.T) {
	for _, c := range []struct {
		text string
		want exact.Money
	}{
		{"0", 0}, {"-0", 0}, {"1", exact.Dollar}, {"0.1", exact.Dollar / 10}, {"-2.5", -5 * exact.Dollar / 2},
		{"0.00015", 150_000_000}, {"1e-12", 1}, {"1.0", exact.Dollar}, {"1E2", 100 * exact.Dollar}, {"1e+2", 100 * exact.Dollar},
		{"0.0000000000001", 1}, {"1e-13", 1}, {"1e-400", 1}, {"-1e-13", -1}, // finer than a pico-dollar: away from zero
		{"1.0000000000001", exact.Dollar + 1}, {"1.0000000000009", exact.Dollar + 1},
		{"9223372.036854775807", math.MaxInt64}, {"-9223372.036854775808", math.MinInt64},
		{"0e40", 0}, {"0.0000000000000000000000000000000000001e40", 1000 * exact.Dollar},
	} {
		if got, err := exact.ParseMoney(c.text); got != c.want || err != nil {
			t.Errorf("ParseMoney(%q) = %d, %v, want %d", c.text, int64(got), err, int64(c.want))
		}
	}
	for _, text := range []string{"9223372.0368547758071", "9223372.036854775808", "-9223372.0368547758081", "1e7", "1e40", "1e41", "1e999999999", "1e99999999999999999999", "1e-401", "-1e-999999999"} {
		if got, err := exact.ParseMoney(text); !errors.Is(err, exact.ErrRange) {
			t.Errorf("ParseMoney(%q) = %d, %v, want ErrRange", text, int64(got), err)
		}
	}
	for _, text := range []string{"", " ", "1 ", " 1", "+1", ".5", "5.", "01", "0x10", "1_000", "1/2", "NaN", "Inf", "null", "true", `"1"`, "1e", "1e1.5", "--1", "$1"} {
		if got, err := exact.ParseMoney(text); err == nil || errors.Is(err, exact.ErrRange) {
			t.Errorf("ParseMoney(%q) = %d, %v, want that it is no number", text, int64(got), err)
		}
	}
}

// TestParseMoneyAgainstBigRat compares with the value rounded away from zero to
// whole pico-dollars.
func TestParseMoneyAgainstBigRat(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 4))
	for range 20_000 {
		text := strconv.FormatInt(rng.Int64N(2_000_000)-1_000_000, 10)
		if digits := rng.IntN(20); digits > 0 {
			text += "." + strings.Repeat("0", rng.IntN(digits)) + strconv.Itoa(rng.IntN(1000))
		}
		r, _ := new(big.Rat).SetString(text)
		pico, rest := new(big.Int).QuoRem(new(big.Int).Mul(r.Num(), big.NewInt(int64(exact.Dollar))), r.Denom(), new(big.Int))
		want := exact.Money(pico.Int64() + int64(rest.Sign()))
		if got, err := exact.ParseMoney(text); got != want || err != nil {
			t.Fatalf("seed %d: ParseMoney(%q) = %d, %v, want %d", seed, text, int64(got), err, int64(want))
		}
	}
}

func TestMoneyPrintsWhatItReads(t *testing.T) {
	for _, c := range []struct {
		m    exact.Money
		want string
	}{
		{0, "0"}, {1, "0.000000000001"}, {150_000_000, "0.00015"}, {exact.Dollar, "1"}, {-exact.Dollar / 4, "-0.25"},
		{math.MaxInt64, "9223372.036854775807"}, {math.MinInt64, "-9223372.036854775808"},
	} {
		if got := c.m.String(); got != c.want {
			t.Errorf("%d.String() = %q, want %q", int64(c.m), got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	for range 20_000 {
		want := exact.Money(wide(rng))
		data, err := json.Marshal(want)
		var got exact.Money
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err != nil || got != want {
			t.Fatalf("seed %d: %d became %s and then %d (%v)", seed, int64(want), data, int64(got), err)
		}
	}
	for _, text := range []string{`"1"`, `null`, `true`, `{}`, `1e10`} {
		got := exact.Money(7)
		if err := json.Unmarshal([]byte(text), &got); err == nil || got != 7 {
			t.Errorf("%s was read as %d (%v)", text, int64(got), err)
		}
	}
}

func TestMoneyFromFloat(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want exact.Money
	}{{0.1, exact.Dollar / 10}, {0.7, 700_000_000_000}, {5e-324, 1}, {2.5e-12, 3}, {1e6, 1_000_000 * exact.Dollar}, {-0.1, -exact.Dollar / 10}} {
		if got, err := exact.MoneyFromFloat(c.f); got != c.want || err != nil {
			t.Errorf("MoneyFromFloat(%v) = %d, %v, want %d", c.f, int64(got), err, int64(c.want))
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e7, 1e300, -1e7} {
		if got, err := exact.MoneyFromFloat(f); !errors.Is(err, exact.ErrRange) {
			t.Errorf("MoneyFromFloat(%v) = %d, %v, want ErrRange", f, int64(got), err)
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 6))
	lowest, highest := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	for range 50_000 {
		a, b := wide(rng), wide(rng)
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if want.Cmp(lowest) < 0 {
			want = lowest
		}
		if want.Cmp(highest) > 0 {
			want = highest
		}
		if got := exact.AddSat(a, b); got != want.Int64() {
			t.Fatalf("seed %d: AddSat(%d, %d) = %d, want %d", seed, a, b, got, want)
		}
		if got := exact.Money(a).Add(exact.Money(b)); int64(got) != want.Int64() {
			t.Fatalf("seed %d: %d.Add(%d) = %d, want %d", seed, a, b, int64(got), want)
		}
	}
}

func TestTimesAgainstBigInt(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 7))
	highest := big.NewInt(math.MaxInt64)
	for range 50_000 {
		m, n := wide(rng), wide(rng)
		if m, n = max(m, -(m+1)), max(n, -(n+1)); rng.IntN(2) == 0 {
			n %= 100
		}
		want := new(big.Int).Mul(big.NewInt(m), big.NewInt(n))
		if want.Cmp(highest) > 0 {
			want = highest
		}
		if got := exact.Money(m).Times(n); int64(got) != want.Int64() {
			t.Fatalf("seed %d: %d times %d is %d, want %d", seed, m, n, int64(got), want)
		}
	}
}

func TestPerMillionAgainstBigInt(t *testing.T) {
	million := big.NewInt(1_000_000)
	slow := func(m exact.Money, n int64) exact.Money {
		q, rest := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(int64(m)), big.NewInt(n)), million, new(big.Int))
		if rest.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		if !q.IsInt64() {
			return math.MaxInt64
		}
		return exact.Money(q.Int64())
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	for range 100_000 {
		m, n := exact.Money(max(0, wide(rng))), max(0, wide(rng))
		if got, want := m.PerMillion(n), slow(m, n); got != want {
			t.Fatalf("seed %d: %d.PerMillion(%d) = %d, want %d", seed, int64(m), n, int64(got), int64(want))
		}
	}
	if got := exact.Money(1).PerMillion(1); got != 1 {
		t.Errorf("one token at the lowest price costs %d, it must not be free", got)
	}
	if got := (15 * exact.Dollar / 100).PerMillion(1_000_000); got != 15*exact.Dollar/100 {
		t.Errorf("a million tokens cost %v, not the price of a million", got)
	}
}

func TestIsNumber(t *testing.T) {
	for _, s := range []string{"0", "-0", "1", "-1.5", "1e5", "1E+5", "0.000", "123456789012345678901234567890"} {
		if !exact.IsNumber(s) {
			t.Errorf("IsNumber(%q) = false", s)
		}
	}
	for _, s := range []string{"", "-", "+1", "01", ".5", "5.", "1e", "0x1", "NaN", "true", "null", `"1"`, "[1]", " 1", "1 ", "1\n", "1,2", "Infinity", "-Infinity", "1_0", "-a"} {
		if exact.IsNumber(s) {
			t.Errorf("IsNumber(%q) = true", s)
		}
	}
}
