package guard

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRing compares a ring with the plain list it stands for, also where the limit
// changes and where an older version is kept.
func TestRing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 11))
	for range 200 {
		var ring ring[int]
		var want []int
		limit := 1 + r.IntN(9)
		for i := range 60 {
			if r.IntN(15) == 0 {
				limit = 1 + r.IntN(9)
			}
			old, oldItems := ring, slices.Clone(want)
			if r.IntN(3) == 0 {
				ring = ring.clone()
			} else {
				old, oldItems = ring, nil
			}
			*ring.next(limit) = i
			want = append(want, i)
			want = want[max(0, len(want)-limit):]
			if got := listOf(&ring); !slices.Equal(got, want) {
				t.Fatalf("limit %d: %v, want %v", limit, got, want)
			}
			if got := listOf(&old); oldItems != nil && !slices.Equal(got, oldItems) {
				t.Fatalf("the older version became %v, was %v", got, oldItems)
			}
		}
	}
}

func listOf(r *ring[int]) (items []int) {
	for i := range r.len() {
		items = append(items, *r.at(i))
	}
	return items
}
