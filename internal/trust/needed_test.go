package trust_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestNeeded are the numbers that docs/decisions.md shows.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		eps, confidence exact.Billionths
		want            int64
	}{{200_000_000, 900_000_000, 28}, {200_000_000, 950_000_000, 32}, {100_000_000, 900_000_000, 45}, {100_000_000, 950_000_000, 53}, {50_000_000, 900_000_000, 78}, {50_000_000, 950_000_000, 94}, {20_000_000, 900_000_000, 177}, {20_000_000, 950_000_000, 219}, {10_000_000, 900_000_000, 342}, {10_000_000, 950_000_000, 428}, {2_000_000, 900_000_000, 1663}} {
		if got := trust.Needed(trust.Promise{MaxError: c.eps, Confidence: c.confidence}); got != c.want {
			t.Errorf("errors of %s with confidence %s take %d decisions, want %d", c.eps, c.confidence, got, c.want)
		}
	}
	looks := trust.Promise{MaxError: 50_000_000, Confidence: 900_000_000, ClopperPearson: true}
	if got := trust.Needed(looks); got != 110 { // .95^50 > .05, .95^100 < .1/6
		t.Errorf("by looks it takes %d decisions", got)
	}
	l := trust.New()
	for range 10 {
		add(t, l, outcome(ask(yesNo, 0), 0))
	}
	for n := int64(1); ; n++ {
		add(t, l, judged(.99, true, looks))
		if r := risk(t, l); r.Tau > 0 {
			if n != 100 {
				t.Errorf("by looks it took %d pairs", n)
			}
			break
		} else if r.Needs != 50-n && r.Needs != 100-n {
			t.Fatalf("after %d pairs it needs %d more", n, r.Needs)
		}
	}
}
