package trust_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestNeedsCountsDown has a flawless engine tested: the number of human decisions
// that are said to be needed falls by one with each, and at none the promise is met.
func TestNeedsCountsDown(t *testing.T) {
	for _, p := range []trust.Promise{trust.DefaultPromise(), {MaxError: 200_000_000, Confidence: 800_000_000}, {MaxError: 10_000_000, Confidence: 990_000_000, PerState: true, Scopes: 3},
		{MaxError: 50_000_000, Confidence: 900_000_000, ClopperPearson: true}} {
		l := trust.New()
		left := l.Untested("m", p).Needs
		if left != trust.Needed(p) {
			t.Errorf("%+v: %d are needed at first, or %d", p, left, trust.Needed(p))
		}
		for n := int64(0); left > 0; n++ {
			o := trust.Outcome{Machine: "m", State: "s", Options: []string{"x", "y"}, Truth: "x", Source: trust.Forced, Promise: &p, P: exact.One, Pick: "x", N: n}
			if err := l.Add(o); err != nil {
				t.Fatal(err)
			}
			r := l.Risks("m")[0]
			if left--; r.Needs != left || (r.State == trust.Met) != (left == 0) || (r.Tau > 0) != (left == 0) {
				t.Fatalf("%+v, after %d: %d are needed, want %d, and it is %s", p, n+1, r.Needs, left, r.State)
			}
		}
	}
}
