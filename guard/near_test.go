package guard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
)

// TestSketch holds the estimate of similarity to the truth: over many random
// sets it decides well above and well below the threshold as counting does.
func TestSketch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	const limit = exact.Billionths(800_000_000)
	wrong, tries := 0, 0
	for range 4000 {
		n := 30 + r.IntN(40)
		a := make([]string, n)
		for i := range a {
			a[i] = fmt.Sprintf("w%d", r.IntN(1_000_000))
		}
		b := append([]string(nil), a...)
		for range r.IntN(n) {
			b[r.IntN(n)] = fmt.Sprintf("w%d", r.IntN(1_000_000))
		}
		j := jaccardOf(a, b)
		if j > 0.55 && j < 0.95 {
			continue // too near to the threshold to be certain
		}
		tries++
		r.Shuffle(n, func(i, k int) { b[i], b[k] = b[k], b[i] })
		if similar(sketch([]byte(strings.Join(a, " "))), sketch([]byte(`{"`+strings.Join(b, `","`)+`"}`)), limit) != (j >= 0.8) {
			wrong++
		}
	}
	if tries < 1000 || wrong*20 > tries {
		t.Errorf("%d of %d decisions are wrong", wrong, tries)
	}
	if empty := sketch([]byte("{} ,.")); similar(empty, empty, limit) {
		t.Error("two calls without a word are similar")
	}
}

func jaccardOf(a, b []string) float64 {
	set := map[string]int{}
	for _, w := range a {
		set[w] |= 1
	}
	for _, w := range b {
		set[w] |= 2
	}
	both := 0
	for _, in := range set {
		if in == 3 {
			both++
		}
	}
	return float64(both) / float64(len(set))
}
