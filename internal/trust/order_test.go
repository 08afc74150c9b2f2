package trust_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// TestDrawIsPCG compares the stream with the standard library's.
func TestDrawIsPCG(t *testing.T) {
	h := sha256.New()
	for _, p := range []string{"session", "", "7"} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(p)))
		h.Write([]byte(p))
	}
	sum := h.Sum(nil)
	want := rand.NewPCG(binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:]))
	got := trust.NewDraw("session", "", "7")
	for i := range 1000 {
		if a, b := got.Uint64(), want.Uint64(); a != b {
			t.Fatalf("number %d is %d, want %d", i, a, b)
		}
	}
	if trust.NewDraw("ab", "c").Uint64() == trust.NewDraw("a", "bc").Uint64() {
		t.Error("seeds run into each other")
	}
}

// TestOptionOrder: within a model group every option takes every place, two
// options alternate, and over rounds each order comes up about as often.
func TestOptionOrder(t *testing.T) {
	for k := range 6 {
		for place := range k {
			var seen []int
			for rank := range k {
				o := trust.OptionOrder("s", "r", "salt", k, rank)
				if s := slices.Sorted(slices.Values(o)); len(s) != k || s[0] != 0 || s[k-1] != k-1 {
					t.Fatalf("%v is no permutation", o)
				}
				seen = append(seen, o[place])
			}
			slices.Sort(seen)
			if len(slices.Compact(seen)) != k {
				t.Errorf("of %d options only %v ever stand at %d", k, seen, place)
			}
		}
	}
	count := map[string]int{}
	const rounds = 6000
	for i := range rounds {
		count[fmt.Sprint(trust.OptionOrder("s", fmt.Sprint(i), "", 3, 0))]++
	}
	for order, n := range count { // 4 standard errors of 1/6
		if n < 885 || n > 1115 {
			t.Errorf("order %s came up %d times of %d", order, n, rounds)
		}
	}
	if len(count) != 6 || len(trust.OptionOrder("s", "r", "", -1, -1)) != 0 {
		t.Errorf("there are %d orders of three", len(count))
	}
}

// TestOrderKey: keys are equal for equal orders only, whatever is in the names, and those
// of names without control characters are what they always were, since outcomes hold them.
func TestOrderKey(t *testing.T) {
	if got := trust.OrderKey([]string{"yes", "no"}); got != "yes\x00no" {
		t.Errorf("the key is %q: that of stored outcomes was %q", got, "yes\x00no")
	}
	names := []string{"", "a", "b", "a\x00b", "\x00", "\x01", "\x01\x02", "\x01\x03", "b\x01"}
	orders := [][]string{nil}
	for _, a := range names {
		orders = append(orders, []string{a})
		for _, b := range names {
			orders = append(orders, []string{a, b})
			for _, c := range names {
				orders = append(orders, []string{a, b, c})
			}
		}
	}
	seen := map[string][]string{}
	for _, order := range orders {
		before := slices.Clone(order)
		key := trust.OrderKey(order)
		if other, twice := seen[key]; twice {
			t.Errorf("%q and %q have the key %q", other, order, key)
		}
		if seen[key] = order; !slices.Equal(order, before) {
			t.Errorf("%q was changed to %q", before, order)
		}
	}
}
