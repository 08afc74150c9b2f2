package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (b *bench) metrics(state string) *report.Metrics {
	b.Helper()
	m, err := report.MetricsOf(b.ctx, b.r, "desk", machine.StateName(state))
	b.ok(err)
	return m
}

// signals returns the signals in the form level code message.
func signals(m *report.Metrics) string {
	var lines []string
	for _, s := range m.Signals {
		lines = append(lines, s.Level+" "+s.Code+" "+s.Message)
	}
	return strings.Join(lines, "\n")
}

// TestMetricsOfNothing has zeros for everything, never null, and a cold start.
func TestMetricsOfNothing(t *testing.T) {
	b := newBench(t)
	text, err := json.Marshal(b.metrics(""))
	b.ok(err)
	want := `{"machineName":"desk","totalDecisions":0,"humanDecisions":0,"aiDecisions":0,"collapseRatio":0,"recentCollapseRatio":0,"recentDecisions":0,"averageConsensusMargin":0,` +
		`"alignmentScores":{},"specialists":[],"signals":[{"level":"action","code":"COLD_START","message":"No alignment data available — human must decide all transitions"}]}`
	if string(text) != want {
		t.Errorf("the metrics are\n%s\nwant\n%s", text, want)
	}
}

// TestMetricsCount counts by hand: three forced decisions and one of the arbiter,
// then ten more of that.
func TestMetricsCount(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"quorum":"any"`})
	s := b.start(m)
	for _, said := range []string{"again", "again", "finish"} { // a is right twice of three times
		b.propose(s, "a", said)
		b.propose(s, "b", "park") // b never
		b.force(s, "again")
	}
	b.said(map[string]string{"a": "again", "b": "park"})
	b.stepTo(s, runner.TickAdvanced) // b has no weight, so a settles it
	got := b.metrics("")
	if got.TotalDecisions != 4 || got.HumanDecisions != 3 || got.AIDecisions != 1 || got.CollapseRatio != 0.25 || got.RecentCollapseRatio != 0.25 || got.RecentDecisions != 4 || got.AverageConsensusMargin != 1 {
		t.Errorf("the metrics are %+v", got)
	}
	if text := fmt.Sprint(got.Specialists); text != "[{a 0.207654955 4 3 0.75} {b 0 3 0 0}]" {
		t.Errorf("the specialists are %s", text)
	}
	if fmt.Sprint(got.AlignmentScores) != "map[a:0.207654955 b:0]" {
		t.Errorf("the scores are %v", got.AlignmentScores)
	}
	if text := signals(got); text != "warning LOW_ALIGNMENT Best specialist alignment is 0.208 — below 0.5" {
		t.Errorf("the signals are\n%s", text)
	}
	for range 10 {
		b.stepTo(s, runner.TickAdvanced)
	}
	got = b.metrics("")
	if got.CollapseRatio != 0.785714286 || got.RecentCollapseRatio != 1 || got.RecentDecisions != 10 {
		t.Errorf("the ratios are %v and %v", got.CollapseRatio, got.RecentCollapseRatio)
	}
	if text := signals(got); !strings.Contains(text, "info ALIGNMENT_PLATEAU Alignment scores unchanged over last 10 decisions") || strings.Contains(text, "COLLAPSE") { // none is declared
		t.Errorf("the signals are\n%s", text)
	}
	b.force(s, "park")
	b.force(s, "back")
	if text := signals(b.metrics("")); strings.Contains(text, "FULL_COLLAPSE") || strings.Contains(text, "PLATEAU") {
		t.Errorf("after human decisions the signals are\n%s", text)
	}
	if got := b.metrics("parked"); got.TotalDecisions != 1 || got.HumanDecisions != 1 || got.State != "parked" {
		t.Errorf("the metrics of a state are %+v", got)
	}
}

// TestMetricsNoQuorum: rounds that a human had to decide because too few had answered are
// counted, those that a human decided for another reason are not.
func TestMetricsNoQuorum(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}}))
	for i, said := range []map[string]string{{"a": "again", "b": "park"}, {"a": "again", "b": ""}, {"a": "", "b": "park"}, {"a": "", "b": ""}} {
		b.said(said)
		b.stepTo(s, runner.TickHuman)
		b.force(s, "again")
		if got, want := b.metrics("").NoQuorum, []int{0, 1, 2, 2}[i]; got != want {
			t.Errorf("after %v, the code %s: %d rounds are counted, want %d", said, b.now(s).Outcome().Code, got, want)
		}
	}
}

// TestMetricsSignals shows each remaining signal, and the order of all.
func TestMetricsSignals(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), arb("firstProposal"))
	b.cast.say("a", "again")
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	if text := signals(b.metrics("")); text != "action COLD_START No alignment data available — human must decide all transitions\n"+
		"warning SINGLE_SPECIALIST Only 1 proposer registered — add more for meaningful consensus" { // a first proposal wins by arrival, not by a margin
		t.Errorf("the signals of a lone proposer are\n%s", text)
	}
	b = newBench(t)
	m = b.desk(fn("good"), fn("twin"), human("human"), arb("alignmentMargin", threshold("0")))
	b.train(m, "good", 9, 9)
	b.train(m, "twin", 9, 9)
	s = b.start(m)
	for range 6 { // opposed, with a margin of nothing
		b.propose(s, "good", "again")
		b.propose(s, "twin", "park")
		if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" {
			t.Fatalf("the step went %s", tick.Transition.Name)
		}
	}
	if text := signals(b.metrics("")); !strings.Contains(text, "warning THIN_MARGIN 6/6 recent AI decisions have margins within 0.1 of threshold") {
		t.Errorf("the signals are\n%s", text)
	}
}

// TestFullCollapse: that nobody but programs has decided for long is a signal where a state
// declares a collapse, wherever they decided, and no other number is called so.
func TestFullCollapse(t *testing.T) {
	for _, collapse := range []string{"", `"collapse":{},`} {
		b := newBench(t)
		b.cast.say("a", "again")
		m := b.machine(def{states: `"open":{"transitions":{"again":"open","on":"check"}},"check":{` + collapse + `"transitions":{"back":"open","end":"done"},"specialists":[{"role":"proposer","specialistId":"a"},{"role":"proposer","specialistId":"human"},{"role":"arbiter","specialistId":"counts","strategyFnName":"bayes"}]},"done":{}`,
			who: []string{fn("a"), human("human"), arb("firstProposal")}})
		s := b.start(m)
		for n := range 10 {
			if text := signals(b.metrics("")); strings.Contains(text, "FULL_COLLAPSE") {
				t.Fatalf("after %d decisions the signals are\n%s", n, text)
			}
			b.stepTo(s, runner.TickAdvanced)
		}
		want := collapse != ""
		if text := signals(b.metrics("")); strings.Contains(text, "info FULL_COLLAPSE Last 10 decisions were all AI") != want {
			t.Errorf("with %q the signals are\n%s", collapse, text)
		}
		b.force(s, "again")
		if text := signals(b.metrics("")); strings.Contains(text, "FULL_COLLAPSE") {
			t.Errorf("after a human's decision the signals are\n%s", text)
		}
	}
}

// TestDecisionsNewest returns the newest of 30 decisions, the oldest first, in
// all sessions and in one state.
func TestDecisionsNewest(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), human("human"), half)
	one, other := b.start(m), b.start(m)
	var all []string
	for i := range 15 {
		for _, s := range []*session.Session{one, other} {
			a := b.force(s, []string{"again", "park", "back"}[i%3])
			all = append(all, a.RoundID)
		}
	}
	for _, c := range []struct {
		limit int
		want  []string
	}{{10, all[20:]}, {0, all}, {1, all[29:]}, {100, all}} {
		got, err := b.r.Decisions(b.ctx, "desk", "", c.limit)
		b.ok(err)
		var rounds []string
		for _, d := range got {
			rounds = append(rounds, d.RoundID)
		}
		if fmt.Sprint(rounds) != fmt.Sprint(c.want) {
			t.Errorf("limit %d: %d decisions, not the newest in order", c.limit, len(got))
		}
	}
	if got, err := b.r.Decisions(b.ctx, "desk", "parked", 3); err != nil || len(got) != 3 || got[0].FromState != "parked" || got[2].RoundID != all[29] {
		t.Errorf("of one state: %+v (%v)", got, err)
	}
	if got, err := b.r.Decisions(b.ctx, "nowhere", "", 0); err != nil || len(got) != 0 {
		t.Errorf("of an unknown machine: %v (%v)", got, err)
	}
}

// TestInbox files a question once a human must decide, with all that is needed
// to answer it, and takes it away when something arrives.
func TestInbox(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: `"open":{"prompt":"Which way?","transitions":{"finish":{"target":"done","description":"Be done.","parameters":{"type":"object"}},"again":"open"}},"done":{}`,
		who: []string{fn("a"), fn("b"), human("human"), human("off", `"disabled":true`), half}})
	b.said(map[string]string{"a": "finish", "b": "again"})
	quiet, second, s := b.start(m), b.start(m), b.start(m)
	b.stepTo(s, runner.TickHuman) // which waits longer than the other, though it was started later
	b.stepTo(second, runner.TickHuman)
	items, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, "")
	b.ok(err)
	if len(items) != 2 || items[0].SessionID != s.ID.String() || items[1].SessionID != second.ID.String() {
		t.Fatalf("the inbox is %+v (and %s is quiet)", items, quiet.ID)
	}
	items[0].Proposals = nil
	text, err := json.Marshal(items[0])
	b.ok(err)
	want := `{"questionId":"` + s.ID.String() + "." + s.Key().ID() + `","digest":"` + items[0].Digest + `","sessionId":"` + s.ID.String() + `","machineName":"desk","machineDigest":"` + s.Machine().Digest() + `","roundId":"` + s.Key().ID() + `","state":"open","prompt":"Which way?","facts":{"data":{}},` +
		`"transitions":[{"name":"finish","target":"done","description":"Be done.","parameters":{"type":"object"}},{"name":"again","target":"open"}],"proposals":null,"rulings":[],"history":[],"notices":[],` +
		`"code":"cold_start","reason":"Cold start: no alignment data available, human input required","since":"` + b.now(s).Outcome().Since.String() + `","humans":["human"]}`
	if string(text) != want || len(items[1].Proposals) != 2 {
		t.Errorf("the item is\n%s\nwant\n%s", text, want)
	}
	b.propose(second, "human", "again")
	b.force(s, "finish")
	if items, _, err = b.r.Inbox(b.ctx, session.ListQuery{}, ""); err != nil || len(items) != 0 {
		t.Errorf("answered, the inbox is %+v (%v)", items, err)
	}
}

// TestEvaluations compares a specialist with what humans decided, in all, the
// first and the last rounds in which it proposed.
func TestEvaluations(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: `"open":{"transitions":{"again":"open","more":"open","finish":"done"}},"done":{}`, who: []string{fn("a"), fn("b"), human("human"), half}})
	s := b.start(m)
	for i, said := range []string{"again", "more", "finish", "", "again"} { // decided is always again
		if said != "" {
			b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: said, Usage: given(dollar, int64(i*10), 0, 0)})
		}
		b.propose(s, "b", "finish")
		b.force(s, "again")
	}
	for _, c := range []struct {
		first, last int
		want        string
	}{
		{0, -1, "4 2 3 0.5 0.75 4 23.333"}, {2, -1, "2 1 2 0.5 1 2 10"}, {1, -1, "1 1 1 1 1 1 0"},
		{-1, 0, "4 2 3 0.5 0.75 4 23.333"}, {-1, 2, "2 1 1 0.5 0.5 2 30"}, {-1, 99, "4 2 3 0.5 0.75 4 23.333"},
	} {
		evaluate, n := report.EvaluateAlignment, c.first
		if c.first < 0 {
			evaluate, n = report.EvaluateAccuracy, c.last
		}
		e, err := evaluate(b.ctx, b.r, "desk", "a", n)
		b.ok(err)
		if got := fmt.Sprint(e.Rounds, e.MatchingTransition, e.MatchingState, e.TransitionRate, e.StateRate, e.TotalCostUSD, e.MeanLatencyMsec); got != c.want {
			t.Errorf("over %d rounds: %s, want %s", n, got, c.want)
		}
	}
	if e, err := report.EvaluateAccuracy(b.ctx, b.r, "desk", "nobody", 0); err != nil || e.Rounds != 0 || e.TransitionRate != 0 {
		t.Errorf("of nobody: %+v (%v)", e, err)
	}
	if now := b.now(s); now.Executed != 5 || now.Sequence != b.raw(s)[len(b.raw(s))-1].Seq {
		t.Error("evaluating changed the session")
	}
}

// TestExemplarsGrowLinearly forces 200 decisions: the exemplars are flat, so the
// last is no larger than the hundredth but for the history, which is cut.
func TestExemplarsGrowLinearly(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), human("human"), half)
	s := b.start(m)
	for range 200 {
		b.propose(s, "a", "finish")
		b.force(s, "again")
	}
	exemplars, err := b.store.Exemplars(b.ctx, "desk", "open", 0)
	b.ok(err)
	if len(exemplars) != 200 {
		t.Fatalf("%d exemplars", len(exemplars))
	}
	for i, e := range exemplars {
		if len(e.Context) > 16<<10 || !strings.Contains(string(e.Context), `"exemplars":[]`) {
			t.Fatalf("exemplar %d has a context of %d bytes", i, len(e.Context))
		}
	}
	if !exemplars[199].Truncated || exemplars[0].Truncated {
		t.Error("the history of a long session is not cut, or that of a new one is")
	}
	book, _ := b.store.Book(b.ctx, "desk")
	if book.Tally(recordOf("a")).Total != 200 || book.Tally(recordOf("a")).Matching != 0 {
		t.Errorf("the tally is %+v", book.Tally(recordOf("a")))
	}
}
