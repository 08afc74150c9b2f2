package trust_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// TestTallyOf turns scores round, knowing only a later tally.
func TestTallyOf(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	same := 0
	for range 2000 {
		n := 1 + rng.Int64N(400)
		k := rng.Int64N(n + 1)
		more := rng.Int64N(50)
		limit := trust.Tally{Matching: k + rng.Int64N(more+1), Total: n + more}
		limit.Matching = min(limit.Matching, k+more)
		got, ok := trust.TallyOf(trust.Score(k, n), limit)
		switch {
		case k == 0:
			if ok {
				t.Fatalf("seed %d: 0 of %d is said to be %+v", seed, n, got)
			}
			continue
		case !ok || got.Score() != trust.Score(k, n) || got.Total > limit.Total || got.Matching > limit.Matching:
			t.Fatalf("seed %d: %d of %d, later %+v, is said to be %+v, %t", seed, k, n, limit, got, ok)
		}
		if got.Matching == k && got.Total == n {
			same++
		}
	}
	if same < 1950 {
		t.Errorf("seed %d: only %d tallies were found again", seed, same)
	}
	if got, ok := trust.TallyOf(0, trust.Tally{}); !ok || got != (trust.Tally{}) {
		t.Errorf("a score of 0 without comparisons is %+v, %t", got, ok)
	}
	if got, ok := trust.TallyOf(123, trust.Tally{Matching: 5, Total: 9}); ok {
		t.Errorf("a score that no tally has is %+v", got)
	}
}
