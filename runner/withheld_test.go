package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/verdict"
)

// withholding are machines whose open round withholds something, by why.
func withholding(b *bench, which string) *session.Session {
	b.Helper()
	switch which {
	case "collapse":
		return b.start(b.machine(def{states: `"open":{"collapse":{},"transitions":{"finish":"done","again":"open"}},"done":{}`,
			who: []string{fn("a"), fn("b"), human("ann"), human("bob"), arb("bayes")}, top: `"risk":{"maxError":0.05}`}))
	case "audit":
		return b.start(b.machine(def{states: `"open":{"audit":{"mode":"before","rate":1,"newcomerRate":1},"transitions":{"finish":"done","again":"open"}},"done":{}`,
			who: []string{fn("a"), human("ann"), human("bob"), half}}))
	}
	b.Fatalf("there is no %s", which)
	return nil
}

// TestWithheld keeps from whoever may decide what was proposed, in every form of the
// question, and shows it to who asked for it.
func TestWithheld(t *testing.T) {
	for _, which := range []string{"collapse", "audit"} {
		t.Run(which, func(t *testing.T) {
			b := newBench(t)
			b.said(map[string]string{"a": "finish", "b": "finish"})
			s := withholding(b, which)
			b.stepTo(s, runner.TickHuman)
			s = b.now(s)
			for _, viewer := range []string{"", "ann", "stranger"} {
				q, err := b.r.Question(b.ctx, s, machine.SpecialistID(viewer))
				b.ok(err)
				text, err := json.Marshal(q)
				b.ok(err)
				if q.Withheld == nil || q.Withheld.Proposals != len(s.Proposals()) || len(q.Proposals) != 0 || strings.Contains(string(text), "proposalId") || strings.Contains(q.Reason, "finish") {
					t.Errorf("%q sees %s", viewer, text)
				}
				view, err := json.Marshal(s.ViewFor(machine.SpecialistID(viewer)))
				if b.ok(err); strings.Contains(string(view), "proposalId") || strings.Contains(string(view), `it is finish`) {
					t.Errorf("%q sees the session %s", viewer, view)
				}
			}
			q, after, err := b.r.Reveal(b.ctx, s.ID, "ann", nil)
			b.ok(err)
			b.wantLog(s, s.Sequence, "revealed ann")
			if q.Withheld != nil || len(q.Proposals) != len(s.Proposals()) || after.Withheld("ann") != "" || after.Withheld("bob") == "" || after.Withheld("") == "" {
				t.Errorf("after a look ann sees %+v", q)
			}
			_, again, err := b.r.Reveal(b.ctx, s.ID, "ann", nil)
			if b.ok(err); again.Sequence != after.Sequence {
				t.Error("a second look is recorded again")
			}
			_, _, err = b.r.Reveal(b.ctx, s.ID, "stranger", nil)
			if !errors.Is(err, runner.ErrForbidden) {
				t.Errorf("a look of a stranger comes to %v", err)
			}
		})
	}
}

// TestLookIsNotBlind: rulings of who has looked are not blind, nor those of anybody
// once somebody has looked who was not named; those of others are.
func TestLookIsNotBlind(t *testing.T) {
	for _, c := range []struct {
		look, rules string
		blind       bool
	}{{"ann", "ann", false}, {"ann", "bob", true}, {"none", "ann", true}, {"", "ann", false}, {"", "bob", false}} {
		b := newBench(t)
		b.said(map[string]string{"a": "finish", "b": "finish"})
		s := withholding(b, "collapse")
		b.stepTo(s, runner.TickHuman)
		if c.look != "none" {
			_, _, err := b.r.Reveal(b.ctx, s.ID, machine.SpecialistID(c.look), nil)
			b.ok(err)
		}
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: machine.SpecialistID(c.rules), TransitionName: "again", Blind: true})
		lessons := b.lessons()
		if o := lessons[len(lessons)-1].Outcome; o == nil || o.Blind != c.blind {
			t.Errorf("after a look of %q the ruling of %s is %+v", c.look, c.rules, o)
		}
		b.stepTo(s, runner.TickHuman) // another round, another sight
		if b.now(s).Withheld(machine.SpecialistID(c.look)) == "" {
			t.Errorf("a look of %q lasts beyond its round", c.look)
		}
	}
}

// TestShownBeforeAudit: where a human was asked for another reason, everything is
// shown, and the ruling is not blind, whatever it says.
func TestShownBeforeAudit(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: `"open":{"audit":{"mode":"before","rate":1,"newcomerRate":1},"transitions":{"finish":"done","again":"open"}},"done":{}`,
		who: []string{fn("a"), fn("b"), human("ann"), half}}))
	b.said(map[string]string{"a": "finish", "b": "again"})
	if s.Withheld("ann") == "" {
		t.Error("before anybody is asked an audit may come")
	}
	b.stepTo(s, runner.TickHuman) // a cold start
	q, err := b.r.Question(b.ctx, b.now(s), "ann")
	if b.ok(err); q.Withheld != nil || len(q.Proposals) != 2 {
		t.Errorf("the question is %+v", q)
	}
	b.propose(s, "ann", "finish") // outvotes all, and is audited
	if b.now(s).Withheld("ann") != "" {
		t.Error("what was shown is withheld")
	}
}

// TestNothingWasShownBeforeAudit: where a human was asked while nobody had proposed, nothing
// was shown. What comes later may be under audit, and is withheld.
func TestNothingWasShownBeforeAudit(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: `"open":{"audit":{"mode":"before","rate":1,"newcomerRate":1},"transitions":{"finish":"done","again":"open"}},"done":{}`,
		who: []string{fn("a"), human("ann"), arb("firstProposal")}}))
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{}, errors.New("busy")
	})
	b.stepTo(s, runner.TickHuman) // nobody has proposed
	b.cast.say("a", "finish")
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickHuman)
	q, err := b.r.Question(b.ctx, b.now(s), "ann")
	if b.ok(err); q.Code != session.CodeAudit || q.Withheld == nil || q.Withheld.Proposals != 1 || len(q.Proposals) != 0 {
		t.Errorf("the question is %+v", q)
	}
	if !b.now(s).MayBeBlind("ann") {
		t.Error("a ruling on what was not shown is not blind")
	}
}

// TestConcealed leaves of an event in an open round that is withheld nothing that
// tells what was said.
func TestConcealed(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "again"})
	s := withholding(b, "collapse")
	b.stepTo(s, runner.TickHuman)
	s = b.now(s)
	for _, ev := range b.raw(s) {
		shown, less := s.Concealed(ev, true)
		data := shown.Data
		switch ev.Kind {
		case session.KindProposed:
			if !less || string(data) != "{}" || shown.Kind != "answered" {
				t.Errorf("%s shows %s", ev.Kind, data)
			}
		case session.KindJudged, session.KindAskFailed:
			if !less || strings.Contains(string(data), "finish") || strings.Contains(string(data), "specialistId") {
				t.Errorf("%s shows %s", ev.Kind, data)
			}
		default:
			if strings.Contains(string(data), "it is finish") {
				t.Errorf("%s shows %s", ev.Kind, data)
			}
		}
	}
}

// TestReasonNamesFailures: whoever is asked learns whose ask failed, and why; where
// that is withheld, how many did.
func TestReasonNamesFailures(t *testing.T) {
	for which, want := range map[string]string{"shown": "No proposals: a failed: connection refused", "withheld": "1 of 1 asks failed"} {
		b := newBench(t)
		d := def{states: `"open":{"transitions":{"finish":"done","again":"open"}},"done":{}`, who: []string{fn("a"), human("ann"), half}}
		if which == "withheld" {
			d.states, d.who, d.top = strings.Replace(d.states, `{"transitions"`, `{"collapse":{},"transitions"`, 1), []string{fn("a"), human("ann"), arb("bayes")}, `"risk":{"maxError":0.05}`
		}
		b.cast.play("a", failing(errors.New("connection refused")))
		s := b.start(b.machine(d))
		b.stepTo(s, runner.TickHuman)
		q, err := b.r.Question(b.ctx, b.now(s), "")
		if b.ok(err); !strings.HasSuffix(q.Reason, want) || which == "withheld" && strings.Contains(q.Reason, "refused") {
			t.Errorf("%s: the reason is %q, want ... %q", which, q.Reason, want)
		}
	}
}

// TestLookOfNobodyFits: once somebody unnamed has looked, a ruling may be about the question as they
// saw it (cases.md 7.3).
func TestLookOfNobodyFits(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"a": "finish", "b": "finish"})
	s := withholding(b, "collapse")
	b.stepTo(s, runner.TickHuman)
	q, _, err := b.r.Reveal(b.ctx, s.ID, "", nil)
	b.ok(err)
	if a := b.rule(q.Choose("ann", "finish")); !a.Executed {
		t.Errorf("it is refused: %s", a.GuardReason)
	}
}

// TestHistoryIsTheNewest: a question shows the newest 20 transitions (cases.md 7.1).
func TestHistoryIsTheNewest(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(human("human"), half))
	for i := range 23 {
		b.executed(s, "human", "again", payload(fmt.Sprintf(`{"n":%d}`, i)))
	}
	q, err := b.r.Question(b.ctx, b.now(s), "human")
	if b.ok(err); len(q.History) != 20 || string(q.History[0].MetaJSON) != `{"n":3}` || string(q.History[19].MetaJSON) != `{"n":22}` {
		t.Errorf("the history has %d, from %s", len(q.History), q.History[0].MetaJSON)
	}
}

// TestProposedAfterFailure: whoever has proposed since is not among those who failed (cases.md
// 7.1).
func TestProposedAfterFailure(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", failing(errors.New("connection refused")))
	b.cast.play("b", failing(errors.New("no route")))
	s := b.start(b.machine(def{states: `"open":{"transitions":{"finish":{"target":"done","approvals":2},"again":"open"}},"done":{}`, who: []string{fn("a"), fn("b"), human("ann"), human("bob"), half}}))
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "ann", "finish", session.CodeApprovals)
	b.propose(s, "a", "again")
	q, err := b.r.Question(b.ctx, b.now(s), "bob")
	if b.ok(err); q.Reason != "1 of 2 approvals for finish: ann; b failed: no route" {
		t.Errorf("the reason is %q", q.Reason)
	}
}

// TestAskedAgainIsWithheld: where failures are withheld, nobody sees who is asked again:
// not in the log, not among those whose answers are out.
func TestAskedAgainIsWithheld(t *testing.T) {
	b := newBench(t)
	d := def{states: `"open":{"collapse":{},"transitions":{"finish":"done","again":"open"}},"done":{}`,
		who: []string{web("a"), fn("b"), human("ann"), arb("bayes")}, top: `"risk":{"maxError":0.05}`}
	b.cast.play("a", failing(errors.New("connection refused")))
	b.cast.say("b", "finish")
	s := b.start(b.machine(d))
	b.stepTo(s, runner.TickHuman)
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
	b.ok(err)
	b.cast.play("a", failing(specialist.ErrAccepted)) // it answers later
	b.stepTo(s, runner.TickWaiting)
	s = b.now(s)
	if asks := s.OpenAsks(); len(asks) != 1 || asks[0].SpecialistID != "a" {
		t.Fatalf("%v are asked again", asks)
	}
	for _, viewer := range []machine.SpecialistID{"", "ann"} {
		if asks := s.OpenAsksFor(viewer); len(asks) != 1 || asks[0].SpecialistID != "" || s.ViewFor(viewer).Waiting != nil {
			t.Errorf("%q sees that %v is asked again", viewer, asks)
		}
	}
	for _, ev := range b.raw(s) {
		again := strings.Contains(string(ev.Data), `"ask":3`)
		if shown, less := s.Concealed(ev, true); ev.Kind == session.KindAsked && (less != again || less && string(shown.Data) != "{}") {
			t.Errorf("the log shows %s of %s", shown.Data, ev.Data)
		}
	}
	_, _, err = b.r.Reveal(b.ctx, s.ID, "ann", nil)
	b.ok(err)
	if s = b.now(s); s.Withheld("ann") != "" {
		t.Error("a look shows nothing")
	}
}

// TestWithheldReason: a question does not say for which transition a consensus was that its guard
// refused, as long as what was proposed is withheld (cases.md 7.2).
func TestWithheldReason(t *testing.T) {
	refuse := false
	seed := seeded(store.NewMemory())
	d := newDesk(newBench(t, func(c *runner.Config) {
		seed(c)
		c.Guards = []guard.Checker{guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict {
			if !refuse {
				return verdict.Verdict{}
			}
			return verdict.Reject(verdict.Escalate, "house", s.Transition+" is for nobody")
		})}
	}), .98, .9, .85)
	for i := 0; i < 200 && d.collapse().StageOf() == trust.Calibrating; i++ {
		d.run(1)
	}
	refuse, d.truth, d.p = true, "left", []float64{1, 1, 1}
	tick := d.stepTo(d.s, runner.TickHuman)
	if text := "house: left is for nobody"; tick.Reasoning() != text || d.now(d.s).Outcome().Reason != text {
		t.Fatalf("the step came to %s: %s", tick.Code, tick.Reasoning())
	}
	for _, show := range []bool{false, true} {
		q, err := d.r.Question(d.ctx, d.now(d.s), "human")
		if show {
			q, _, err = d.r.Reveal(d.ctx, d.s.ID, "human", nil)
		}
		if d.ok(err); strings.Contains(q.Reason, "left") != show {
			t.Errorf("shown %t, the question says %q", show, q.Reason)
		}
	}
}

// TestWithheldNotices: the notice with which a guard sent an attempt back does not tell what is
// withheld (cases.md 7.2).
func TestWithheldNotices(t *testing.T) {
	for audit, want := range map[string]int{"": 1, `"audit":{"mode":"before","rate":1e-9,"newcomerRate":1e-9},`: 0} {
		b := newBench(t, func(rc *runner.Config) {
			rc.Guards = []guard.Checker{reject("again", verdict.Retry, "house", "again is for nobody")}
		})
		b.cast.say("a", "again")
		s := b.start(b.machine(def{states: `"open":{` + audit + `"transitions":{"finish":"done","again":{"target":"open","irreversible":false}}},"done":{}`, who: []string{fn("a"), human("ann"), half}}))
		b.stepTo(s, runner.TickRejected)
		q, err := b.r.Question(b.ctx, b.now(s), "ann")
		if b.ok(err); len(q.Notices) != want {
			t.Errorf("with %q the question says %q", audit, q.Notices)
		}
	}
}
