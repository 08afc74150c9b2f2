package runner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// TestRisks follows a promise from its declaration to automatic decisions and
// their audits: risk and metrics show what was counted here.
func TestRisks(t *testing.T) {
	b := newBench(t)
	_, err := report.RisksOf(b.ctx, b.r, "desk")
	b.refused(err, session.ErrNotFound, "Machine not found: desk")
	rng := rand.New(rand.NewPCG(seed, 8))
	t.Logf("seed %d", seed)
	truth := "again"
	for i := range 4 {
		b.cast.play(fmt.Sprint("p", i), b.voter(rng, &truth, .93))
	}
	m := b.machine(def{
		states: `"open":{"irreversible":false,"transitions":{"finish":"done","again":"open","park":"open"}},"aside":{"risk":{"maxError":0.1},"transitions":{"back":"open","finish":"done"}},"done":{}`,
		who:    []string{fn("p0"), fn("p1"), fn("p2"), fn("p3"), human("human"), arb("bayes")}, top: `"risk":{"maxError":0.25,"confidence":0.8},"audit":{"rate":1,"newcomerRate":1}`})
	s := b.start(m)
	risks := func() (list []report.PromiseStatus) {
		b.Helper()
		r, err := report.RisksOf(b.ctx, b.r, "desk")
		b.ok(err)
		if len(r.Caveats) != 6 || len(r.Promises) != 2 || r.Promises[0].Scope != "" || r.Promises[1].Scope != "aside" || r.Promises[1].States[0] != "aside" {
			t.Fatalf("the report is %+v", r)
		}
		return r.Promises
	}
	first := risks()[0]
	if first.State != trust.Collecting || first.Needs != trust.Needed(first.Promise) || first.Tau != 0 || first.Coverage != 0 || first.Undeclared || first.PolicyDigest == "" || first.Epoch != 1 || first.HumanPairs != 0 {
		t.Errorf("at first it is %+v", first)
	}
	alone, asked, wrong := 0, 0, 0
	for range 150 {
		truth = []string{"again", "park"}[rng.IntN(2)]
		tick := b.step(s)
		if tick.Status != runner.TickAdvanced {
			asked++
			b.force(s, truth)
			continue
		}
		if alone++; tick.Transition.Name != truth {
			wrong++
		}
		for _, v := range b.now(s).Reviews() {
			_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: v.Key.ID(), SpecialistID: "human", TransitionName: truth, Blind: true})
			b.ok(err)
		}
	}
	p := risks()[0]
	if p.State != trust.Met || p.Tau == 0 || p.AIDecisions != alone || p.HumanDecisions != asked || p.Audits != int64(alone) || p.Wrong != int64(wrong) || alone < 50 {
		t.Errorf("%d alone, %d wrong, %d asked: %+v", alone, wrong, asked, p)
	}
	if want := exact.Share(exact.Billionths(wrong), exact.Billionths(alone)); p.Error != want || p.ErrorBound <= p.Error || p.ErrorBound > exact.One/4 {
		t.Errorf("the error is %s, at most %s, want %s", p.Error, p.ErrorBound, want)
	}
	metrics := b.metrics("")
	v := metrics.States[0]
	if v.State != "open" || v.AIDecisions != alone || v.TotalDecisions != 150 || v.Audits != p.Audits || v.Wrong != p.Wrong || *v.Error != p.Error || *v.ErrorBound != p.ErrorBound ||
		v.RiskState != trust.Met || v.Tau != p.Tau || *v.Promise != p.Promise || v.Voters != 4 || v.NEff <= exact.One || v.NEff > 4*exact.One {
		t.Errorf("the metrics of the state are %+v", v)
	}
	if len(metrics.States) != 2 || metrics.States[1].Promise.MaxError != exact.One/10 || len(metrics.Promises) != 2 || metrics.AskedPerRound != 4 {
		t.Errorf("the metrics are %+v", metrics)
	}
	if only := b.metrics("aside"); len(only.States) != 1 || len(only.Promises) != 1 || only.Promises[0].Scope != "aside" || len(only.Signals) != 0 && strings.Contains(signals(only), "risk.established") {
		t.Errorf("of one state they are %+v", only)
	}
	if got := signals(metrics); !strings.Contains(got, "info risk.established The promise of the machine holds from probability "+p.Tau.String()) ||
		wrong > 0 && !strings.Contains(got, fmt.Sprintf("warning audit.disagreed %d of %d audits found an automatic decision wrong", wrong, alone)) {
		t.Errorf("the signals are %s", got)
	}
	text, err := json.Marshal(metrics)
	b.ok(err)
	if strings.Contains(string(text), "null") {
		t.Errorf("the metrics are %s", text)
	}
}

// TestDistanceToAnotherPick: what else would have been decided is said of the pick, not
// of a bar that no pick can fall below.
func TestDistanceToAnotherPick(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		b.cast.say(fmt.Sprint("p", i), "again")
	}
	m := b.machine(def{
		states: `"open":{"irreversible":false,"transitions":{"finish":"done","again":"open"}},"done":{}`,
		who:    []string{fn("p0"), fn("p1"), fn("p2"), human("human"), arb("bayes")}, top: `"consensusThreshold":0.4`})
	s := b.start(m)
	for b.step(s).Status == runner.TickHuman {
		b.force(s, "again")
	}
	b.stepTo(s, runner.TickAdvanced)
	d := b.explain(s, "").Changes.Distance
	if d == nil || d.Measure != explain.ByProbability || d.To != "finish" || d.Needs < exact.One/2-1 || d.Needs > exact.One/2 || d.Missing != d.Needs-d.Has {
		t.Errorf("the distance is %+v", d)
	}
}

// TestRisksAfterAlarm has audits find nothing but errors: the promise is lost, and
// its report still shows these errors, as metrics does. Probabilities are not
// measured by a margin.
func TestRisksAfterAlarm(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		b.cast.say(fmt.Sprint("p", i), "again")
	}
	m := b.machine(def{
		states: `"open":{"irreversible":false,"transitions":{"finish":"done","again":"open"}},"done":{}`,
		who:    []string{fn("p0"), fn("p1"), fn("p2"), human("human"), arb("bayes")}, top: `"risk":{"maxError":0.25,"confidence":0.8},"audit":{"rate":1,"newcomerRate":1}`})
	s := b.start(m)
	for b.step(s).Status == runner.TickHuman {
		b.force(s, "again")
	}
	for range 10 {
		b.stepTo(s, runner.TickAdvanced)
	}
	d := b.explain(s, "").Changes.Distance
	if d == nil || d.Measure != explain.ByProbability || d.For != "again" || d.Needs != exact.One*7/8 || d.Missing != d.Needs-d.Has {
		t.Errorf("the distance is %+v", d)
	}
	if text := signals(b.metrics("")); strings.Contains(text, "THIN_MARGIN") {
		t.Errorf("the signals are\n%s", text)
	}
	for _, v := range b.now(s).Reviews() {
		_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: v.Key.ID(), SpecialistID: "human", TransitionName: "finish", Blind: true})
		b.ok(err)
	}
	r, err := report.RisksOf(b.ctx, b.r, "desk")
	b.ok(err)
	p := r.Promises[0]
	want := report.Audited{Audits: 11, Wrong: 11, Error: exact.One, ErrorBound: exact.One}
	if p.State != trust.Lost || p.Audits == 11 || p.Ever == nil || *p.Ever != want {
		t.Errorf("after the alarm it is %+v, ever %+v", p, p.Ever)
	}
	if v := b.metrics("").States[0]; v.Wrong != 11 || *v.Error != want.Error {
		t.Errorf("the metrics are %+v", v)
	}
}

// TestRisksAfterChange begins the test of a promise anew when the roster changes.
func TestRisksAfterChange(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	run := func(who ...string) report.PromiseStatus {
		b.Helper()
		m := b.machine(def{states: marked, who: append(who, human("human"), arb("bayes"))})
		s := b.start(m)
		for range 12 {
			b.stepTo(s, runner.TickHuman)
			b.force(s, "again")
		}
		r, err := report.RisksOf(b.ctx, b.r, "desk")
		b.ok(err)
		return r.Promises[0]
	}
	before := run(fn("a"))
	if !before.Undeclared || before.Epoch != 1 || before.Eligible == 0 || before.Promise != trust.DefaultPromise() {
		t.Errorf("before it is %+v", before)
	}
	b.cast.say("b", "again")
	b.start(b.machine(def{states: marked, who: []string{fn("a"), fn("b"), human("human"), arb("bayes")}}))
	r, err := report.RisksOf(b.ctx, b.r, "desk")
	b.ok(err)
	if p := r.Promises[0]; p.Epoch != 2 || p.Eligible != 0 || p.PolicyDigest == before.PolicyDigest || p.HumanDecisions != 12 {
		t.Errorf("after the change it is %+v", p)
	}
	if after := run(fn("a"), fn("b")); after.Epoch != 2 || after.Eligible == 0 {
		t.Errorf("then it is %+v", after)
	}
}

// TestRisksOfOthers: a machine of another strategy promises nothing.
func TestRisksOfOthers(t *testing.T) {
	b := newBench(t)
	b.start(b.desk(fn("a"), half))
	r, err := report.RisksOf(b.ctx, b.r, "desk")
	b.ok(err)
	text, _ := json.Marshal(r)
	if len(r.Promises) != 0 || !strings.HasPrefix(string(text), `{"machineName":"desk","promises":[],"caveats":["An error`) {
		t.Errorf("it is %s", text)
	}
}

// TestAuditsMatchTheReport sums audits as the report of a promise does.
func TestAuditsMatchTheReport(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 9))
	t.Logf("seed %d", seed)
	l, promise := trust.New(), trust.Promise{MaxError: exact.One / 2, Confidence: usual}
	var a trust.Audits
	for i := range 200 {
		o := trust.Outcome{Machine: "m", State: "s", Options: []string{"x", "y"}, Truth: "x", Pick: "x", P: exact.One, N: 50, Source: trust.Audited,
			Automatic: true, Promise: &promise, SamplingProb: []exact.Billionths{0, 50_000_000, 250_000_000}[rng.IntN(3)], Unasked: i%10 == 9}
		if rng.IntN(5) == 0 {
			o.Pick = "y"
		}
		if err := l.Add(o); err != nil {
			t.Fatal(err)
		}
		a.Add(&o)
	}
	r := l.Risks("m")[0]
	wrong, n := a.Counts()
	share, bound := a.Error(usual)
	if r.Epoch != 1 || wrong != r.Wrong || n != r.Audits || n != 180 || share-r.Error > 1 || r.Error-share > 1 || bound != r.ErrorBound {
		t.Errorf("%d of %d, %s, %s; the report says %+v", wrong, n, share, bound, r)
	}
	if share, bound := (trust.Audits{}).Error(usual); share != 0 || bound != exact.One {
		t.Errorf("without audits they are %s and %s", share, bound)
	}
}

const usual = exact.One / 10 * 9
