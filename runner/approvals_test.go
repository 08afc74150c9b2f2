package runner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// approved is a machine in which humans of two groups, and one of none, rule on a payment
// that a rule proposes. state and pay are members of the state and of the transition.
func (b *bench) approved(state, pay string) *machine.Machine {
	b.Helper()
	return parse(b.TB, `{"machineName":"m","initialState":"open","goalState":"paid","groups":{"finance":["alice","bob","carol"],"legal":["carol","lea"]},
	  "specialists":[{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},{"role":"proposer","specialistId":"carol","isHuman":true},
	    {"role":"proposer","specialistId":"lea","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},
	    {"role":"proposer","specialistId":"rule","strategyFn":"= 'pay'"},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}],
	  "states":{"open":{`+state+`"transitions":{"pay":{"target":"paid","approvals":`+pay+`},"back":"open","drop":"dropped"}},"paid":{},"dropped":{"final":true}}}`)
}

// TestApprovals: a transition is executed once so many humans have chosen it with the same
// payload, and by nobody's consensus (cases.md 4.2, 4.3).
func TestApprovals(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved(`"deciders":["group:finance"],`, `2`))
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeApprovals {
		t.Fatalf("a consensus comes to %s: %s", tick.Code, tick.Reasoning())
	}
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	if reason := b.now(s).Outcome().Reason; reason != "1 of 2 approvals for pay: alice" {
		t.Errorf("the reason is %q", reason)
	}
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeApprovals || b.now(s).Executed != 0 {
		t.Errorf("with one approval a step comes to %s", tick.Code)
	}
	b.recorded(s, "alice", "pay", session.CodeApprovals) // the same word again is no second one
	b.recorded(s, "bob", "pay", session.CodeApprovals, payload(`{"to":"x"}`))
	if reason := b.now(s).Outcome().Reason; reason != `1 of 2 approvals for pay: alice; 1 of 2 approvals for pay with {"to":"x"}: bob` {
		t.Errorf("the reason is %q", reason)
	}
	e := b.executed(s, "carol", "pay", payload(`{ "to": "x" }`))
	if !slices.Equal(e.Authors, []string{"bob", "carol"}) || e.SpecialistID != "carol" || string(e.MetaJSON) != `{"to":"x"}` || e.Draws != nil {
		t.Errorf("what was executed is %+v", e)
	}
	if l := b.lessons(); len(l) != 1 || l[0].Outcome.HumanID != "bob" || l[0].Second != nil {
		t.Errorf("approvals teach %+v", l)
	}
}

// TestApprovalIsWithdrawn: a word that waits may be replaced or taken back, and what needs
// no approval is executed at once (cases.md 4.3).
func TestApprovalIsWithdrawn(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved("", `3`))
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.recorded(s, "lea", "pay", session.CodeApprovals)
	a, err := b.word(s, "alice", "", back)
	if b.ok(err); !a.Recorded || b.now(s).Outcome().Reason != "1 of 3 approvals for pay: lea" {
		t.Errorf("taken back: %s", b.now(s).Outcome().Reason)
	}
	e := b.executed(s, "alice", "back")
	if e.Authors != nil || e.SpecialistID != "alice" {
		t.Errorf("who executes what takes no approvals: %+v", e)
	}
	if list, _ := b.now(s).PendingRulings(); list != nil {
		t.Error("rulings of a round outlive it")
	}
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.recorded(s, "bob", "pay", session.CodeApprovals)
	if b.executed(s, "dave", "pay").At == 0 {
		t.Error("nothing was executed")
	}
}

// TestEachGroup: one of each group has to be among those who approve (cases.md 4.2).
func TestEachGroup(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved("", `{"each":["group:finance","group:legal"]}`))
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.recorded(s, "bob", "pay", session.CodeApprovals)
	if reason := b.now(s).Outcome().Reason; reason != "2 of 2 approvals for pay: alice, bob, and nobody for legal" {
		t.Errorf("the reason is %q", reason)
	}
	if e := b.executed(s, "lea", "pay"); !slices.Equal(e.Authors, []string{"alice", "bob", "lea"}) {
		t.Errorf("the authors are %q", e.Authors)
	}
	s = b.start(b.approved("", `{"each":["group:finance","group:legal"]}`))
	b.recorded(s, "carol", "pay", session.CodeApprovals) // of both: she stands for one of them
	b.recorded(s, "dave", "pay", session.CodeApprovals)
	if reason := b.now(s).Outcome().Reason; reason != "2 of 2 approvals for pay: carol, dave, and nobody for legal" {
		t.Errorf("the reason is %q", reason)
	}
	if e := b.executed(s, "alice", "pay"); !slices.Equal(e.Authors, []string{"carol", "dave", "alice"}) {
		t.Errorf("the authors are %q", e.Authors)
	}
	s = b.start(b.approved("", `{"each":["group:legal","group:finance"],"count":2}`))
	b.recorded(s, "carol", "pay", session.CodeApprovals)
	b.executed(s, "lea", "pay")
}

// TestExcluded: nobody approves what is their own, however they say it (cases.md 4.2).
func TestExcluded(t *testing.T) {
	b := newBench(t)
	m := b.approved("", `{"count":2,"from":["group:finance"],"exclude":["starter","previous","open"]}`)
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{})
	b.refused(err, runner.ErrIllegal, `machine "m" excludes who has started a session from approvals: say as whom it is started (run --as ID)`)
	s := b.start(m, runner.StartOptions{Actor: &session.Actor{Subject: "local:x", Method: "local", Humans: []string{"alice"}}})
	for who, why := range map[string]string{
		"alice": `alice may not choose "pay": they started the session (exclude: starter)`,
		"dave":  `dave is none of those whose approval of "pay" counts: alice, bob, carol`,
	} {
		a, err := b.word(s, who, "pay")
		if b.refused(err, runner.ErrForbidden, why); a.Executed || a.Recorded || b.now(s).Sequence != 2 {
			t.Errorf("%s has ruled: %+v", who, a)
		}
	}
	b.executed(s, "bob", "back")
	_, err = b.word(s, "bob", "pay")
	b.refused(err, runner.ErrForbidden, `bob may not choose "pay": they executed the step before (exclude: previous)`)
	q, err := b.r.Question(b.ctx, b.now(s), "")
	b.ok(err)
	if a := q.Transitions[0].Approvals; a.Needed != 2 || len(a.Excluded) != 4 || !slices.Equal(a.Remaining, []string{"carol"}) ||
		!strings.HasPrefix(q.Transitions[0].Closed, `transition "pay" takes 2 approvals, and only 1 can be given: alice may not choose`) {
		t.Errorf("the question says %+v, closed: %s", *a, q.Transitions[0].Closed)
	}
}

// TestDeciders: only deciders rule, whoever proposes (cases.md 4.1).
func TestDeciders(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved(`"deciders":["group:legal"],`, `1`))
	_, err := b.word(s, "alice", "drop")
	b.refused(err, runner.ErrForbidden, `alice may only propose in state "open", where others decide: carol, lea`)
	b.submit(runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "alice", TransitionName: "drop"})
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "deciders" || b.now(s).Executed != 0 {
		t.Errorf("what somebody proposes who does not decide comes to %s: %s", tick.Code, tick.Reasoning())
	}
	q, err := b.r.Question(b.ctx, b.now(s), "lea")
	if b.ok(err); !slices.Equal(q.Humans, []string{"carol", "lea"}) {
		t.Errorf("deciders are %q", q.Humans)
	}
	b.ok(b.r.Disable(b.ctx, "m", "lea"))
	b.ok(b.r.Disable(b.ctx, "m", "carol"))
	q, err = b.r.Question(b.ctx, b.now(s), "")
	if b.ok(err); q.Code != session.CodeTooFew || !strings.Contains(q.Reason, "carol, lea") {
		t.Errorf("without deciders the question has the code %s: %s", q.Code, q.Reason)
	}
	b.stoppedWith(s, session.CodeTooFew, q.Reason)
	b.ok(b.r.Enable(b.ctx, "m", "lea"))
	if e := b.executed(s, "lea", "pay"); e.Authors != nil || e.SpecialistID != "lea" {
		t.Errorf("one approval is executed as %+v", e)
	}
}

// TestDecidersRuleOnTheIrreversible: what cannot be undone is executed by a human's proposal only
// where whoever takes part may rule; where only some do, one of them has to rule (cases.md 4.1).
func TestDecidersRuleOnTheIrreversible(t *testing.T) {
	for deciders, want := range map[string]runner.TickStatus{"": runner.TickAdvanced, `"deciders":["human"],`: runner.TickHuman} {
		b := newBench(t)
		s := b.start(b.machine(def{states: `"open":{` + deciders + `"transitions":{"finish":{"target":"done","irreversible":true},"again":"open"}},"done":{}`, who: []string{human("human"), half}}))
		b.propose(s, "human", "finish")
		if tick := b.step(s); tick.Status != want || want == runner.TickHuman && tick.Code != "irreversible" {
			t.Errorf("with %q what a human proposes comes to %s (%s)", deciders, tick.Status, tick.Code)
		}
		if want == runner.TickHuman {
			b.force(s, "finish")
		}
	}
}

// TestApprovalsDrawNobody: where approvals were given no second human is drawn (cases.md 4.6).
func TestApprovalsDrawNobody(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved(`"secondHuman":{"rate":1},`, `1`))
	if e := b.executed(s, "alice", "pay"); e.Draws != nil || len(b.now(s).Reviews()) != 0 {
		t.Errorf("drawn is %+v, %d reviews wait", e.Draws, len(b.now(s).Reviews()))
	}
}

// stoppedWith fails the test unless that is why a session needs a human, for whoever runs it.
func (b *bench) stoppedWith(s *session.Session, code, reason string) {
	b.Helper()
	tick, err := b.r.Step(b.ctx, s.ID)
	b.ok(err)
	if v := tick.View(); tick.Code != code || tick.Reasoning() != reason || v.Code != code || v.Reasoning != reason {
		b.Errorf("a step comes to %s (%s), want %s (%s)", tick.Code, tick.Reasoning(), code, reason)
	}
	if result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{}); err != nil || result.Code != code || result.Reason != reason {
		b.Errorf("a run comes to %s (%s), want %s (%s): %v", result.Code, result.Reason, code, reason, err)
	}
	page, _, err := b.r.Inbox(b.ctx, session.ListQuery{ID: s.ID.String()}, "")
	if b.ok(err); len(page) != 1 || page[0].Code != code || page[0].Reason != reason {
		b.Errorf("the inbox has %+v, want %s (%s)", page, code, reason)
	}
}

// TestReasonsGoByTheRoster: who is switched off is in no reason for waiting any more, and is
// again once they are switched on (cases.md 4.3, 4.6).
func TestReasonsGoByTheRoster(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved("", `3`))
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.recorded(s, "carol", "pay", session.CodeApprovals)
	b.ok(b.r.Disable(b.ctx, "m", "carol"))
	b.stoppedWith(s, session.CodeApprovals, "1 of 3 approvals for pay: alice")
	b.ok(b.r.Enable(b.ctx, "m", "carol"))
	b.stoppedWith(s, session.CodeApprovals, "2 of 3 approvals for pay: alice, carol")
	s = b.start(b.eyes("human", "carol", "dave"))
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.recorded(s, "carol", "finish", session.CodeSecondHuman)
	b.recorded(s, "dave", "again", session.CodeContested)
	b.ok(b.r.Disable(b.ctx, "desk", "carol"))
	b.stoppedWith(s, session.CodeContested, "Two humans have to choose the same: human chose park, dave chose again; no third human is left who may rule, so one of them takes the other's choice")
	b.ok(b.r.Disable(b.ctx, "desk", "dave"))
	b.stoppedWith(s, session.CodeTooFew, "Nobody can rule here: two humans have to choose the same, and only human may rule")
	b.ok(b.r.Enable(b.ctx, "desk", "carol"))
	b.stoppedWith(s, session.CodeContested, "Two humans have to choose the same: human chose park, carol chose finish; no third human is left who may rule, so one of them takes the other's choice")
}

// TestContestedGoesByTheRoster: rulings contradict each other only as long as both count: whose
// part has ended contests nothing, and nobody is said to be asked who cannot be (cases.md 4.6).
func TestContestedGoesByTheRoster(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol", "dave"))
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.recorded(s, "carol", "finish", session.CodeSecondHuman)
	b.ok(b.r.Disable(b.ctx, "desk", "carol"))
	b.stoppedWith(s, session.CodeSecondHuman, "A human has ruled: another has to, without having seen how")
	b.ok(b.r.Enable(b.ctx, "desk", "carol"))
	b.ok(b.r.Disable(b.ctx, "desk", "dave"))
	b.stoppedWith(s, session.CodeContested, "Humans have ruled and differ, and no other is left who may rule: once one of them rules again, or takes the ruling back, they are shown what each chose")
	b.recorded(s, "human", "park", session.CodeContested)
	const both = "Two humans have to choose the same: human chose park, carol chose finish"
	b.stoppedWith(s, session.CodeContested, both+"; no third human is left who may rule, so one of them takes the other's choice")
	b.ok(b.r.Enable(b.ctx, "desk", "dave"))
	b.stoppedWith(s, session.CodeContested, both)
	b.ok(b.r.Disable(b.ctx, "desk", "carol"))
	b.stoppedWith(s, session.CodeSecondHuman, "Two humans have to choose the same: human chose park")
	b.recorded(s, "dave", "again", session.CodeContested)
	e := b.executed(s, "dave", "park")
	if l := b.lessons()[0]; !slices.Equal(e.Authors, []string{"human", "dave"}) || l.Outcome.Blind || l.Second.First != "park" || l.Second.Second != "finish" {
		t.Errorf("executed by %q, which teaches %+v: %+v", e.Authors, l.Outcome, l.Second)
	}
}

// TestSwitchedOffBetweenApprovals: whose part has ended does not count any more.
func TestSwitchedOffBetweenApprovals(t *testing.T) {
	b := newBench(t)
	s := b.start(b.approved("", `2`))
	b.recorded(s, "alice", "pay", session.CodeApprovals)
	b.ok(b.r.Disable(b.ctx, "m", "alice"))
	b.recorded(s, "bob", "pay", session.CodeApprovals)
	if reason := b.now(s).Outcome().Reason; reason != "1 of 2 approvals for pay: bob" {
		t.Errorf("the reason is %q", reason)
	}
	if e := b.executed(s, "dave", "pay"); !slices.Equal(e.Authors, []string{"bob", "dave"}) {
		t.Errorf("the authors are %q", e.Authors)
	}
}

// TestExcludedByProposal: who has decided in a state by a proposal that won is excluded as one
// who has ruled there.
func TestExcludedByProposal(t *testing.T) {
	b := newBench(t)
	s := b.start(parse(t, `{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"irreversible":false,"transitions":{"next":"check"}},"check":{"transitions":{"pay":{"target":"done","approvals":{"exclude":["open"]}}}},"done":{}},
	  "specialists":[{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},`+half+`]}`))
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "next"})
	b.ok(err)
	b.stepTo(s, runner.TickAdvanced)
	_, err = b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "pay"})
	if !hasCode(err, session.CodeNotEligible) {
		t.Errorf("ann, who has proposed next: %v", err)
	}
	b.executed(s, "bob", "pay")
}

// TestOnlyDecidersReview: a closed round is reviewed by those who may rule in its state, and
// by nobody else (cases.md 4.1), with one of the choices that there were.
func TestOnlyDecidersReview(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "next")
	s := b.start(parse(t, `{"machineName":"m","initialState":"open","goalState":"done","audit":{"mode":"after","rate":1},"states":{"open":{"irreversible":false,"deciders":["ann"],"transitions":{"next":"check","stop":"done","never":{"target":"done","when":"= false"}}},"check":{"transitions":{"pay":"done"}},"done":{}},
	  "specialists":[`+fn("a")+`,{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"erin","isHuman":true},`+half+`]}`))
	b.stepTo(s, runner.TickAdvanced)
	reviews := b.now(s).Reviews()
	if len(reviews) != 1 {
		t.Fatalf("there are %d reviews", len(reviews))
	}
	review := func(id machine.SpecialistID, transition string) error {
		_, err := b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: reviews[0].Key.ID(), SpecialistID: id, TransitionName: transition, Blind: true})
		return err
	}
	if err := review("ann", "never"); !hasCode(err, session.CodeClosed) {
		t.Errorf("what was closed in the round: %v", err)
	}
	if err := review("erin", "next"); !hasCode(err, "not_human") {
		t.Errorf("erin, who does not decide there: %v", err)
	}
	b.ok(review("ann", "next"))
}

// TestStarterAlmostNamed: a slip in the id of who starts a session is no way around being
// excluded; who is no human of the machine may start one.
func TestStarterAlmostNamed(t *testing.T) {
	b := newBench(t)
	m := b.approved("", `{"exclude":["starter"]}`)
	start := func(id string) error {
		_, err := b.r.Start(b.ctx, m, runner.StartOptions{Actor: &session.Actor{Subject: "local:op", Method: "local", Humans: []string{id}}})
		return err
	}
	for _, id := range []string{"Alice", "alice ", " ALICE"} {
		if err := start(id); !hasCode(err, "no_human") || !strings.Contains(err.Error(), `did you mean "alice"?`) {
			t.Errorf("%q starts: %v", id, err)
		}
	}
	for id, why := range map[string]string{"__timer": "reserved", "group:finance": "group", "judge": "no human", " ": "empty"} {
		if err := start(id); !hasCode(err, "no_human") || !strings.Contains(err.Error(), why) {
			t.Errorf("%q starts: %v", id, err)
		}
	}
	b.ok(start("alice"))
	b.ok(start("zoe"))
}
