package exact_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/exact"
)

const seed = 20260102

func TestFromFloatRoundsHalfAwayFromZero(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want exact.Billionths
	}{
		{0, 0}, {math.Copysign(0, -1), 0}, {1, exact.One}, {-1, -exact.One}, {0.5, 500_000_000},
		{1.0 / 1024, 976_563}, {-1.0 / 1024, -976_563}, // exactly 976562.5 billionths
		{3.0 / 1024, 2_929_688}, {-3.0 / 1024, -2_929_688}, // exactly 2929687.5
		{0.1, 100_000_000}, {0.3, 300_000_000}, {0.1 + 0.2, 300_000_000}, {1e-9, 1}, {4e-10, 0}, {-4e-10, 0},
		{1.0 / 3, 333_333_333}, {2.0 / 3, 666_666_667}, {1e9, 1_000_000_000_000_000_000}, {-1e9, -1_000_000_000_000_000_000},
		{5e-324, 0},
	} {
		if got, err := exact.FromFloat(c.f); got != c.want || err != nil {
			t.Errorf("FromFloat(%v) = %d, %v, want %d", c.f, got, err, c.want)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e9 + 1, -1e9 - 1, math.MaxFloat64} {
		if got, err := exact.FromFloat(f); !errors.Is(err, exact.ErrRange) {
			t.Errorf("FromFloat(%v) = %d, %v, want ErrRange", f, got, err)
		}
	}
}

func TestBillionthsText(t *testing.T) {
	for _, c := range []struct {
		b            exact.Billionths
		text, short2 string
	}{
		{0, "0", "0.00"}, {exact.One, "1", "1.00"}, {-exact.One, "-1", "-1.00"},
		{125_000_000, "0.125", "0.13"}, {-125_000_000, "-0.125", "-0.13"}, {135_000_000, "0.135", "0.14"},
		{124_999_999, "0.124999999", "0.12"}, {5_000_000, "0.005", "0.01"}, {4_999_999, "0.004999999", "0.00"},
		{-4_999_999, "-0.004999999", "0.00"}, {-5_000_000, "-0.005", "-0.01"}, {995_000_000, "0.995", "1.00"},
		{1, "0.000000001", "0.00"}, {210_000_000, "0.21", "0.21"}, {1_500_000_000, "1.5", "1.50"}, {123_456_789_000_000_000, "123456789", "123456789.00"},
		{math.MaxInt64, "9223372036.854775807", "9223372036.85"}, {math.MinInt64, "-9223372036.854775808", "-9223372036.85"},
	} {
		if got := c.b.String(); got != c.text {
			t.Errorf("%d.String() = %q, want %q", int64(c.b), got, c.text)
		}
		if got := c.b.Text2(); got != c.short2 {
			t.Errorf("%d.Text2() = %q, want %q", int64(c.b), got, c.short2)
		}
		if got := string(c.b.Append([]byte("x"))); got != "x"+c.text {
			t.Errorf("%d.Append = %q", int64(c.b), got)
		}
	}
}

func TestBillionthsJSON(t *testing.T) {
	type value struct{ B exact.Billionths }
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 10_000 {
		want := value{exact.Billionths(rng.Int64N(4e15) - 2e15)} // exact in float64
		data, err := json.Marshal(want)
		var got value
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err != nil || got != want {
			t.Fatalf("seed %d: %d became %s and then %d (%v)", seed, int64(want.B), data, int64(got.B), err)
		}
	}
	for _, text := range []string{`{"B":"0.5"}`, `{"B":null}`, `{"B":1e400}`, `{"B":1e10}`, `{"B":true}`, `{"B":[]}`} {
		got := value{7}
		if err := json.Unmarshal([]byte(text), &got); err == nil || got.B != 7 {
			t.Errorf("%s was read as %v (%v)", text, got.B, err)
		}
	}
	if f := exact.Billionths(750_000_000).Float(); f != 0.75 {
		t.Errorf("Float = %v", f)
	}
}

// slowShare is Share by arbitrary precision: |part| * 1e9 / total, halves up,
// with the sign of part, within int64.
func slowShare(part, total exact.Billionths) exact.Billionths {
	if total <= 0 {
		return 0
	}
	n := new(big.Int).Mul(new(big.Int).Abs(big.NewInt(int64(part))), big.NewInt(2*int64(exact.One)))
	n.Add(n, big.NewInt(int64(total)))
	n.Quo(n, new(big.Int).Mul(big.NewInt(int64(total)), big.NewInt(2)))
	if limit := big.NewInt(math.MaxInt64); n.Cmp(limit) > 0 {
		n = limit
	}
	if part < 0 {
		n.Neg(n)
	}
	return exact.Billionths(n.Int64())
}

// wide returns an int64 of random magnitude, often at a limit.
func wide(rng *rand.Rand) int64 {
	switch rng.IntN(8) {
	case 0:
		return []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}[rng.IntN(7)]
	case 1:
		return rng.Int64N(20) - 10
	}
	return int64(rng.Uint64()) >> rng.IntN(64)
}

func TestShareAgainstBigInt(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 200_000 {
		part, total := exact.Billionths(wide(rng)), exact.Billionths(wide(rng))
		if got, want := exact.Share(part, total), slowShare(part, total); got != want {
			t.Fatalf("seed %d: Share(%d, %d) = %d, want %d", seed, int64(part), int64(total), int64(got), int64(want))
		}
	}
}

// TestShareFlipsADecision holds the margins of votes to their exact values: 0.8
// and 0.7 against 0.5 is a margin of exactly a half, and a thousand full votes
// do not overflow.
func TestShareFlipsADecision(t *testing.T) {
	for _, c := range []struct{ part, total, want exact.Billionths }{
		{800_000_000 + 700_000_000 - 500_000_000, 2_000_000_000, 500_000_000},
		{1, 3, 333_333_333}, {2, 3, 666_666_667}, {-2, 3, -666_666_667},
		{1000 * exact.One, 1000 * exact.One, exact.One}, {1, 2_000_000_000, 1}, {1, 2_000_000_001, 0},
		{5, 0, 0}, {5, -1, 0}, {math.MaxInt64, 1, math.MaxInt64}, {math.MinInt64, 1, -math.MaxInt64},
	} {
		if got := exact.Share(c.part, c.total); got != c.want {
			t.Errorf("Share(%d, %d) = %d, want %d", int64(c.part), int64(c.total), int64(got), int64(c.want))
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 10_000 {
		parts := make([]exact.Billionths, 1+rng.IntN(20))
		var total exact.Billionths
		for i := range parts {
			parts[i] = exact.Billionths(rng.Int64N(int64(exact.One) + 1))
			total += parts[i]
		}
		var sum exact.Billionths
		for _, p := range parts {
			sum += exact.Share(p, total)
		}
		if off := sum - exact.One; total > 0 && (off > 20 || off < -20) { // half a billionth each
			t.Fatalf("seed %d: the shares of %v add up to %v", seed, parts, sum)
		}
	}
}
