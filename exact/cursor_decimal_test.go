package exact_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
)

// FuzzDecimal checks that what is read quickly is what is read exactly.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0.5", "1.000000001", "999", "1e3", "1.", ".5", "-", "123456789012345678901234567890"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := exact.Decimal(s)
		if !ok || !exact.IsNumber(s) {
			return
		}
		m, err := exact.ParseMoney(s)
		if err == nil && int64(m) != v*1000 { // larger amounts are no money
			t.Errorf("%q is %d billionths, want %d pico", s, v, m)
		}
	})
}
