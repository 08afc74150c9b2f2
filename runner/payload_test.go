package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// paying is a desk of one choice that needs a reason.
const paying = `"open":{"transitions":{"pay":{"target":"done","parameters":{"type":"object","required":["reason"],"properties":{"reason":{"type":"string"}}}},"drop":"done"}},"done":{}`

// TestParametersBind (C7.5): where a transition's parameters ask for something, nobody
// who could give it chooses the transition without it.
func TestParametersBind(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "pay")
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, states: paying}))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeNoProposals || !strings.Contains(b.log(s, 2), "ask_failed a illegal_answer") {
		t.Errorf("it came to %s:\n%s", tick.Code, b.log(s, 2))
	}
	for _, meta := range []json.RawMessage{nil, json.RawMessage(`null`), json.RawMessage(`{}`)} {
		if _, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "pay", MetaJSON: meta}); err == nil || !strings.Contains(err.Error(), "reason") {
			t.Errorf("proposed with %s: %v", meta, err)
		}
		a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "pay", MetaJSON: meta})
		if a.Executed || !strings.Contains(a.GuardReason, "reason") {
			t.Errorf("ruled with %s: %+v, %v", meta, a, err)
		}
	}
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "pay", MetaJSON: json.RawMessage(`{"reason":"due"}`)})
	if b.ok(err); !a.Executed {
		t.Errorf("ruled with a reason: %+v", a)
	}
}

// TestPayloadOfTheHeaviest (C7.5): a rule's vote counts, and the heaviest proposal with a
// payload is executed; without any a human decides.
func TestPayloadOfTheHeaviest(t *testing.T) {
	for _, given := range []bool{true, false} {
		b := newBench(t)
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{TransitionName: "pay", MetaJSON: json.RawMessage(`{"reason":"due"}`)}, nil
		})
		if !given {
			b.cast.say("a", "drop")
		}
		m := b.machine(def{who: []string{first("rule"), fn("a"), human("human"), entry("arbiter", "arb", `"strategyFn":"= \"pay\""`)}, states: paying})
		s := b.start(m)
		if !given {
			if tick := b.stepTo(s, runner.TickHuman); tick.Code != "no_payload" {
				t.Errorf("it came to %s: %s", tick.Code, tick.Reasoning())
			}
			continue
		}
		b.stepTo(s, runner.TickAdvanced)
		if last := b.now(s).Last(); last.SpecialistID != "a" || string(last.MetaJSON) != `{"reason":"due"}` {
			t.Errorf("executed is %s of %s", last.MetaJSON, last.SpecialistID)
		}
	}
}

// pays answers with pay and a reason.
func pays(reason string) func(context.Context, specialist.Question) (specialist.Answer, error) {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "pay", MetaJSON: json.RawMessage(`{"reason":"` + reason + `"}`)}, nil
	}
}

// TestPayloadIsWaitedFor (C7.5): a round whose winner lacks its payload goes on as long as
// somebody is left who could give it, in every mode, and whoever decides.
func TestPayloadIsWaitedFor(t *testing.T) {
	only := `"open":{"transitions":{"pay":{"target":"done","parameters":{"type":"object","required":["reason"]}}}},"done":{}`
	for name, d := range map[string]def{
		"all":              {top: `"solicit":"all"`, states: paying, who: []string{first("rule"), web("a"), arb("firstProposal")}},
		"eager":            {top: `"solicit":"eager"`, states: paying, who: []string{first("rule"), first("twin"), web("a"), arb("firstProposal")}},
		"waves":            {top: `"solicit":{"mode":"sequential","wave":1}`, states: paying, who: []string{first("rule"), web("a", estimated("1")), arb("firstProposal")}},
		"by information":   {top: `"solicit":{"mode":"sequential","wave":"auto"}`, states: only, who: []string{first("rule"), web("b", estimated("3")), web("a", estimated("2")), arb("bayes")}},
		"one option alone": {top: `"solicit":{"mode":"sequential","wave":1}`, states: only, who: []string{first("rule"), first("twin"), web("a", estimated("2")), arb("bayes")}},
	} {
		b := newBench(t)
		b.cast.play("a", pays("due"))
		b.cast.play("b", pays("late"))
		s := b.start(b.machine(d))
		for b.step(s).Status == runner.TickSolicited { // eager asks one in a step
		}
		if last := b.now(s).Last(); last == nil || last.SpecialistID != "a" || string(last.MetaJSON) != `{"reason":"due"}` {
			t.Errorf("%s: executed is %+v:\n%s", name, last, b.log(s, 2))
		}
		if name == "by information" && strings.Contains(b.log(s, 2), "proposed b") {
			t.Errorf("%s: the costlier one was asked too:\n%s", name, b.log(s, 2))
		}
	}
}

// TestWhosePayload (C7.5): of several payloads for the winner that of the heaviest is
// executed, the first of equals, and the question shows the same.
func TestWhosePayload(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"x", "y", "z"} {
		b.cast.play(id, pays(id))
	}
	m := b.machine(def{who: []string{first("rule"), fn("x"), fn("y"), fn("z"), human("human"), entry("arbiter", "arb", `"strategyFn":"= \"pay\""`)}, states: paying})
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	if last := b.now(s).Last(); last.SpecialistID != "x" {
		t.Errorf("of equals executed is that of %s", last.SpecialistID)
	}
	b.train(b.machine(def{who: []string{first("rule"), fn("x"), fn("y"), fn("z"), human("human"), half}}), "y", 9, 9)
	b.train(b.machine(def{who: []string{first("rule"), fn("x"), fn("y"), fn("z"), human("human"), half}}), "x", 1, 9)
	s = b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	if last := b.now(s).Last(); last.SpecialistID != "y" || string(last.MetaJSON) != `{"reason":"y"}` {
		t.Errorf("executed is %s of %s", last.MetaJSON, last.SpecialistID)
	}
	said := 0
	for _, rec := range b.records(s) {
		said += strings.Count(string(rec.Events), `"parametersBind":true`)
	}
	if said != 1 {
		t.Errorf("%d verdicts say that parameters bound", said)
	}
	e := b.explain(s, "")
	if !e.Changes.Reproduced {
		t.Errorf("it is not reproduced: %+v", e.Changes)
	}
	if w := variant(e, "y", ""); w.Transition != "pay" {
		t.Errorf("without y: %+v", w)
	}

	b.cast.say("z", "drop")
	b.cast.say("y", "drop")
	s = b.start(b.machine(def{who: []string{fn("y"), fn("z"), human("human"), half}, states: paying}))
	b.stepTo(s, runner.TickAdvanced)
	e = b.explain(s, "")
	if w := variant(e, "y", "pay"); w.Transition != "pay" {
		t.Errorf("had y proposed to pay, which it can: %+v", w)
	}
	b.cast.play("y", pays("y"))

	irreversible := strings.Replace(paying, `"target":"done","parameters"`, `"target":"done","irreversible":true,"parameters"`, 1)
	s = b.start(b.machine(def{who: []string{first("rule"), fn("x"), fn("y"), human("human"), half}, states: irreversible}))
	b.stepTo(s, runner.TickHuman)
	q, err := b.r.Question(b.ctx, b.now(s), "")
	if b.ok(err); string(q.Transitions[0].MetaJSON) != `{"reason":"y"}` || !q.Transitions[0].MetaJSONRequired || q.Transitions[1].MetaJSON != nil || q.Transitions[1].MetaJSONRequired {
		t.Errorf("the choices are %+v", q.Transitions)
	}
}

// TestPayloadIsWithheld (C7.2, C7.5): where proposals are withheld no choice shows a payload, and
// no code tells that some transition won which needs one.
func TestPayloadIsWithheld(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", pays("due"))
	m := b.machine(def{who: []string{fn("a"), human("human"), arb("bayes")}, top: `"collapse":{},"risk":{"maxError":0.3,"confidence":0.5}`, states: paying})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	q, err := b.r.Question(b.ctx, b.now(s), "human")
	if b.ok(err); q.Withheld == nil || q.Transitions[0].MetaJSON != nil {
		t.Errorf("the question shows %+v", q.Transitions)
	}
	q, _, err = b.r.Reveal(b.ctx, s.ID, "human", nil)
	if b.ok(err); string(q.Transitions[0].MetaJSON) != `{"reason":"due"}` {
		t.Errorf("after a look it shows %+v", q.Transitions)
	}

	waiting, f := b.start(m), folderOf(t, m)
	b.stepTo(waiting, runner.TickHuman)
	for _, rec := range b.records(waiting) {
		events := bytes.ReplaceAll(rec.Events, []byte(`"kind":"needs_human","data":{"code":"`), []byte(`"kind":"needs_human","data":{"code":"no_payload","was":"`))
		_, err := f.Add(events)
		b.ok(err)
	}
	if o := f.Session().OutcomeFor(""); f.Session().Outcome().Code != session.CodeNoPayload || o.Code != session.CodeWithheld {
		t.Errorf("%+v is told as %+v", f.Session().Outcome(), o)
	}
}

// TestPendingPayload (C7.5): the ruling that waits for others says what goes with its choice, to
// those who may see it.
func TestPendingPayload(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{human("human"), human("other"), half}, top: `"secondHuman":{"rate":1,"when":"before"}`, states: paying})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "pay", MetaJSON: json.RawMessage(`{"reason":"due"}`)})
	for viewer, want := range map[string]string{"human": `{"reason":"due"}`, "other": "", "": ""} {
		q, err := b.r.Question(b.ctx, b.now(s), machine.SpecialistID(viewer))
		if b.ok(err); string(q.Transitions[0].MetaJSON) != want {
			t.Errorf("%q is shown %s", viewer, q.Transitions[0].MetaJSON)
		}
	}
}

// TestChampionWithoutPayload (C7.5): a champion that has no payload to give does not keep from
// being asked who has.
func TestChampionWithoutPayload(t *testing.T) {
	b := newBench(t, foreseen)
	states := strings.Replace(deskStates, `"finish":"done"`, `"finish":{"target":"done","parameters":{"type":"object","required":["reason"]}}`, 1)
	m := b.machine(def{who: []string{fn("a"), first("best"), human("human"), entry("arbiter", "arb", `"strategyFn":"= \"finish\""`)}, states: states, top: `"solicit":{"champion":true}`})
	plain := b.machine(def{who: []string{fn("a"), first("best"), human("human"), half}})
	b.cast.say("a", "park")
	b.train(plain, "best", 20, 20)
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "finish", MetaJSON: json.RawMessage(`{"reason":"due"}`)}, nil
	})
	for range 20 {
		s := b.start(m)
		b.stepTo(s, runner.TickAdvanced)
		if last := b.now(s).Last(); last == nil || string(last.MetaJSON) != `{"reason":"due"}` {
			t.Fatalf("executed is %+v:\n%s", last, b.log(s, 2))
		}
	}
	if !strings.HasPrefix(b.champions(), "promoted best") {
		t.Errorf("nobody was champion: %s", b.champions())
	}
}

// TestEvaluatedPayload (C7.5): who has a round evaluated cannot give the winner a payload that
// its parameters refuse.
func TestEvaluatedPayload(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", pays("due"))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, states: paying}))
	b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "pay", MetaJSON: json.RawMessage(`{"reason":"due"}`)})
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, MetaJSON: json.RawMessage(`{"reason":3}`)})
	if a.Executed || err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("with another payload: %+v, %v", a, err)
	}
	a, err = b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, MetaJSON: json.RawMessage(`null`)})
	if b.ok(err); !a.Executed || string(b.now(s).Last().MetaJSON) != `{"reason":"due"}` {
		t.Errorf("with null: %+v", a)
	}
}
