package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
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
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != runner.CodeNoProposals || !strings.Contains(b.log(s, 2), "ask_failed a illegal_answer") {
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
