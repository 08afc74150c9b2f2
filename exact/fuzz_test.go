package exact_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
)

// FuzzParseMoney: an amount that was read is printed exactly and read again.
func FuzzParseMoney(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		m, err := exact.ParseMoney(s)
		if err != nil {
			return
		}
		if again, err := exact.ParseMoney(m.String()); err != nil || again != m {
			t.Fatalf("ParseMoney(%q) = %d, which prints as %q and reads as %d (%v)", s, int64(m), m, int64(again), err)
		}
	})
}
