package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestExplainCollapse explains rounds of humans and of a champion: all are decided again as they
// were, and the champion's say when it would not have decided alone.
func TestExplainCollapse(t *testing.T) {
	d := promoted(t, .99, .95, .9)
	d.run(20)
	rounds := int(d.now(d.s).Round) - 1
	stages, contested, reviewed := map[trust.Stage]int{}, 0, 0
	for n := 1; n <= rounds; n++ {
		if n > 8 && n < rounds-40 && n%20 != 0 {
			continue // each explanation learns all again
		}
		e := d.explain(d.s, fmt.Sprint(n))
		if e.Withheld || e.Collapse == nil || e.Verdict == nil || !e.Changes.Reproduced {
			t.Fatalf("round %d: %+v %+v", n, e, e.Changes)
		}
		stages[e.Collapse.StageOf()]++
		if len(e.Reviews) > 0 && e.Draws.Audit && e.Reviews[0].Review == "audit" {
			reviewed++
		}
		if strings.HasPrefix(e.Verdict.Reasoning, "Champion p0 decides alone") {
			if e.Collapse.StageOf() != trust.Championed || e.Collapse.Certificate.SpecialistID != "p0" || e.Executed != e.Votes[0].Transition || e.Changes.Distance != nil {
				t.Errorf("round %d: %+v", n, e)
			}
			if w := variant(e, "p0", ""); w.Code != session.CodeContested || !w.Changed {
				t.Errorf("round %d without the champion: %+v", n, w)
			}
			contested++
		}
	}
	if stages[trust.Calibrating] == 0 || contested < 10 || reviewed == 0 {
		t.Errorf("stages %v, %d of the champion, %d reviewed", stages, contested, reviewed)
	}
	m := d.metrics("")
	if s := m.States[0]; s.Stage != trust.Championed || s.StageSince == nil {
		t.Errorf("the metrics are %+v", s)
	}
	if got := signals(m); !strings.Contains(got, "info champion.promoted p0 is champion of state open since ") {
		t.Errorf("the signals are %s", got)
	}
}

// TestExplainWithheld: what a human is to decide blind is marked, until the ruling.
func TestExplainWithheld(t *testing.T) {
	d := newDesk(newBench(t), .9, .9, .9)
	d.truth = "left"
	if tick := d.stepTo(d.s, runner.TickHuman); tick.Reasoning() != "Human input required: cold start" {
		t.Errorf("the human is told %q", tick.Reasoning())
	}
	if e := d.explain(d.s, ""); !e.Withheld || e.Collapse.StageOf() != trust.Calibrating {
		t.Errorf("before the ruling it is %+v", e)
	}
	d.rule(runner.Ruling{SessionID: d.s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "left", Blind: true})
	if e := d.explain(d.s, "1"); e.Withheld || !e.Ruling.Blind {
		t.Errorf("after the ruling it is %+v", e)
	}
	if got := signals(d.metrics("")); strings.Contains(got, "stage.changed") {
		t.Errorf("the signals are %s", got)
	}
}

// TestExplainHeld: a state that was sent back to humans says so, and that no vote
// would have changed it.
func TestExplainHeld(t *testing.T) {
	d := newDesk(newBench(t, seeded(store.NewMemory())), .9, .9, .9)
	for i := 0; i < 200 && d.collapse().StageOf() == trust.Calibrating; i++ {
		d.run(1)
	}
	if d.collapse().StageOf() != trust.Consensus {
		t.Fatalf("the stages were %s", d.stages())
	}
	d.ok(d.r.Demote(d.ctx, runner.Order{MachineName: "desk", State: "open", SpecialistID: "human", Reason: "a holiday"}))
	d.truth, d.p = "left", []float64{1, 1, 1}
	d.stepTo(d.s, runner.TickHuman)
	e := d.explain(d.s, "")
	if e.Verdict.Code != "calibrating" || !e.Changes.Reproduced || slices.ContainsFunc(e.Changes.WhatIfs, func(w explain.WhatIf) bool { return w.Changed }) {
		t.Errorf("it is %+v, %+v", e.Verdict, e.Changes)
	}
	if got := signals(d.metrics("")); !strings.Contains(got, "info stage.changed The stage of state open is calibrating since ") || !strings.HasSuffix(got, ": a holiday") {
		t.Errorf("the signals are %s", got)
	}
}
