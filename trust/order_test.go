package trust_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/trust"
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
