package trust_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestClopperPearson are published intervals at 95 % (R. G. Newcombe, "Two-sided confidence
// intervals for the single proportion", Statistics in Medicine 17, 1998, method 5), and the
// edges.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct{ right, n, low, high float64 }{
		{81, 263, .2527, .3676}, {15, 148, .0578, .1617}, {0, 20, 0, .1684}, {1, 29, .0009, .1776},
		{20, 20, .8316, 1}, {0, 0, 0, 1}, {1e-17, 20, 0, .1684}, {20 - 1e-12, 20, .8316, 1},
	} {
		if low, high := trust.ClopperPearson(c.right, c.n, .95); !near(low, c.low, 5e-5) || !near(high, c.high, 5e-5) {
			t.Errorf("%v of %v: %.4f to %.4f, want %v to %v", c.right, c.n, low, high, c.low, c.high)
		}
	}
	for n := range int64(40) {
		for k := range n + 1 {
			low, high := trust.ClopperPearson(float64(k), float64(n), .9)
			if !near(low, trust.ErrorBelow(k, n, .95), 1e-12) || !near(high, trust.ErrorAbove(k, n, .95), 1e-12) {
				t.Errorf("%d of %d: %v to %v, and one-sided %v to %v", k, n, low, high, trust.ErrorBelow(k, n, .95), trust.ErrorAbove(k, n, .95))
			}
		}
	}
}

// stated is a round that a human looked at with a probability.
func stated(p float64, right bool, prob float64) *trust.Outcome {
	o := judged(p, right, promise(.1))
	o.SamplingProb = exact.Billionths(prob * 1e9)
	return &o
}

// TestCalibration is worked out by hand: of the upper bin three looks, two of which stand for
// four rounds each, and of the middle one a look on its lower edge.
func TestCalibration(t *testing.T) {
	var c trust.Calibration
	wrong := stated(.99, false, .25)
	for _, o := range []*trust.Outcome{stated(.95, true, 1), wrong, stated(.91, true, .25), stated(.5, true, 0)} {
		c.Add(o)
	}
	unasked, unsaid, only := stated(.9, false, 1), stated(0, false, 1), stated(.9, true, 1)
	unasked.Unasked, only.Options = true, []string{"yes"}
	for _, o := range []*trust.Outcome{unasked, unsaid, only} {
		c.Add(o)
	}
	r := c.Report()
	low, high := trust.ClopperPearson(5./9*81/33, 81./33, .9)
	if r.Looks != 4 || r.Enough || *r.ECE != 405_000_000 || len(r.Bins) != trust.Bins {
		t.Errorf("the calibration is %s", asText(t, r))
	}
	if b := r.Bins[9]; b.N != 3 || b.From != 900_000_000 || b.To != exact.One || *b.P != 950_000_000 || *b.Right != 555_555_556 || !near(b.Low.Float(), low, 1e-9) || !near(b.High.Float(), high, 1e-9) {
		t.Errorf("the upper bin is %s, want %v to %v", asText(t, b), low, high)
	}
	if b := r.Bins[5]; b.N != 1 || *b.P != exact.One/2 || *b.Right != exact.One || !near(b.Low.Float(), .05, 1e-9) || *b.High != exact.One {
		t.Errorf("the middle bin is %s", asText(t, b))
	}
	if b := r.Bins[4]; b.N != 0 || b.P != nil || b.Low != nil {
		t.Errorf("an empty bin is %s", asText(t, b))
	}
	c.Retract(wrong)
	c.Add(stated(1, true, 1))
	if b := c.Report().Bins[9]; b.N != 3 || *b.Right != exact.One || *b.High != exact.One {
		t.Errorf("without the wrong one it is %s", asText(t, b))
	}
	var d trust.Calibration
	for range trust.EnoughLooks - 4 {
		d.Add(stated(.2, false, 1))
	}
	if before := c.Report(); c.Plus(d).Report().Looks != 30 || !c.Plus(d).Report().Enough || c.Report().Looks != before.Looks {
		t.Error("a sum of 30 looks is not enough, or changes its parts")
	}
	if r := new(trust.Calibration).Report(); r.Looks != 0 || r.ECE != nil || asText(t, r.Bins[0]) != `{"from":0,"to":0.1,"n":0}` {
		t.Errorf("of nothing it is %s", asText(t, r))
	}
}
