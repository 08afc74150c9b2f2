package trust_test

import (
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestThresholdItself: a probability that equals a threshold has reached it.
func TestThresholdItself(t *testing.T) {
	l := trust.New()
	for range 100 {
		add(t, l, judged(.6, true, promise(.1))) // the lowest of the eight
	}
	if r := risk(t, l); r.State != trust.Met || r.Tau != 600_000_000 {
		t.Errorf("100 right pairs at .6 leave %s, tau %s", r.State, r.Tau)
	}
}

// TestAuditsCountAtEveryThreshold: a decision of the engine that an audit looked at
// is evidence at each threshold that its probability reaches, as a ruling is.
func TestAuditsCountAtEveryThreshold(t *testing.T) {
	rulings, audits := trust.New(), trust.New()
	for i := range 80 {
		o := judged(.75+.2*float64(i%2), i%13 > 0, promise(.1))
		add(t, rulings, o)
		if i >= 40 {
			o.Automatic, o.Source, o.SamplingProb = true, trust.Audited, 250_000_000
		}
		add(t, audits, o)
	}
	a, b := risk(t, rulings), risk(t, audits)
	if b.Audits != 40 || a.Eligible != b.Eligible || a.Tau != b.Tau || a.Needs != b.Needs {
		t.Errorf("by rulings %+v, half of them audits %+v", a, b)
	}
}

// TestAlarmItself: 100 is an alarm, and less is none.
func TestAlarmItself(t *testing.T) {
	d := trust.Detector{M: [4]float64{100, 100, 100, 100}}
	if !d.Alarm() {
		t.Error("100 is no alarm")
	}
	if d.M[0] = 99.9; d.Alarm() {
		t.Error("99.975 is an alarm")
	}
}

// TestChangePoint: the change is thought to have begun where the value was 1 the
// last time.
func TestChangePoint(t *testing.T) {
	d := trust.Detector{}.Add(true, .85)
	if d.Value() != .75 || d.Since != 0 {
		t.Errorf("after one right: %v, since %d", d.Value(), d.Since)
	}
	if d = d.Add(true, .85); d.Value() < 1.3 || d.Value() > 1.4 || d.Since != 1 || d.N != 2 {
		t.Errorf("after two: %v, since %d of %d", d.Value(), d.Since, d.N)
	}
}

// TestFrozenTauFirstStep: the bound itself passes, the first step takes a quarter of
// the pairs, rounded up, and pairs of one probability go together.
func TestFrozenTauFirstStep(t *testing.T) {
	pairs := func(right ...bool) (list []trust.Pair) {
		for i, r := range right {
			list = append(list, trust.Pair{P: exact.Billionths(900_000_000 - 100_000_000*i), Right: r})
		}
		return list
	}
	if tau, ok := trust.FrozenTau(pairs(true), .5, .5); !ok || tau != 900_000_000 {
		t.Errorf("one right of one at delta itself: %s, %t", tau, ok)
	}
	if tau, ok := trust.FrozenTau(pairs(false, true, true, true, true), .9, .5); !ok || tau != 500_000_000 {
		t.Errorf("of five the first two are taken together: %s, %t", tau, ok)
	}
	same := pairs(true, true, false)
	same[2].P = same[1].P
	if tau, ok := trust.FrozenTau(same, .5, .25); ok {
		t.Errorf("the third has the probability of the second, and is wrong: %s", tau)
	}
}

// temperatures returns those of the experts in a judgement, but for S.
func temperatures(j trust.Judgement) map[string]exact.Billionths {
	list := map[string]exact.Billionths{}
	for _, e := range j.Experts {
		if e.Name != "S" {
			list[e.Name] = e.G
		}
	}
	return list
}

// TestTemperatureOfFewVotes: a single vote stands as it is, as many as the fit has
// seen are cooled as it says, and scores that were to be sharpened stay so for any
// number.
func TestTemperatureOfFewVotes(t *testing.T) {
	l := trust.New()
	for range 300 { // two of three are always right
		add(t, l, outcome(ask(yesNo, 0, 0, 1), 0), outcome(ask(yesNo, 1, 1, 0), 1))
	}
	q := ask(yesNo, 0, 0, 1)
	full := temperatures(l.Judge(q))
	if full["L4"] >= exact.One || full["V"] <= exact.One {
		t.Fatalf("the temperatures are %v", full)
	}
	q.Partial = true
	for name, g := range temperatures(l.Judge(q)) {
		if g < full[name]-2 || g > full[name]+2 {
			t.Errorf("all three votes: %s is at %s, and at %s as part of a round", name, full[name], g)
		}
	}
	q.Votes = q.Votes[:1]
	for name, g := range temperatures(l.Judge(q)) {
		if full[name] < exact.One && g != exact.One || full[name] >= exact.One && g != full[name] {
			t.Errorf("one vote of three: %s is at %s, all at %s", name, g, full[name])
		}
	}
}
