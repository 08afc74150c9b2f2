package text

import (
	"math/rand/v2"
	"testing"
)

// TestGramCounter compares counting with a map.
func TestGramCounter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 12))
	var c GramCounter
	for range 300 {
		pool := 1 + r.IntN(500)
		draw := func() []uint64 {
			grams := make([]uint64, r.IntN(400))
			for i := range grams {
				grams[i] = uint64(r.IntN(pool)) * Prime1
			}
			return grams
		}
		own := draw()
		counts := map[uint64]int64{}
		c.Reset(len(own))
		for _, g := range own {
			counts[g]++
			if got := c.Add(g); got != counts[g] {
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
			if got := c.More(other); got != most {
				t.Fatalf("the most is %d, want %d", got, most)
			}
		}
	}
}
