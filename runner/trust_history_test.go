package runner_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// histories returns the series of a machine, checked against what its trust is now and
// against a process that folds all of the past at once.
func (b *bench) histories(q report.HistoryQuery) (list []report.TrustSeries) {
	b.Helper()
	for t, err := range report.TrustHistoryOf(b.ctx, b.r, "desk", q) {
		b.ok(err)
		list = append(list, t)
	}
	trusted, err := report.TrustOf(b.ctx, b.r, "desk", "")
	b.ok(err)
	trusted = slices.DeleteFunc(trusted, func(t report.Trusted) bool {
		return q.State != "" && t.State != q.State || q.SpecialistID != "" && t.SpecialistID != q.SpecialistID
	})
	if len(list) != len(trusted) {
		b.Fatalf("%d series, and the trust of %d", len(list), len(trusted))
	}
	for i, t := range list {
		now, newest := trusted[i], t.Points[len(t.Points)-1]
		if t.State != now.State || t.SpecialistID != now.SpecialistID || newest.Trust != now.Trust || newest.K != now.K || newest.N != now.N || newest.Level != now.Level {
			b.Errorf("the newest point of %s in %s is %+v, and the trust %+v", t.SpecialistID, t.State, newest, now)
		}
	}
	i := 0
	for t, err := range report.TrustHistoryOf(b.ctx, b.runner(), "desk", q) {
		b.ok(err)
		if got, want := fmt.Sprint(list[i]), fmt.Sprint(t); got != want {
			b.Errorf("followed, a series is\n%s\nfolded at once\n%s", got, want)
		}
		i++
	}
	return list
}

// TestTrustHistory: each human decision on what a specialist had proposed is a point with its
// round; lessons of other states, machines and versions move the newest; what is taken back is
// a point too; and nothing is told of rounds that nobody has decided yet.
func TestTrustHistory(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), fn("c"), human("human"), human("bob"), arb("bayes")}, top: `"quorum":"any"`})
	s := b.start(m)
	for _, t := range b.histories(report.HistoryQuery{}) {
		if len(t.Points) != 1 || t.Points[0].Index != 0 || t.Points[0].At != 0 || t.Points[0].RoundID != "" || t.Points[0].Low != 0 || t.Points[0].High.Text2() != "1.00" {
			b.Errorf("of nobody it is told %+v", t)
		}
	}
	var rounds []string
	for _, said := range []string{"again", "finish", "again"} {
		b.propose(s, "a", said)
		b.propose(s, "c", "again")
		rounds = append(rounds, b.now(s).Key().ID())
		b.force(s, "again")
		b.histories(report.HistoryQuery{})
	}
	of := func(state, who string) report.TrustSeries {
		b.Helper()
		return b.histories(report.HistoryQuery{State: state, SpecialistID: who})[0]
	}
	a := of("open", "a")
	for i, p := range a.Points {
		if want := []string{"1 of 1", "1 of 2", "2 of 3"}[i]; p.Index != int64(i+1) || fmt.Sprintf("%d of %d", p.K, p.N) != want || p.RoundID != rounds[i] || p.SessionID != s.ID.String() || p.At == 0 || p.Level != "state" {
			t.Errorf("point %d is %+v, want %s", i, p, want)
		}
	}
	if len(a.Marks) != 1 || a.Marks[0].Kind != "version" || a.Marks[0].Index != 1 || a.Marks[0].Version == "" {
		t.Errorf("the marks are %+v", a.Marks)
	}
	b.propose(s, "a", "park")
	if again := of("open", "a"); fmt.Sprint(again) != fmt.Sprint(a) {
		t.Errorf("an open round is told of: %+v", again)
	}
	b.force(s, "again")
	other := b.machine(def{name: "other", who: []string{fn("a"), human("human"), half}})
	b.train(other, "a", 2, 2)
	if p := of("open", "a").Points; len(p) != 5 || p[4].Index != 4 || p[4].RoundID != "" || p[4].Trust <= p[3].Trust || p[4].N != 4 || p[4].At <= p[3].At {
		t.Errorf("lessons of another machine leave %+v", p)
	}
	b.ok(b.retract(s, rounds[1], "human"))
	if p := of("open", "a").Points; len(p) != 5 || p[4].Index != 5 || p[4].K != 2 || p[4].N != 3 || p[4].RoundID != rounds[1] || !p[4].Retracted || p[3].Retracted {
		t.Errorf("a ruling that is taken back leaves %+v", p)
	}
	if m := of("open", "human"); len(m.Marks) != 0 || !m.Human || len(m.Points) != 1 {
		t.Errorf("of a human it is told %+v", m)
	}
}

// TestTrustHistoryVersions: a new version begins anew, and is marked, also before it was heard.
func TestTrustHistoryVersions(t *testing.T) {
	b := newBench(t)
	b.train(b.desk(fn("a"), human("human"), half), "a", 3, 4)
	b.start(b.desk(web("a"), human("human"), half)) // the newest definition has another a
	list := b.histories(report.HistoryQuery{State: "open", SpecialistID: "a"})
	p, marks := list[0].Points, list[0].Marks
	if len(p) != 5 || p[4].Index != 4 || p[4].RoundID != "" || p[4].N != 0 && p[4].N >= p[3].N || len(marks) != 2 || marks[1].Index != 4 || marks[1].Version == marks[0].Version {
		t.Errorf("the points are %+v, the marks %+v", p, marks)
	}
}

// TestTrustHistorySecond: of humans a point is told once it is known who was right, and of a
// round that waits for a second one nothing.
func TestTrustHistorySecond(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("carol"), human("dave"), arb("bayes")}, top: `"secondHuman":{"rate":1}`}))
	for range 2 {
		b.stepTo(s, runner.TickHuman)
		b.force(s, "again")
	}
	if p := b.histories(report.HistoryQuery{State: "open", SpecialistID: "a"})[0].Points; len(p) != 1 || p[0].N != 0 {
		t.Errorf("rounds that wait are told of: %+v", p)
	}
	_, err := b.review(s, 1, "carol", "again")
	b.ok(err)
	_, err = b.review(s, 2, "dave", "park")
	b.ok(err)
	for who, n := range map[string]int{"a": 1, "human": 1, "carol": 1, "dave": 0} {
		p := b.histories(report.HistoryQuery{State: "open", SpecialistID: who})[0].Points
		if int(p[len(p)-1].Index) != n || n > 0 && (p[0].K != 1 || p[0].N != 1 || p[0].RoundID == "") {
			t.Errorf("of %s it is told %+v", who, p)
		}
	}
	_, err = b.review(s, 2, "carol", "park")
	b.ok(err)
	if p := b.histories(report.HistoryQuery{State: "open", SpecialistID: "human", By: "dates"})[0].Points; len(p) != 2 || p[1].K != 1 || p[1].N != 2 || p[1].RoundID == p[0].RoundID {
		t.Errorf("who was wrong is told %+v", p)
	}
}

// TestTrustHistoryStages: what became of a state is marked beside everybody in it.
func TestTrustHistoryStages(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("bayes")}, top: `"collapse":{"target":0.9},"risk":{"maxError":0.1,"confidence":0.9}`})
	b.train(m, "a", 2, 3)
	b.ok(b.r.Demote(b.ctx, runner.Order{MachineName: "desk", State: "open", SpecialistID: "human", Reason: "to be sure"}))
	for state, want := range map[string]int{"open": 1, "parked": 0} {
		for _, series := range b.histories(report.HistoryQuery{State: state}) {
			stages := slices.DeleteFunc(series.Marks, func(m report.TrustMark) bool { return m.Kind == "version" })
			if len(stages) != want || want == 1 && (stages[0].Kind != session.KindStage || stages[0].Stage == "" || stages[0].Reason != "to be sure" || series.SpecialistID == "a" && stages[0].Index != 3) {
				t.Errorf("beside %s in %s it is marked %+v", series.SpecialistID, state, series.Marks)
			}
		}
	}
}
