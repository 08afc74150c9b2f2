package trust_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestManyOptions: where options are many, what is not looked at, because the like of it
// was, or because it cannot be enough, changes nothing.
func TestManyOptions(t *testing.T) {
	lengths := map[int]int{}
	for _, k := range []int{3, 8, 12, 40} {
		d, l := trust.NewDraw("many options", fmt.Sprint(k)), trust.New()
		for i := range 120 {
			add(t, l, outcome(crowd(d, 8, k)))
			if i%5 > 0 {
				continue
			}
			q, _ := crowd(d, 8, k)
			q.Votes, q.Policy.NoStacking = q.Votes[:i%4], i < 60 || i%2 == 0
			for _, tau := range []exact.Billionths{400_000_000, 800_000_000, 950_000_000, 990_000_000} {
				fast, slow := l.Shortest(q, openVoters(i%4, 8, func(i int) exact.Money { return exact.Money(i % 3) }), trust.Asking{Tau: tau})
				if lengths[fast]++; fast != slow {
					t.Fatalf("%d options, %d outcomes, until %v: %d are asked, want %d", k, i+1, tau, fast, slow)
				}
			}
		}
	}
	if len(lengths) < 6 {
		t.Errorf("the waves are all alike: %v", lengths)
	}
}

// TestCeiling: the bound is never below the probability, and not far above it where the
// other options are alike.
func TestCeiling(t *testing.T) {
	d := trust.NewDraw("ceiling")
	for i := range 2000 {
		scores := make([]float64, 2+i%30)
		for j := range scores {
			scores[j] = 40 * (d.Float() - .5)
		}
		bound, p := trust.Ceiling(scores, i%len(scores), d.Float())
		if bound < p-1e-12 || bound > 1 || math.IsNaN(bound) {
			t.Fatalf("of %v the bound is %v, below %v", scores, bound, p)
		}
	}
	if bound, p := trust.Ceiling([]float64{3, 1, 0, 0, 0, 0, 0, 0}, 0, 1); bound > p+1e-12 {
		t.Errorf("of equal others the bound is %v, want %v", bound, p)
	}
}
