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

// TestGramCounter compares counting with a map.
func TestGramCounter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 12))
	var c gramCounter
	for range 300 {
		pool := 1 + r.IntN(500)
		draw := func() []uint64 {
			grams := make([]uint64, r.IntN(400))
			for i := range grams {
				grams[i] = uint64(r.IntN(pool)) * prime1
			}
			return grams
		}
		own := draw()
		counts := map[uint64]int64{}
		c.reset(len(own))
		for _, g := range own {
			counts[g]++
			if got := c.add(g); got != counts[g] {
				t.Fatalf("an n-gram was counted %d times, want %d", got, counts[g])
			}
		}
		for range 3 {
			most := int64(0)
			other := draw()
			for _, g := range other {
				if counts[g] > 0 {
					counts[g]++
					most = max(most, counts[g])
				}
			}
			if got := c.more(other); got != most {
				t.Fatalf("the most is %d, want %d", got, most)
			}
		}
	}
}
