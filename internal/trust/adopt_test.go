package trust_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

func rightPairs(n int) []trust.Pair {
	list := make([]trust.Pair, n)
	for i := range list {
		list[i] = trust.Pair{P: 990_000_000, Right: true}
	}
	return list
}

// TestAdopt: what a back-test found counts from the adoption on, at a confidence
// that is divided among the policies that were tried.
func TestAdopt(t *testing.T) {
	l := trust.New()
	a := trust.Adoption{Machine: "desk", Promise: promise(.1), PolicyDigest: "p", Pairs: rightPairs(40), Tried: 1}
	if err := l.Adopt(a); err != nil || risk(t, l).State != trust.Met {
		t.Errorf("40 right pairs adopted: %+v, %v", risk(t, l), err)
	}
	a.Tried = 20
	if err := l.Adopt(a); err != nil || risk(t, l).State != trust.Collecting || risk(t, l).Adopted != 40 || risk(t, l).Tried != 20 || risk(t, l).Needs == 0 {
		t.Errorf("for the best of 20 policies: %+v, %v", risk(t, l), err)
	}
	add(t, l, judged(.99, true, promise(.1)))
	if r := risk(t, l); r.Eligible != 41 || r.Epoch != 1 {
		t.Errorf("the next outcome does not go on with it: %+v", r)
	}
	a.Tried = 1
	if err := l.Adopt(a); err != nil || risk(t, l).Epoch != 2 || risk(t, l).Eligible != 40 || risk(t, l).State != trust.Met {
		t.Errorf("adopted for the policy in force: %+v, %v", risk(t, l), err)
	}
	for name, spoil := range map[string]func(a *trust.Adoption){
		"machine": func(a *trust.Adoption) { a.Machine = "" }, "tried": func(a *trust.Adoption) { a.Tried = 0 },
		"promise": func(a *trust.Adoption) { a.Promise.MaxError = 0 }, "state": func(a *trust.Adoption) { a.Promise.PerState = true },
		"pair": func(a *trust.Adoption) { a.Pairs = []trust.Pair{{P: 2 * exact.One}} },
		"stop": func(a *trust.Adoption) { a.Pairs = []trust.Pair{{Stops: []trust.PairAt{{Tau: 0}}}} },
	} {
		bad := a
		spoil(&bad)
		if err := l.Adopt(bad); !errors.Is(err, trust.ErrAdoption) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (&trust.Lesson{Adoption: &bad}).Encode(); !errors.Is(err, trust.ErrAdoption) {
			t.Errorf("%s as a lesson: %v", name, err)
		}
	}
	o := judged(.99, true, promise(.1))
	if err := l.Learn(trust.Lesson{Adoption: &a, Outcome: &o}); !errors.Is(err, trust.ErrAdoption) {
		t.Errorf("beside an outcome: %v", err)
	}
}

// TestAdoptionWaits: the test that is under way goes on until the policy is in
// force, also in a clone, and late looks at what the policy before had decided
// change nothing of the new one.
func TestAdoptionWaits(t *testing.T) {
	l := trust.New()
	for range 5 {
		add(t, l, judged(.99, true, promise(.1)))
	}
	a := trust.Adoption{Machine: "desk", Promise: promise(.1), PolicyDigest: "new", Pairs: rightPairs(40), Tried: 1}
	text, err := (&trust.Lesson{Adoption: &a}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	lesson, err := trust.DecodeLesson(text)
	if err == nil {
		err = l.Learn(lesson)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := l.Risks("desk")
	if len(list) != 2 || list[0].PolicyDigest != "p" || list[0].Eligible != 5 || list[1].PolicyDigest != "new" || list[1].Epoch != 2 || list[1].State != trust.Met {
		t.Fatalf("before it is in force: %+v", list)
	}
	tau := func(l *trust.Ledger, digest string) exact.Billionths {
		tau, _ := l.Risk("desk", "open", promise(.1), digest)
		return tau
	}
	if tau(l, "p") != 0 || tau(l, "new") != 950_000_000 {
		t.Errorf("tau is %s before and %s under the new policy", tau(l, "p"), tau(l, "new"))
	}
	c := l.Clone()
	add(t, c, judged(.99, true, promise(.1)))
	under := judged(.99, true, promise(.1))
	under.PolicyDigest = "new"
	add(t, c, under)
	if list := c.Risks("desk"); len(list) != 1 || list[0].Eligible != 41 || list[0].Epoch != 2 || list[0].Adopted != 40 {
		t.Errorf("in force: %+v", list)
	}
	late := judged(.99, false, promise(.1))
	late.Source, late.Automatic = trust.Audited, true
	add(t, c, late)
	if list := c.Risks("desk"); len(list) != 1 || list[0].PolicyDigest != "new" || list[0].Eligible != 41 {
		t.Errorf("after a late audit of the policy before: %+v", list)
	}
	if list := l.Risks("desk"); len(list) != 2 || list[0].Eligible != 5 {
		t.Errorf("the ledger it was cloned from: %+v", list)
	}
}

// TestSeed: a test that begins with what a Seed collected from outcomes stands where
// it would, had these outcomes come one by one; also after alarms.
func TestSeed(t *testing.T) {
	const seed = 20261121
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	alarms := 0
	for run := range 60 {
		var s trust.Seed
		p, l := promise(.1), trust.New()
		p.ClopperPearson = run%3 == 0
		for range 300 {
			o := judged(.5+.5*rng.Float64(), rng.Float64() < .7+.005*float64(run), p)
			switch rng.IntN(6) {
			case 0:
				o.Automatic, o.Source = true, trust.Audited
			case 1:
				o.Automatic, o.Unasked = true, true
			case 2:
				o.N = 9
			case 3:
				o.Stops = []trust.StoppedAt{{Tau: 950_000_000, P: 960_000_000, Pick: "no"}, {Tau: 900_000_000, P: 910_000_000, Pick: "yes"}}
			}
			add(t, l, o)
			s.Add(&o)
		}
		adopted := trust.New()
		if err := adopted.Adopt(trust.Adoption{Machine: "desk", Promise: p, PolicyDigest: "p", Pairs: s.Pairs(), Tried: 1}); err != nil {
			t.Fatal(err)
		}
		one, all := risk(t, adopted), risk(t, l)
		if all.Epoch > 1 {
			alarms++
		}
		if one.Eligible != all.Eligible || one.Tau != all.Tau || one.Needs-10 != all.Needs && one.Tau == 0 && one.Needs < 1<<40 {
			t.Fatalf("run %d: adopted %+v, one by one %+v", run, one, all)
		}
	}
	if alarms == 0 || alarms == 60 {
		t.Errorf("%d of 60 runs had an alarm", alarms)
	}
}

// TestAsked: a replay asks as many as it takes, those who are free at once, and
// stops where the votes decide.
func TestAsked(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("asked", 300, 8, 2)...)
	q, _ := crowd(trust.NewDraw("asked question"), 8, 2)
	for i := range q.Votes {
		q.Votes[i].Option = 0
	}
	costs := make([]exact.Money, 8)
	asked, stop := l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if len(asked) != 8 || stop != trust.StopDecided && stop != trust.StopAllAsked {
		t.Errorf("of 8 who are free %v are asked, then %s", asked, stop)
	}
	for i := range costs {
		costs[i] = 1e9
	}
	asked, stop = l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if len(asked) == 0 || len(asked) > 4 || stop != trust.StopDecided {
		t.Errorf("of 8 who agree %v are asked, then %s", asked, stop)
	}
	q.Votes[asked[0]].Human = true
	again, _ := l.Asked(q, costs, trust.Asking{Tau: 950_000_000})
	if slices.Contains(again, asked[0]) {
		t.Errorf("a human is asked: %v", again)
	}
	if asked, stop := l.Asked(q, nil, trust.Asking{}); len(asked) != 7 || stop != trust.StopAllAsked {
		t.Errorf("without a tau %v are asked, then %s", asked, stop)
	}
	if asked, stop := trust.New().Asked(trust.Question{}, nil, trust.Asking{}); len(asked) != 0 || stop != trust.StopAllAsked {
		t.Errorf("of nobody %v are asked, then %s", asked, stop)
	}
}
