package runner_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// seconded is a machine in which another human decides before anything is executed.
func seconded(b *bench) *machine.Machine {
	return b.machine(def{who: []string{fn("a"), human("human"), human("carol"), human("dave"), arb("bayes")}, top: `"secondHuman":{"rate":1,"when":"before"}`})
}

// TestManner: how a human came to a word is in the log and in the record of the decision, is read
// back as it was written, and is not among what a repeated ruling is held to.
func TestManner(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := seconded(b)
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	rule := func(who string, how session.Manner) {
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: "finish", Blind: true, Manner: how})
	}
	rule("human", session.Manner{Looked: 30_000, Note: "ü\u2028", Bulk: true})
	rule("carol", session.Manner{Looked: session.MaxLooked + 1, Note: "asked dave"})
	var logged []byte
	for _, rec := range b.records(s) {
		logged = append(append(logged, rec.Events...), '\n')
	}
	for _, want := range []string{`"looked":30000,"note":"ü` + "\u2028" + `","bulk":true}}`, `"looked":86400000,"note":"asked dave"}}`} {
		if !bytes.Contains(logged, []byte(want)) {
			t.Errorf("the log has no %s:\n%s", want, logged)
		}
	}
	if again, _, err := fold(t, m, bytes.TrimSpace(logged)); err != nil || !bytes.Equal(again, bytes.TrimSpace(logged)) {
		t.Errorf("%v: written again the log is\n%s", err, again)
	}
	for _, bad := range []string{`"looked":-1`, `"looked":86400001`, `"looked":"1"`} {
		if _, _, err := fold(t, m, bytes.Replace(bytes.TrimSpace(logged), []byte(`"looked":30000`), []byte(bad), 1)); err == nil {
			t.Errorf("a log with %s is read", bad)
		}
	}
	if d := b.lastDecision(); d.Looked != session.MaxLooked || d.Note != "asked dave" || d.Bulk || len(d.Looks) != 2 || d.Looks[1] != 30_000 {
		t.Errorf("the record is %+v", d)
	}
}

// TestMannerRefused: nobody looks for less than nothing, and notes are as large as reasonings at most.
func TestMannerRefused(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), arb("firstProposal")))
	b.stepTo(s, runner.TickAdvanced)
	for what, how := range map[string]session.Manner{"looked": {Looked: -1}, "note": {Note: strings.Repeat("x", 64<<10+1)}} {
		_, ruled := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Manner: how})
		_, reviewed := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again", Manner: how})
		for _, err := range []error{ruled, reviewed} {
			if !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestBulkIsNotBlind: what was given in bulk is no evidence for letting somebody decide alone,
// be it a ruling, one of two that agree, or a review.
func TestBulkIsNotBlind(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "b": "finish"})
		s := withholding(b, "collapse")
		b.stepTo(s, runner.TickHuman)
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "ann", TransitionName: "again", Blind: true, Manner: session.Manner{Bulk: bulk}})
		if o := b.lessons()[0].Outcome; o == nil || o.Blind == bulk {
			t.Errorf("bulk %v: the ruling is %+v", bulk, o)
		}

		b = newBench(t)
		b.cast.say("a", "again")
		s = b.start(seconded(b))
		b.stepTo(s, runner.TickHuman)
		for _, who := range []machine.SpecialistID{"human", "carol"} {
			b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: who, TransitionName: "finish", Blind: true, Manner: session.Manner{Bulk: bulk && who == "human"}})
		}
		if o := b.lessons()[0].Outcome; o == nil || o.Blind == bulk {
			t.Errorf("bulk %v: of two who agree the outcome is %+v", bulk, o)
		}

		b = newBench(t)
		b.cast.say("a", "finish")
		s = b.start(b.machine(def{who: []string{fn("a"), human("human"), arb("firstProposal")}, top: `"audit":{"rate":1}`}))
		b.stepTo(s, runner.TickAdvanced)
		_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: b.now(s).Reviews()[0].Key.ID(), SpecialistID: "human", TransitionName: "again", Blind: true, Manner: session.Manner{Bulk: bulk, Note: "in one go"}})
		b.ok(err)
		if o := b.lessons()[0].Outcome; o == nil || o.Blind == bulk {
			t.Errorf("bulk %v: the review is %+v", bulk, o)
		}
	}
}

// TestMeasuredMinutes: what humans took is what was recorded, and an assumption for the rest, in
// metrics and in back-tests: both say of how much of it which is true.
func TestMeasuredMinutes(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), human("dave"), arb("bayes")}, top: `"secondHuman":{"rate":1}`})
	s := b.start(m)
	want := func(decisions, looks, measured int, minutes float64) {
		t.Helper()
		got, err := report.MetricsOf(b.ctx, b.r, m.Name(), "")
		b.ok(err)
		if got.HumanDecisions != decisions || got.HumanLooks != looks || got.HumanMeasured != measured || got.HumanMinutes != minutes {
			t.Errorf("of %d decisions and %d looks %d are measured: %v minutes, want %d, %d, %d, %v", got.HumanDecisions, got.HumanLooks, got.HumanMeasured, got.HumanMinutes, decisions, looks, measured, minutes)
		}
	}
	decide := func(looked int64) {
		b.stepTo(s, runner.TickHuman)
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "human", TransitionName: "again", Manner: session.Manner{Looked: looked}})
	}
	decide(0)
	want(1, 0, 0, 2)
	decide(30_000)
	want(2, 0, 1, 2.5)
	decide(90_000)
	want(3, 0, 2, 4)
	_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: b.now(s).Reviews()[0].Key.ID(), SpecialistID: "carol", TransitionName: "again", Manner: session.Manner{Looked: 60_000}})
	b.ok(err)
	want(3, 1, 3, 5)
	r, err := backtest.Run(b.ctx, backtest.Config{Source: b.store, MachineName: m.Name(), HumanMinutes: 3})
	b.ok(err)
	if o, n := r.Total.Old, r.Total.New; o.Humans != 3 || o.HumanMeasured != 2 || o.HumanMinutes != 5 || n.HumanMeasured != 2 || n.HumanMinutes != [2]float64{5, 5} {
		t.Errorf("the back-test has %+v and %+v", o, n)
	}
}
