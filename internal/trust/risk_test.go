package trust_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// judged returns an outcome of which only the stated probability and the pick
// count: nobody proposed.
func judged(p float64, right bool, promise trust.Promise) trust.Outcome {
	o := trust.Outcome{
		Machine: "desk", State: "open", Options: yesNo, Truth: "yes", Source: trust.Forced, Blind: true,
		P: exact.Billionths(p * 1e9), Pick: "yes", N: 50, Promise: &promise, PolicyDigest: "p",
	}
	if !right {
		o.Truth = "no"
	}
	return o
}

func promise(eps float64) trust.Promise {
	return trust.Promise{MaxError: exact.Billionths(eps * 1e9), Confidence: 900_000_000}
}

func risk(t *testing.T, l *trust.Ledger) trust.RiskReport {
	t.Helper()
	list := l.Risks("desk")
	if len(list) != 1 {
		t.Fatalf("there are %d promises", len(list))
	}
	return list[0]
}

// TestPromiseIsEstablished: three pairs choose the threshold, and then it takes as
// many right ones as the e-process needs.
func TestPromiseIsEstablished(t *testing.T) {
	l := trust.New()
	want := trust.Needed(promise(.1)) - 10 // pairs count from ten outcomes on
	for n := int64(1); ; n++ {
		add(t, l, judged(.99, true, promise(.1)))
		r := risk(t, l)
		if r.Tau == 0 && (r.State != trust.Collecting || n+r.Needs < want) {
			t.Fatalf("after %d pairs: %+v", n, r)
		}
		if r.Tau > 0 {
			if n != want || r.Tau != 950_000_000 || r.State != trust.Met {
				// all thresholds saw the same pairs, none of which says anything of those below
				t.Fatalf("established after %d pairs, want %d: %+v", n, want, r)
			}
			break
		}
	}
	q := ask(yesNo, 0, 1)
	q.State = "closed" // of which nothing is known
	q.PolicyDigest, q.Policy.Promise = "p", new(promise(.1))
	if j := l.Judge(q); j.Risk.Tau != 950_000_000 || j.Code != trust.BelowTau || !j.Calibrated {
		t.Errorf("a judgement is %+v, %s", j.Risk, j.Code)
	}
	q.PolicyDigest = "another"
	if j := l.Judge(q); j.Risk.Tau != 0 || j.Code != trust.RiskNotEstablished || j.Calibrated {
		t.Errorf("under another policy it is %+v, %s", j.Risk, j.Code)
	}
	q.PolicyDigest, q.Policy.Promise = "p", new(promise(.05))
	if j := l.Judge(q); j.Risk.Tau != 0 {
		t.Errorf("under another promise it is %+v", j.Risk)
	}
	changed := judged(.99, true, promise(.1))
	changed.PolicyDigest = "another"
	add(t, l, changed)
	if r := risk(t, l); r.Tau != 0 || r.Epoch != 2 || r.Eligible != 1 {
		t.Errorf("a change of policy leaves %+v", r)
	}
}

func TestPairsThatDoNotCount(t *testing.T) {
	l := trust.New()
	early, unasked, none := judged(.99, true, promise(.1)), judged(.99, false, promise(.1)), judged(.99, true, promise(.1))
	early.N = 9
	unasked.Unasked, unasked.Automatic = true, true
	none.Pick = ""
	add(t, l, early, unasked, none)
	if r := risk(t, l); r.Eligible != 0 || r.Overruled != 1 || r.Audits != 0 || r.Detector == 0 {
		t.Errorf("they leave %+v", r)
	}
}

// TestNoQuorumIsNoPair (C5.1): a round that too few answered is no pair of a promise,
// neither live nor adopted; it teaches all the same.
func TestNoQuorumIsNoPair(t *testing.T) {
	l := trust.New()
	short, full := judged(.99, true, promise(.1)), judged(.99, true, promise(.1))
	short.NoQuorum = true
	add(t, l, short)
	if r := risk(t, l); r.Eligible != 0 {
		t.Errorf("it leaves %+v", r)
	}
	if n := l.N(short.Machine); n != 1 {
		t.Errorf("%d outcomes are known", n)
	}
	var seed trust.Seed
	seed.Add(&short)
	seed.Add(&full)
	if n := len(seed.Pairs()); n != 1 {
		t.Errorf("%d pairs are adopted", n)
	}
	text, err := short.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := trust.DecodeOutcome(text); err != nil || !back.NoQuorum {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

// TestUnattainable: nothing is ever probable enough.
func TestUnattainable(t *testing.T) {
	l := trust.New()
	for i := range 48 { // two more could not be the three that it takes
		if r := l.Risks("desk"); i > 0 && r[0].State != trust.Collecting {
			t.Fatalf("after %d pairs: %+v", i, r[0])
		}
		add(t, l, judged(.55, true, promise(.1)))
	}
	if r := risk(t, l); r.State != trust.Unattainable {
		t.Errorf("after 48 pairs below every threshold: %+v", r)
	}
	l = trust.New() // or they are, and wrong
	for i := range 300 {
		add(t, l, judged(.99, i%3 > 0, promise(.1)))
	}
	if r := risk(t, l); r.State != trust.Unattainable || r.Tau != 0 {
		t.Errorf("with a third wrong: %+v", r)
	}
}

// TestAlarmClosesTheGate: audits show that the share of right decisions fell.
func TestAlarmClosesTheGate(t *testing.T) {
	l := trust.New()
	for range 60 {
		add(t, l, judged(.99, true, promise(.1)))
	}
	if risk(t, l).State != trust.Met {
		t.Fatal("it was never established")
	}
	audits := 0
	for risk(t, l).State == trust.Met {
		o := judged(.99, audits%2 == 0, promise(.1))
		o.Automatic, o.Source, o.SamplingProb = true, trust.Audited, 250_000_000
		if audits%4 == 0 {
			o.SamplingProb = 50_000_000
		}
		add(t, l, o)
		if audits++; audits == 3 {
			r := risk(t, l) // wrong were 1 of 4 at a quarter; 0 of 2 at a twentieth... weighed
			if r.Audits != 3 || r.Wrong != 1 || !near(r.Automatic, 4+4+20, 1e-9) || !near(r.Error.Float(), 4./28, 1e-8) {
				t.Errorf("three audits are reported as %+v", r)
			}
		}
	}
	r := risk(t, l)
	if audits > 40 || r.State != trust.Lost || r.Tau != 0 || r.Epoch != 2 || r.Eligible != 0 {
		t.Errorf("after %d audits: %+v", audits, r)
	}
	for range 60 {
		add(t, l, judged(.99, true, promise(.1)))
	}
	if risk(t, l).State != trust.Met {
		t.Error("it cannot be earned again")
	}
}

// TestThresholdNeedsItsOwn: a lower threshold is not established by pairs that a higher
// one would have decided, too, as long as hardly any say what the lower one would add;
// with those it is, unless they are wrong too often.
func TestThresholdNeedsItsOwn(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong int // every how many of those below .75 is wrong; 0 none
		tau   exact.Billionths
	}{
		{"right", 0, 700_000_000},
		{"wrong one time in three", 3, 950_000_000},
	} {
		l := trust.New()
		for range trust.Needed(promise(.1)) - 10 { // pairs count from ten outcomes on
			add(t, l, judged(.99, true, promise(.1)))
		}
		for i := range 40 {
			if tau := risk(t, l).Tau; tau != 950_000_000 && i < 3 {
				t.Errorf("%s: tau is %s after %d that reach it", c.name, tau, i)
			}
			add(t, l, judged(.72, c.wrong == 0 || i%c.wrong > 0, promise(.1)))
		}
		if tau := risk(t, l).Tau; tau != c.tau {
			t.Errorf("%s: tau is %s, want %s", c.name, tau, c.tau)
		}
	}
}

func TestPromisePerState(t *testing.T) {
	l, own := trust.New(), promise(.1)
	own.PerState = true
	for range 60 {
		add(t, l, judged(.99, true, own))
		o := judged(.99, true, promise(.1))
		o.State = "closed"
		add(t, l, o)
	}
	list := l.Risks("desk")
	if len(list) != 2 || list[0].Scope != "" || list[1].Scope != "open" || list[0].Eligible != 60 || list[1].Eligible != 60 {
		t.Errorf("the promises are %+v", list)
	}
	family := promise(.1)
	family.Scopes = 4
	if d := family.Delta(); !near(d, .025, 1e-12) || trust.Needed(family) <= trust.Needed(promise(.1)) {
		t.Errorf("one of four promises has delta %v", d)
	}
}

// TestLivePromiseHolds: in streams of calibrated or overconfident probabilities,
// looked at after every pair, the true error above tau exceeds the promise no more
// often than delta.
func TestLivePromiseHolds(t *testing.T) {
	const runs, eps = 400, .1
	for _, c := range []struct {
		name  string
		right func(p float64) float64
	}{
		{"calibrated", func(p float64) float64 { return p }},
		{"overconfident", func(p float64) float64 { return .5 + (p-.5)*.8 }}, // never below .1 error: nothing may pass
		{"useless", func(float64) float64 { return .9 - 1e-9 }},              // error is eps everywhere
	} {
		for _, cp := range []bool{false, true} {
			established, broken := 0, 0
			for run := range runs {
				d, p := trust.NewDraw("live", c.name, fmt.Sprint(run)), promise(eps)
				p.ClopperPearson = cp
				e, bad, any := trust.NewEpoch(p), false, false
				for range 400 {
					x := .5 + .5*d.Float()
					if tau := e.Pair(exact.Billionths(x*1e9), d.Float() < c.right(x)); tau > 0 {
						any = true
						low := tau.Float()
						bad = bad || 1-c.right((low+1)/2) > eps // all of them are linear in P
					}
				}
				if any {
					established++
				}
				if bad {
					broken++
				}
			}
			t.Logf("%s, clopperPearson %v: %d of %d established, %d broken", c.name, cp, established, runs, broken)
			if standardErrors(broken, runs, .1) > 4 {
				t.Errorf("%s: %d of %d promises are broken", c.name, broken, runs)
			}
			if c.name == "calibrated" && established < runs/20 {
				t.Errorf("only %d of %d are ever established", established, runs)
			}
		}
	}
}

// TestCopiesAreRefused: three voters that are nearly copies of each other, right a
// bit more than half the time, never decide anything alone.
func TestCopiesAreRefused(t *testing.T) {
	d, l := trust.NewDraw("copies"), trust.New()
	options := []string{"a", "b", "c", "d"}
	for round := range 2000 {
		truth := d.Perm(4)[0]
		draw := func() int {
			if d.Float() < .55 {
				return truth
			}
			return (truth + 1 + d.Perm(3)[0]) % 4
		}
		common, choices := draw(), make([]int, 3)
		for i := range choices {
			if choices[i] = common; d.Float() >= .9 {
				choices[i] = draw()
			}
		}
		q := ask(options, choices...)
		q.PolicyDigest, q.Policy.Promise = "p", new(promise(.1))
		j := l.Judge(q)
		if j.Code == trust.Decided {
			t.Fatalf("round %d is decided alone: %+v", round, j)
		}
		o := outcome(q, truth)
		o.Pick, o.P, o.N, o.Promise, o.PolicyDigest = j.Pick, j.P[j.Best], j.N, q.Policy.Promise, "p"
		add(t, l, o)
	}
	if n := l.Effective(trust.Panel{Machine: "desk", State: "open", Options: options, Roster: []trust.Open{{SpecialistID: "a"}, {SpecialistID: "b"}, {SpecialistID: "c"}}}); n.Float() > 1.3 {
		t.Errorf("they count as %s voters", n)
	}
}

// TestThreshold: without a promise the probability alone decides, from twenty
// outcomes on.
func TestThreshold(t *testing.T) {
	l, q := trust.New(), ask(yesNo, 0, 0, 0)
	bar := exact.Billionths(900_000_000)
	q.Policy.Threshold = &bar
	var codes []trust.Code
	for range 60 {
		j := l.Judge(q)
		if j.Code == trust.Decided && (j.N < trust.CalibratedFrom || j.P[0] < bar) {
			t.Fatalf("it decides after %d outcomes at %s", j.N, j.P[0])
		}
		codes = append(codes, j.Code)
		add(t, l, outcome(q, 0))
	}
	if got := slices.Compact(codes); !slices.Equal(got, []trust.Code{trust.ColdStart, trust.Decided}) && !slices.Equal(got, []trust.Code{trust.ColdStart, trust.BelowThreshold, trust.Decided}) {
		t.Errorf("the codes are %q", got)
	}
	q.Irreversible = []bool{true, false}
	if j := l.Judge(q); j.Code != trust.Irreversible {
		t.Errorf("what cannot be undone is %s", j.Code)
	}
	q.Policy.Promise = new(promise(.1)) // which wins over the threshold
	if j := l.Judge(q); j.Code != trust.RiskNotEstablished || j.Threshold != nil {
		t.Errorf("with a promise besides it is %s", j.Code)
	}
}
