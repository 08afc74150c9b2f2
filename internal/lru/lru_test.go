package lru_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/lru"
)

// TestRemembersTheLastUsed: whatever is put, found and deleted, the n keys that were used
// last have the value they had last, and there are never more than 2n.
func TestRemembersTheLastUsed(t *testing.T) {
	const n = 5
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	c, want, used := lru.New[int, int](n), map[int]int{}, []int(nil)
	for step := range 20_000 {
		k := rng.IntN(20)
		forget := func(other int) bool { return other == k }
		switch rng.IntN(5) {
		case 0:
			c.Delete(k)
			delete(want, k)
			if i := slices.IndexFunc(used, forget); i >= 0 {
				used[i] = -1 // counts among those that were used
			}
		case 1, 2:
			c.Put(k, step)
			want[k] = step
			used = append(slices.DeleteFunc(used, forget), k)
		default:
			recent := slices.Contains(used[max(0, len(used)-n):], k)
			v, ok := c.Get(k)
			if recent && !ok || ok && v != want[k] {
				t.Fatalf("seed %d, step %d: Get(%d) = %d, %v, want %d; it was used among the last: %v", seed, step, k, v, ok, want[k], recent)
			}
			if ok {
				used = append(slices.DeleteFunc(used, forget), k)
			}
		}
		if held := len(maps.Collect(c.All())); held > 2*n {
			t.Fatalf("seed %d, step %d: %d are held", seed, step, held)
		}
	}
}
