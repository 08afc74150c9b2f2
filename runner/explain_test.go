package runner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/verdict"
)

// explain explains a round and fails the test unless its JSON form says the same.
func (b *bench) explain(s *session.Session, round string) *explain.Explanation {
	b.Helper()
	e, err := explain.Round(b.ctx, b.r, s.ID, round)
	b.ok(err)
	text, err := json.Marshal(e)
	b.ok(err)
	var back explain.Explanation
	b.ok(json.Unmarshal(text, &back))
	again, err := json.Marshal(&back)
	b.ok(err)
	if string(again) != string(text) {
		b.Errorf("the explanation is\n%s\nread back it is\n%s", text, again)
	}
	return e
}

// variant returns the variant in which somebody says something else; "" is nothing.
func variant(e *explain.Explanation, who, instead string) explain.WhatIf {
	i := slices.IndexFunc(e.Changes.WhatIfs, func(w explain.WhatIf) bool { return w.SpecialistID == who && w.Instead == instead })
	if i < 0 {
		return explain.WhatIf{Code: "there is none"}
	}
	return e.Changes.WhatIfs[i]
}

// TestExplainMargin explains a round of alignmentMargin: what the alignments were
// made of, each variant, and how much weight would have changed it.
func TestExplainMargin(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("good"), fn("fair"), fn("new"), human("human"), arb("alignmentMargin", threshold("0.2")))
	b.train(m, "good", 9, 10)
	b.train(m, "fair", 6, 9)
	s := b.start(m)
	for who, what := range map[string]string{"good": "again", "fair": "park", "new": "park"} {
		b.propose(s, who, what)
	}
	b.stepTo(s, runner.TickAdvanced)
	b.train(m, "good", 5, 5) // what comes later changes nothing
	e := b.explain(s, "")
	if e.Round != 1 || e.State != "open" || e.Executed != "again" || e.Ruling != nil || !e.Verdict.ConsensusReached || e.Verdict.SpecialistID != "good" || e.Verdict.Code != "decided" {
		t.Errorf("the explanation is %+v", e)
	}
	for i, want := range []struct {
		id          string
		agreed, all int64
	}{{"good", 9, 10}, {"fair", 6, 9}, {"new", 0, 0}} {
		if v := e.Votes[i]; v.SpecialistID != want.id || *v.Agreed != want.agreed || *v.Compared != want.all || v.Scope != "" {
			t.Errorf("vote %d is %+v (%v of %v)", i, v, v.Agreed, v.Compared)
		}
	}
	if !e.Changes.Reproduced || len(e.Changes.WhatIfs) != 9 {
		t.Fatalf("the changes are %+v", e.Changes)
	}
	if w := variant(e, "good", ""); !w.Changed || w.Transition != "park" {
		t.Errorf("without good: %+v", w)
	}
	if w := variant(e, "fair", ""); w.Changed || w.Transition != "again" {
		t.Errorf("without fair: %+v", w)
	}
	if w := variant(e, "fair", "again"); w.Changed || *w.Margin != exact.One {
		t.Errorf("if fair had said the same: %+v", w)
	}
	b.checkWeight(m, e)
}

// checkWeight adds the weight that is said to change the outcome, and a billionth
// less.
func (b *bench) checkWeight(m *machine.Machine, e *explain.Explanation) {
	b.Helper()
	d := e.Changes.Distance
	if d == nil || d.Weight == nil || d.Missing != d.Needs-d.Has {
		b.Fatalf("the distance is %+v", d)
	}
	st := m.State(e.State)
	decide := func(more exact.Billionths) string {
		round := &arbiter.Round{Machine: m, State: st, Threshold: e.Verdict.Threshold}
		for i, v := range e.Votes {
			round.Votes = append(round.Votes, arbiter.Vote{Proposal: &specialist.Proposal{SpecialistID: v.SpecialistID, IsHuman: v.Human, Transition: st.Transition(v.Transition)}, Weight: v.Weight, Rank: int32(i)})
		}
		round.Votes = append(round.Votes, arbiter.Vote{Proposal: &specialist.Proposal{Transition: st.Transition(d.For)}, Weight: more, Rank: 99})
		got, err := strategies.AlignmentMargin{}.Decide(b.ctx, round)
		b.ok(err)
		if !got.Consensus() {
			return ""
		}
		return round.Votes[got.Winner].Transition.Name
	}
	if now, before := decide(*d.Weight), decide(*d.Weight-1); now != d.To || now == e.Verdict.Transition || before != e.Verdict.Transition {
		b.Errorf("with %s behind %s it is %q, with less %q: %+v", d.Weight, d.For, now, before, d)
	}
}

// TestExplainShort explains a margin that was not enough, and the human who was
// asked.
func TestExplainShort(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("good"), fn("fair"), human("human"), arb("alignmentMargin", threshold("0.9")))
	b.train(m, "good", 9, 10)
	b.train(m, "fair", 6, 9)
	s := b.start(m)
	b.propose(s, "good", "again")
	b.propose(s, "fair", "park")
	b.stepTo(s, runner.TickHuman)
	waiting := b.explain(s, "1")
	if waiting.Human.Code != "below_threshold" || waiting.Executed != "" || waiting.Changes.Distance.To != "again" || waiting.Changes.Distance.Missing <= 0 {
		t.Errorf("it is %+v, %+v", waiting, waiting.Changes.Distance)
	}
	b.checkWeight(m, waiting)
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "park", Reasoning: "seen it", Blind: true})
	r := b.explain(s, waiting.RoundID).Ruling
	if r.HumanID != "human" || r.Transition != "park" || r.Pick != "again" || *r.Agreed || r.Decides || !r.Blind || r.Unasked || r.Reasoning != "seen it" {
		t.Errorf("the ruling is %+v", r)
	}
}

// TestExplainUnasked explains a ruling that nobody had asked for: what the engine
// would have done is found by deciding the votes.
func TestExplainUnasked(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("good"), human("human"), half)
	b.train(m, "good", 9, 10)
	s := b.start(m)
	b.propose(s, "good", "again")
	b.force(s, "park")
	e := b.explain(s, "")
	if e.Verdict != nil || e.Changes != nil || e.Ruling.Pick != "again" || !e.Ruling.Unasked || *e.Ruling.Agreed || len(e.Votes) != 1 || *e.Votes[0].Agreed != 9 {
		t.Errorf("it is %+v, %+v", e, e.Ruling)
	}
}

// TestExplainBayes runs a machine until it decides alone and explains every round
// of it: each comes out again as it was recorded, from what was known then.
func TestExplainBayes(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	t.Logf("seed %d", seed)
	truth := "again"
	for i := range 3 {
		b.cast.play(fmt.Sprint("p", i), b.voter(rng, &truth, .9))
	}
	m := b.desk(fn("p0"), fn("p1"), fn("p2"), human("human"), arb("bayes", threshold("0.9")))
	s := b.start(m)
	for range 60 {
		truth = []string{"again", "again", "park"}[rng.IntN(3)]
		if b.step(s).Status == runner.TickHuman {
			b.force(s, truth)
		}
		if b.now(s).State.Name == "parked" {
			b.force(s, "back")
		}
	}
	alone, flips := 0, 0
	for n := range int(b.now(s).Round) - 1 {
		e := b.explain(s, fmt.Sprint(n+1))
		if e.State != "open" {
			continue
		}
		j := e.Verdict.Judgement
		if !e.Changes.Reproduced || len(e.Changes.WhatIfs) != 9 || j == nil {
			t.Fatalf("round %d: %+v", n+1, e.Changes)
		}
		if w := variant(e, "p0", ""); w.P == nil || w.Pick == "" {
			t.Fatalf("round %d: %+v", n+1, w)
		}
		if e.Ruling == nil {
			alone++
			if d := e.Changes.Distance; d.Measure != "probability" || d.Needs != 900_000_000 || d.Missing > 0 || d.Has != j.P[slices.Index(j.Options, j.Pick)] {
				t.Errorf("round %d: %+v", n+1, d)
			}
		} else if e.Ruling.Pick == "" || e.Ruling.P == 0 || *e.Ruling.Agreed != (e.Ruling.Pick == e.Ruling.Transition) {
			t.Errorf("round %d: %+v", n+1, e.Ruling)
		}
		if slices.ContainsFunc(e.Changes.WhatIfs, func(w explain.WhatIf) bool { return w.Changed }) {
			flips++
		}
	}
	if alone < 15 || flips < 5 {
		t.Errorf("%d rounds without a human, %d that one vote would have changed", alone, flips)
	}
	first := b.explain(s, "1")
	if d := first.Changes.Distance; d.Measure != "outcomes" || d.Missing != 20*exact.One || first.Verdict.Code != "cold_start" {
		t.Errorf("the first round: %+v", d)
	}
}

// TestExplainCorrelated names for whose sake a vote was discounted.
func TestExplainCorrelated(t *testing.T) {
	b := newBench(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	t.Logf("seed %d", seed)
	say := func(p float64) string {
		if rng.Float64() < p {
			return "again"
		}
		return "park"
	}
	m := b.desk(fn("p0"), fn("p1"), fn("p2"), human("human"), arb("bayes", threshold("0.9")))
	s := b.start(m)
	for range 30 {
		twin := say(.6)
		b.cast.say("p0", twin)
		b.cast.say("p1", twin)
		b.cast.say("p2", say(.9))
		if b.step(s).Status == runner.TickHuman {
			b.force(s, "again")
		}
	}
	b.cast.say("p0", "again")
	b.cast.say("p1", "again")
	b.cast.say("p2", "again")
	b.step(s)
	e := b.explain(s, "")
	for _, v := range e.Votes {
		want := v.SpecialistID == "p1" // p0 ranks before its twin
		if got := slices.ContainsFunc(v.Correlated, func(c trust.Correlation) bool { return c.With == "p0" && c.Rho > 300_000_000 && c.N >= 20 }); got != want {
			t.Errorf("%s is discounted for %+v", v.SpecialistID, v.Correlated)
		}
		for _, share := range e.Verdict.Judgement.Votes {
			sum, whole := exact.One, exact.One
			for _, c := range v.Correlated {
				sum, whole = sum+c.Rho, min(whole, exact.One-c.Copy)
			}
			if want && whole > 300_000_000 {
				t.Errorf("the copy of p0 keeps %s of its vote", whole)
			}
			if off := share.Discount - exact.Share(whole, sum); share.SpecialistID == v.SpecialistID && (off > 3 || off < -3) {
				t.Errorf("%s counts %s, discounts are %+v", v.SpecialistID, share.Discount, v.Correlated)
			}
		}
	}
}

// TestExplainOthers explains rounds of the other arbiters.
func TestExplainOthers(t *testing.T) {
	b := newBench(t)
	b.cast.judge("judge", electFirst)
	for _, c := range []struct {
		by, why string
		changed string // what comes of it without a
	}{
		{arb("firstProposal"), "", "park"},
		{arbFn("judge"), explain.CustomArbiter, ""},
		{entry("arbiter", "arb", `"strategyFn":"= proposals == 2 ? \"again\" : leader"`), "", "park"},
	} {
		s := b.start(b.machine(def{name: fmt.Sprint("m", len(c.by)), who: []string{fn("a"), fn("b"), human("human"), c.by}, top: `"quorum":"any"`}))
		b.propose(s, "a", "again")
		b.propose(s, "b", "park")
		b.stepTo(s, runner.TickAdvanced)
		e := b.explain(s, "")
		if e.Verdict.Transition != "again" || e.Changes.Why != c.why || e.Changes.Distance != nil {
			t.Errorf("%s: %+v %+v", c.by, e.Verdict, e.Changes)
		}
		if c.why == "" {
			if w := variant(e, "a", ""); w.Transition != c.changed || !w.Changed {
				t.Errorf("%s: without a %+v", c.by, w)
			}
		}
	}
}

// TestExplainGuards explains the attempts at a round that guards sent back.
func TestExplainGuards(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "not this way")}
	})
	b.cast.play("c", failing(fmt.Errorf("no idea")))
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), fn("c"), human("human"), half}, top: `"quorum":"any","guards":{"retry":{"max_attempts":2}}`}))
	for b.step(s).Status == runner.TickRejected {
	}
	e := b.explain(s, "")
	if e.Attempt < 1 || len(e.Gates) != 1 || e.Gates[0].Status == "ok" || e.Gates[0].Reasons[0].Code != "house" || e.Gates[0].Reasons[0].Message != "not this way" || e.Executed != "" {
		t.Fatalf("the gates are %+v of %+v", e.Gates, e)
	}
	if len(e.Failures) != 1 || e.Failures[0].SpecialistID != "c" || !strings.Contains(e.Failures[0].Message, "no idea") {
		t.Errorf("the failures are %+v", e.Failures)
	}
	before := b.explain(s, fmt.Sprintf("%d.%d", e.Round, e.Attempt-1))
	if before.Attempt != e.Attempt-1 || len(before.Gates) != 1 || before.Gates[0].Status != "retry" || before.Human != nil {
		t.Errorf("the attempt before is %+v", before)
	}
}

// TestExplainLate has a proposal come after a verdict: that one was on other votes.
func TestExplainLate(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), fn("b"), human("human"), arb("alignmentMargin", threshold("0.9")))
	b.cast.say("a", "again")
	b.cast.say("b", "park")
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.propose(s, "human", "park")
	b.force(s, "park")
	e := b.explain(s, "")
	if e.Verdict != nil || len(e.Earlier) != 1 || e.Earlier[0].Code != "cold_start" || len(e.Votes) != 3 || e.Votes[0].SpecialistID != "human" {
		t.Errorf("it is %+v", e)
	}
}

// TestExplainRefuses says what is wrong with a question.
func TestExplainRefuses(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), half))
	_, err := explain.Round(b.ctx, b.r, s.ID, "")
	b.refused(err, session.ErrNotFound, "no round of session "+s.ID.String()+" was judged or decided yet")
	b.stepTo(s, runner.TickAdvanced)
	for _, bad := range []string{"0", "-1", "x", "1.x", "1.-1", "99999999999", "1.", ".1", "1.1.1"} {
		_, err = explain.Round(b.ctx, b.r, s.ID, bad)
		b.refused(err, runner.ErrIllegal, fmt.Sprintf("round %q is no round", bad))
	}
	_, err = explain.Round(b.ctx, b.r, s.ID, "7")
	b.refused(err, session.ErrNotFound, "session "+s.ID.String()+" has no round 7")
	_, err = explain.Round(b.ctx, b.r, specialist.SessionID{9}, "")
	if err == nil {
		t.Error("a session that is not there was explained")
	}
	if e := b.explain(s, "2"); e.Verdict != nil || len(e.Votes) != 0 || !reflect.DeepEqual(e.Options[0], explain.Option{Transition: "finish", Target: "done"}) {
		t.Errorf("the open round is %+v", e)
	}
}

// TestExplainLimited tries no more than can be tried in a moment.
func TestExplainLimited(t *testing.T) {
	b := newBench(t)
	var who, ways []string
	for i := range 60 {
		id := fmt.Sprint("p", i)
		who, ways = append(who, fn(id)), append(ways, fmt.Sprintf(`"t%d":"open"`, i))
		b.cast.say(id, fmt.Sprint("t", i%2))
	}
	m := b.machine(def{states: `"open":{"transitions":{` + strings.Join(ways, ",") + `,"finish":"done"}},"done":{}`, who: append(who, human("human"), arb("bayes", threshold("0.9")))})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	e := b.explain(s, "")
	if c := e.Changes; !c.Reproduced || !c.Limited || len(c.WhatIfs) != 60 || slices.ContainsFunc(c.WhatIfs, func(w explain.WhatIf) bool { return w.Instead != "" }) {
		t.Errorf("the changes are %+v", c)
	}
}

// TestExplainElsewhere explains a round that nobody answered in a program that has none
// of the functions: nobody is asked, so nobody has to be there.
func TestExplainElsewhere(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", failing(fmt.Errorf("no idea")))
	s := b.start(b.desk(fn("a"), human("human"), arb("bayes", threshold("0.9"))))
	b.stepTo(s, runner.TickHuman)
	elsewhere := b.runner(func(c *runner.Config) { c.Resolver = b.cast })
	e, err := explain.Round(b.ctx, elsewhere, s.ID, "")
	b.ok(err)
	if e.Verdict.Judgement != nil || e.Verdict.Code != "no_proposals" || e.Changes.Why != explain.NoVotes {
		t.Errorf("it is %+v, %+v", e.Verdict, e.Changes)
	}
}
