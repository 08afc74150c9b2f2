package trust_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// TestEValueVectors are published values of the e-process.
func TestEValueVectors(t *testing.T) {
	for _, c := range []struct {
		k, n     int64
		p0, want float64
	}{{1, 1, .85, 1.104118}, {0, 1, .85, .41}, {20, 20, .85, 9.924423}, {57, 60, .85, 9.961291}, {0, 0, .9, 1}} {
		if got := trust.EValue(c.k, c.n, c.p0); !near(got, c.want, 5e-7) {
			t.Errorf("EValue(%d, %d, %v) = %.7f, want %v", c.k, c.n, c.p0, got, c.want)
		}
	}
	for p0, want := range map[float64]int64{.8: 19, .85: 26, .9: 40, .95: 81, .98: 206} {
		n := int64(0)
		for trust.EValue(n, n, p0) < 20 {
			n++
		}
		if n != want {
			t.Errorf("at %v it takes %d successes in a row to reach 20, want %d", p0, n, want)
		}
	}
	for _, c := range []struct {
		k, n int64
		want float64
	}{{20, 20, .8144}, {95, 100, .8656}, {0, 5, 0}, {0, 0, 0}} {
		if got := trust.LowerBound(c.k, c.n, .05).Float(); !near(got, c.want, 5e-5) {
			t.Errorf("LowerBound(%d, %d) = %.5f, want %v", c.k, c.n, got, c.want)
		}
	}
	for _, bad := range []float64{trust.EValue(2, 1, .9), trust.EValue(-1, 1, .9), trust.EValue(1, 1, 0), trust.EValue(1, 1, 1), trust.EValue(1, 1, math.NaN())} {
		if bad != 0 {
			t.Errorf("nonsense is evidence: %v", bad)
		}
	}
}

// TestEValueIsAMartingale: what one more round is expected to make of the value of
// somebody who agrees in a share of exactly p0 is that value.
func TestEValueIsAMartingale(t *testing.T) {
	for _, p0 := range []float64{.5, .8, .9, .99} {
		for n := range int64(40) {
			for k := range n + 1 {
				now := trust.EValue(k, n, p0)
				if next := p0*trust.EValue(k+1, n+1, p0) + (1-p0)*trust.EValue(k, n+1, p0); !near(next/now, 1, 1e-9) {
					t.Fatalf("after %d of %d at %v the value goes from %v to %v", k, n, p0, now, next)
				}
			}
		}
	}
}

// standardErrors returns how many standard errors a count of n lies above p n.
func standardErrors(count, n int, p float64) float64 {
	return (float64(count) - p*float64(n)) / math.Sqrt(p*(1-p)*float64(n))
}

// TestPromotionRules is the table of false collapse: of 2000 specialists, looked at
// after each of 200 outcomes, how many the rule promotes.
func TestPromotionRules(t *testing.T) {
	const runs, horizon, target = 2000, 200, .85
	for _, c := range []struct {
		truth, least, most float64
		median             int
	}{{.7, 0, .002, 0}, {.8, 0, .01, 0}, {.84, 0, .05, 0}, {.85, 0, .05, 0}, {.92, .65, 1, 90}, {.97, .99, 1, 42}} {
		promoted, hasty := []int{}, 0
		for run := range runs {
			d := trust.NewDraw("promotion", fmt.Sprint(c.truth), fmt.Sprint(run))
			k, at, was := int64(0), 0, false
			for n := int64(1); n <= horizon; n++ {
				if d.Float() < c.truth {
					k++
				}
				if at == 0 && trust.EValue(k, n, target) >= 20 {
					at = int(n)
				}
				was = was || n >= 5 && float64(k) >= .8*float64(n)
			}
			if at > 0 {
				promoted = append(promoted, at)
			}
			if was {
				hasty++
			}
		}
		share := float64(len(promoted)) / runs
		slices.Sort(promoted)
		t.Logf("true share %v: %.4f promoted, by \"0.8 of 5\" %.3f", c.truth, share, float64(hasty)/runs)
		if share < c.least || share > c.most {
			t.Errorf("at a true share of %v, %.4f are promoted, want %v to %v", c.truth, share, c.least, c.most)
		}
		if c.median > 0 && !near(float64(promoted[len(promoted)/2]), float64(c.median), .1*float64(c.median)) {
			t.Errorf("at a true share of %v the median promotion comes after %d outcomes, want about %d", c.truth, promoted[len(promoted)/2], c.median)
		}
		if c.truth <= target && standardErrors(len(promoted), runs, .05) > 4 {
			t.Errorf("of those who do not deserve it, %d of %d are promoted", len(promoted), runs)
		}
	}
}

// TestDetector: false alarms are as rare as promised, and a fall is found in about
// as many audits as published.
func TestDetector(t *testing.T) {
	const p0 = .85
	delay := func(truth float64, most, run int) int {
		d := trust.NewDraw("detector", fmt.Sprint(truth), fmt.Sprint(run))
		var det trust.Detector
		for n := 1; n <= most; n++ {
			if det = det.Add(d.Float() < truth, p0); det.Alarm() {
				return n
			}
		}
		return most
	}
	median := func(truth float64) int {
		var list []int
		for run := range 400 {
			list = append(list, delay(truth, 20_000, run))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	for truth, want := range map[float64]int{.75: 33, .6: 14} {
		if got := median(truth); !near(float64(got), float64(want), .25*float64(want)+1) {
			t.Errorf("a fall to %v is found after %d audits in the median, want about %d", truth, got, want)
		}
	}
	if got := median(.95); got < 5000 {
		t.Errorf("at .95 a false alarm comes after %d audits in the median", got)
	}
	sum, square := 0., 0.
	const runs = 1000
	for run := range runs { // at p0 itself the mean is 100 or more
		n := float64(delay(p0, 20_000, run))
		sum, square = sum+n, square+n*n
	}
	mean := sum / runs
	se := math.Sqrt((square/runs - mean*mean) / runs)
	t.Logf("mean run length at the target: %.0f", mean)
	if mean+4*se < trust.AlarmAt {
		t.Errorf("at the target a false alarm comes after %.0f audits on average", mean)
	}
}

func TestDetectorRemembersWhenItBegan(t *testing.T) {
	var d trust.Detector
	for range 50 {
		d = d.Add(true, .9)
	}
	if before := d.Since; d.N != 50 || d.Value() > 15 || d.Alarm() || before > 50 {
		t.Errorf("after 50 right audits: %+v", d)
	}
	for range 6 {
		d = d.Add(false, .9)
	}
	if !d.Alarm() || d.Since < 6 {
		t.Errorf("after 6 wrong ones: %+v, value %v", d, d.Value())
	}
}

func TestAuditPlan(t *testing.T) {
	plan := trust.AuditPlan{Rate: 50_000_000, NewcomerRate: 250_000_000, Newcomer: 40}
	var calm, worried trust.Detector
	for worried.Value() <= 10 {
		worried = worried.Add(false, .9)
	}
	for _, c := range []struct {
		decisions int64
		d         trust.Detector
		want      exact.Billionths
	}{{0, calm, 250_000_000}, {39, calm, 250_000_000}, {40, calm, 50_000_000}, {40, worried, 250_000_000}, {0, worried, exact.One}} {
		if got := plan.Probability(c.decisions, c.d); got != c.want {
			t.Errorf("decision %d at %v is audited with probability %s, want %s", c.decisions, c.d.Value(), got, c.want)
		}
	}
	a, b := trust.NewSecretDraw([]byte("one"), "s", "r", "audit"), trust.NewSecretDraw([]byte("two"), "s", "r", "audit")
	if a.Uint64() == b.Uint64() {
		t.Error("the draw does not depend on the secret")
	}
	n := 0
	for i := range 10_000 {
		if trust.NewSecretDraw([]byte("secret"), "s", fmt.Sprint(i), "audit").Happens(50_000_000) {
			n++
		}
	}
	if math.Abs(standardErrors(n, 10_000, .05)) > 4 {
		t.Errorf("%d of 10000 rounds are audited at .05", n)
	}
}
