package runner_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// calibration returns that of a machine, as it is followed and as another process folds it.
func (b *bench) calibration() *report.Calibration {
	b.Helper()
	c, err := report.CalibrationOf(b.ctx, b.r, "desk", "")
	b.ok(err)
	again, err := report.CalibrationOf(b.ctx, b.runner(), "desk", "")
	b.ok(err)
	got, _ := json.Marshal(c)
	if want, _ := json.Marshal(again); string(got) != string(want) {
		b.Errorf("followed it is\n%s\nfolded at once\n%s", got, want)
	}
	c, err = report.CalibrationOf(b.ctx, b.r, "desk", "open")
	b.ok(err)
	return c
}

// TestCalibrationOf: what bayes stated in rounds that humans ruled on because they were asked,
// and in those they were not; what is taken back is gone.
func TestCalibrationOf(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arb("bayes")}}))
	if c := b.calibration(); c.Looks != 0 || c.Enough || c.ECE != nil {
		t.Errorf("before anything it is %+v", c)
	}
	var rounds []string
	var want trust.Calibration
	for i := range 32 {
		b.stepTo(s, runner.TickHuman)
		rounds = append(rounds, b.now(s).Key().ID())
		b.force(s, map[bool]string{true: "park", false: "again"}[i%8 == 7])
		if i%8 == 7 {
			b.force(s, "back") // where there is nothing to choose
		}
		if i == 28 {
			if c := b.calibration(); c.Looks != 29 || c.Enough {
				t.Errorf("of 29 looks: %+v", c)
			}
		}
	}
	b.force(s, "finish") // nobody had asked
	for _, o := range b.outcomes() {
		want.Add(&o)
	}
	c := b.calibration()
	got, _ := json.Marshal(c.CalibrationReport)
	if text, _ := json.Marshal(want.Report()); c.Looks != 32 || !c.Enough || string(got) != string(text) {
		t.Errorf("it is\n%s\nwant\n%s", got, text)
	}
	b.ok(b.retract(s, rounds[7], "human"))
	if c := b.calibration(); c.Looks != 31 {
		t.Errorf("after one was taken back, %d looks are left", c.Looks)
	}
	for _, of := range []struct{ machine, state string }{{"nothing", ""}, {"desk", "nowhere"}} {
		if _, err := report.CalibrationOf(b.ctx, b.r, of.machine, machine.StateName(of.state)); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("of %v: %v", of, err)
		}
	}
}

// TestCalibrationOfAudits: a drawn look stands for as many rounds as the draw says.
func TestCalibrationOfAudits(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arb("bayes", threshold("0.3"))}, top: `"audit":{"rate":0.5}`}))
	for range trust.CalibratedFrom {
		b.stepTo(s, runner.TickHuman)
		b.force(s, "again")
	}
	for range 30 {
		b.stepTo(s, runner.TickAdvanced)
	}
	for _, v := range b.now(s).Reviews() {
		_, err := b.review(s, v.Key.Round, "human", "park")
		b.ok(err)
	}
	drawn, rare := int64(0), 0
	var want trust.Calibration
	for _, o := range b.outcomes() {
		if want.Add(&o); o.Automatic {
			drawn++
			if o.SamplingProb == exact.One/2 {
				rare++
			}
		}
	}
	c := b.calibration()
	got, _ := json.Marshal(c.CalibrationReport)
	if text, _ := json.Marshal(want.Report()); drawn < 5 || drawn > 25 || rare != int(drawn) || c.Looks != drawn+trust.CalibratedFrom || string(got) != string(text) {
		t.Errorf("%d looks were drawn, %d at one half: %s", drawn, rare, got)
	}
}
