package trust_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// slowCDF sums the binomial probabilities.
func slowCDF(k, n int64, p float64) float64 {
	sum := 0.
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log(1-p))
	}
	return sum
}

// TestErrorBounds are published bounds, and that each bound is where the binomial
// probability of what was seen is the level.
func TestErrorBounds(t *testing.T) {
	for _, c := range []struct {
		wrong, n int64
		want     float64
	}{{0, 45, .04988}, {0, 22, .09937}, {5, 100, .09077}} {
		if got := trust.ErrorAbove(c.wrong, c.n, .9); !near(got, c.want, 5e-6) {
			t.Errorf("ErrorAbove(%d, %d) = %.6f, want %v", c.wrong, c.n, got, c.want)
		}
	}
	for n := int64(1); n <= 60; n += 7 {
		for k := range n + 1 {
			if up := trust.ErrorAbove(k, n, .9); k < n && !near(slowCDF(k, n, up), .1, 1e-9) {
				t.Errorf("the upper bound of %d of %d is %v, at a level of %v", k, n, up, slowCDF(k, n, up))
			}
			if down := trust.ErrorBelow(k, n, .95); k > 0 && !near(1-slowCDF(k-1, n, down), .05, 1e-9) {
				t.Errorf("the lower bound of %d of %d is %v, at a level of %v", k, n, down, 1-slowCDF(k-1, n, down))
			}
		}
	}
	for _, c := range [][2]float64{{trust.ErrorAbove(0, 0, .9), 1}, {trust.ErrorAbove(3, 3, .9), 1}, {trust.ErrorBelow(0, 9, .9), 0}, {trust.ErrorBelow(0, 0, .9), 0}} {
		if c[0] != c[1] {
			t.Errorf("an edge is %v, want %v", c[0], c[1])
		}
	}
	if low, high := trust.ErrorBelow(50_000, 1_000_000, .95), trust.ErrorAbove(50_000, 1_000_000, .95); !near(low, .0496, 1e-4) || !near(high, .0504, 1e-4) {
		t.Errorf("of a million the bounds are %v and %v", low, high)
	}
}

// pairs draws calibrated pairs: P is uniform, and the pick right with that
// probability.
func pairs(d *trust.Draw, n int, least float64) []trust.Pair {
	list := make([]trust.Pair, n)
	for i := range list {
		p := least + (1-least)*d.Float()
		list[i] = trust.Pair{P: exact.Billionths(p * 1e9), Right: d.Float() < p}
	}
	return list
}

// TestFrozenTauKeepsItsPromise: over many sets of pairs, the true error above tau
// exceeds the promise no more often than delta.
func TestFrozenTauKeepsItsPromise(t *testing.T) {
	const runs, eps, delta = 1500, .1, .1
	found, broken := 0, 0
	for run := range runs {
		tau, ok := trust.FrozenTau(pairs(trust.NewDraw("frozen", fmt.Sprint(run)), 300, .5), eps, delta)
		if !ok {
			continue
		}
		found++
		if (1-tau.Float())/2 > eps { // the mean error above tau
			broken++
		}
	}
	t.Logf("%d of %d found a tau, %d of them broke the promise", found, runs, broken)
	if standardErrors(broken, runs, delta) > 4 || found < runs/5 {
		t.Errorf("%d of %d found a tau, %d of them broke the promise", found, runs, broken)
	}
}

func TestFrozenTauEdges(t *testing.T) {
	same := make([]trust.Pair, 22)
	for i := range same {
		same[i] = trust.Pair{P: 900_000_000, Right: true}
	}
	if tau, ok := trust.FrozenTau(same, .1, .1); !ok || tau != 900_000_000 {
		t.Errorf("22 right pairs establish %s, %v", tau, ok)
	}
	if _, ok := trust.FrozenTau(same[:21], .1, .1); ok {
		t.Error("21 right pairs are enough")
	}
	same[3].Right = false // ties count together
	if _, ok := trust.FrozenTau(same, .1, .1); ok {
		t.Error("a tie was cut where it suits")
	}
	if _, ok := trust.FrozenTau(nil, .1, .1); ok {
		t.Error("no pair establishes a tau")
	}
}
