package trust

import (
	"cmp"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
)

// A Pair is a probability that was stated before the truth was known, and whether
// the pick was right.
type Pair struct {
	P     exact.Billionths `json:"p"`
	Right bool             `json:"right"`
	Stops []PairAt         `json:"stops,omitempty"` // what stands in its place at thresholds of a promise, by falling Tau
}

// A PairAt is a Pair at the vote where asking would have stopped, had Tau been the
// threshold: see [Outcome.Stops].
type PairAt struct {
	Tau   exact.Billionths `json:"tau"`
	P     exact.Billionths `json:"p,omitempty"`
	Right bool             `json:"right,omitempty"`
}

// FrozenTau returns the least probability above which the error of these pairs
// is shown to be at most eps, except with probability delta, and false if none is.
// It tests from the most probable pairs on, more and more of them, and stops at
// the first failure, so the many thresholds need no correction (Clopper, Pearson
// 1934; Maurer, Hothorn, Lehmacher 1995). It holds for one look at the pairs.
func FrozenTau(pairs []Pair, eps, delta float64) (tau exact.Billionths, ok bool) {
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b Pair) int { return cmp.Compare(b.P, a.P) })
	n := len(sorted)
	wrong, seen := int64(0), 0
	for m := max(int(math.Ceil(math.Log(delta)/math.Log(1-eps))), (n+3)/4); m <= n; {
		for seen < n && (seen < m || sorted[seen].P == sorted[seen-1].P) {
			if !sorted[seen].Right {
				wrong++
			}
			seen++
		}
		if binomialCDF(wrong, int64(seen), eps) > delta {
			break
		}
		tau, ok = sorted[seen-1].P, true
		m = max(seen+1, int(math.Ceil(1.1*float64(seen))))
	}
	return tau, ok
}

// frozen is the state of a test by looks.
type frozen struct {
	looks int64
	tau   exact.Billionths
}

// look enters a pair, and looks at all of them when it is time: at look j with
// delta/(j(j+1)), so that all looks together keep delta.
func (e *riskEpoch) look(p Pair) {
	e.pairs = append(e.pairs[:len(e.pairs):len(e.pairs)], p)
	if e.eligible < lookFirst<<e.frozen.looks {
		return
	}
	e.frozen.looks++
	j := float64(e.frozen.looks)
	if tau, ok := FrozenTau(e.pairs, e.promise.MaxError.Float(), e.delta()/(j*(j+1))); ok {
		e.frozen.tau = max(1, tau)
	}
}
