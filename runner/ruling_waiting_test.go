package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// secondBefore has every ruling wait for another human's.
const secondBefore = `"secondHuman":{"rate":1,"when":"before"}`

// eyes is a desk at which humans have to agree before anything is executed.
func (b *bench) eyes(humans ...string) *machine.Machine {
	b.Helper()
	who := []string{fn("a")}
	for _, h := range humans {
		who = append(who, human(h))
	}
	return b.machine(def{who: append(who, half), top: secondBefore})
}

// word has a human rule on the present round.
func (b *bench) word(s *session.Session, who, transition string, more ...func(*runner.Ruling)) (runner.Arbitration, error) {
	in := runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: transition, Blind: true}
	for _, f := range more {
		f(&in)
	}
	return b.r.Decide(b.ctx, in)
}

// recorded has a human rule, and fails the test unless that waits for others.
func (b *bench) recorded(s *session.Session, who, transition, code string, more ...func(*runner.Ruling)) {
	b.Helper()
	a, err := b.word(s, who, transition, more...)
	b.ok(err)
	now := b.now(s)
	if o := now.Outcome(); a.Executed || !a.Recorded || now.Status != session.NeedsHuman || o.Code != code || a.GuardReason != o.Reason {
		b.Fatalf("%s chose %s: executed %t, recorded %t; the session is %s: %s (%s)", who, transition, a.Executed, a.Recorded, now.Status, o.Code, o.Reason)
	}
}

func (b *bench) executed(s *session.Session, who, transition string, more ...func(*runner.Ruling)) *session.Executed {
	b.Helper()
	a, err := b.word(s, who, transition, more...)
	b.ok(err)
	if !a.Executed || a.TransitionName != transition {
		b.Fatalf("%s chose %s and nothing was executed: %s", who, transition, a.GuardReason)
	}
	return b.now(s).Last()
}

func payload(text string) func(*runner.Ruling) {
	return func(in *runner.Ruling) { in.MetaJSON = json.RawMessage(text) }
}

func back(in *runner.Ruling) { in.Withdraw, in.TransitionName = true, "" }

// TestSecondHumanBefore: what a human rules is executed when another has ruled the
// same without having seen it, and not before.
func TestSecondHumanBefore(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol", "dave"))
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeSecondHuman || b.now(s).Executed != 0 || len(b.lessons()) != 0 {
		t.Fatalf("after one ruling there are %d steps and %d lessons", b.now(s).Executed, len(b.lessons()))
	}
	e := b.executed(s, "carol", "park")
	if !slices.Equal(e.Authors, []string{"human", "carol"}) || e.SpecialistID != "carol" || e.How != session.Forced || !e.Draws.Second {
		t.Errorf("what was executed is %+v", e)
	}
	if l := b.lessons(); len(l) != 1 || l[0].Outcome == nil || l[0].Outcome.HumanID != "human" || l[0].Outcome.Source != trust.Forced || !l[0].Outcome.Blind || l[0].Outcome.Unasked ||
		*l[0].Second != (trust.SecondLook{Machine: "desk", State: "open", Options: 3, FirstHuman: "human", SecondHuman: "carol", First: "park", Second: "park"}) {
		t.Errorf("agreement teaches %+v", l)
	}
	if got := b.reviews(); got != "[]" {
		t.Errorf("there waits %s", got)
	}
	b.wantMinutes(s, 1, 1)
}

// TestSecondHumanBeforeThird: where two differ, a third human settles it.
func TestSecondHumanBeforeThird(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol", "dave"))
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.recorded(s, "carol", "finish", session.CodeSecondHuman)
	e := b.executed(s, "dave", "finish")
	if !slices.Equal(e.Authors, []string{"carol", "dave"}) {
		t.Errorf("the authors are %q", e.Authors)
	}
	l := b.lessons()[0]
	if l.Settles || l.Outcome.HumanID != "carol" || l.Outcome.Source != trust.Adjudicated || l.Outcome.Truth != "finish" || !l.Outcome.Blind ||
		l.Second.First != "park" || l.Second.Second != "finish" || l.Second.Settled != "finish" {
		t.Errorf("a third human teaches %+v: %+v", l.Outcome, l.Second)
	}
	ledger, err := b.r.Ledger(b.ctx)
	b.ok(err)
	for id, want := range map[string]int64{"human": 0, "carol": 1} {
		if k, n := ledger.Human(id); k != want || n != 1 {
			t.Errorf("%s was right in %d of %d rounds", id, k, n)
		}
	}
	b.wantMinutes(s, 1, 2)
}

// TestSecondHumanContested: three who differ are shown what each chose; two of them
// who then choose the same decide, and nobody takes that for blind.
func TestSecondHumanContested(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol", "dave"))
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.recorded(s, "carol", "finish", session.CodeSecondHuman)
	b.recorded(s, "dave", "again", session.CodeContested)
	if reason := b.now(s).Outcome().Reason; reason != "Two humans have to choose the same: human chose park, carol chose finish, dave chose again" {
		t.Errorf("the reason is %q", reason)
	}
	b.recorded(s, "dave", "again", session.CodeContested, payload(`{"n":1}`))
	a, err := b.word(s, "human", "", back)
	if b.ok(err); !a.Recorded || b.now(s).Outcome().Code != session.CodeContested || strings.Contains(b.now(s).Outcome().Reason, "human chose") {
		t.Errorf("taken back: %+v", b.now(s).Outcome())
	}
	e := b.executed(s, "human", "finish")
	if l := b.lessons()[0]; !slices.Equal(e.Authors, []string{"carol", "human"}) || l.Outcome.Blind || l.Outcome.HumanID != "carol" || l.Second.Settled != "" || l.Outcome.Source != trust.Forced {
		t.Errorf("executed by %q, which teaches %+v: %+v", e.Authors, l.Outcome, l.Second)
	}
}

// TestSecondHumanNobodyLeft: two who differ where nobody else may rule are shown it.
func TestSecondHumanNobodyLeft(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol"))
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.recorded(s, "carol", "park", session.CodeContested, payload(`{"n":2}`))
	e := b.executed(s, "human", "park", payload(`{ "n": 2.0 }`))
	if l := b.lessons()[0]; string(e.MetaJSON) != `{"n":2.0}` || l.Outcome.Blind || l.Outcome.Source != trust.Forced || l.Second.First != l.Second.Second {
		t.Errorf("executed with %s, which teaches %+v", e.MetaJSON, l.Outcome)
	}
}

// TestPayloadsThatAgree compares what goes with rulings.
func TestPayloadsThatAgree(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{``, `{}`, true},
		{``, `null`, false},
		{`{"a":1,"b":[true,null,"x"]}`, `{"b":[true,null,"x"],"a":1.0}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`[]`, `{}`, false},
		{`100`, `1e2`, true},
		{`0.10`, `1E-1`, true},
		{`-0`, `0`, true},
		{`-1`, `1`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`0.1`, `0.1000000000000000055511151231257827`, false},
		{`1e400`, `10e399`, true},
		{`1e99999999999`, `1e99999999998`, false},
		{`"a"`, `"A"`, false},
		{`"\u00e9"`, `"é"`, true},
		{`true`, `false`, false},
	} {
		if got := runner.SamePayload(c.a, c.b); got != c.same || runner.SamePayload(c.b, c.a) != got || !runner.SamePayload(c.a, c.a) {
			t.Errorf("%s and %s are the same: %t", c.a, c.b, got)
		}
	}
}

// TestSecondHumanDraws: what is drawn for the first ruling stays drawn; what is not
// drawn is executed at once, and what cannot be undone has a rate of its own.
func TestSecondHumanDraws(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), half}, top: `"secondHuman":{"rate":0.000000001,"irreversibleRate":1,"when":"before"}`,
		states: `"open":{"transitions":{"again":"open","burn":{"target":"done","irreversible":true}}},"done":{}`})
	s := b.start(m)
	if e := b.executed(s, "human", "again"); e.Draws == nil || e.Draws.Second || e.Authors != nil {
		t.Errorf("not drawn, it is %+v", e)
	}
	b.recorded(s, "human", "burn", session.CodeSecondHuman)
	b.recorded(s, "human", "again", session.CodeSecondHuman)
	_, err := b.word(s, "human", "", back)
	b.ok(err)
	b.recorded(s, "human", "again", session.CodeSecondHuman)
	if e := b.executed(s, "carol", "again"); !e.Draws.Second || e.Draws.SecondRate.Float() != 1 {
		t.Errorf("drawn, it is %+v", e.Draws)
	}
	one := b.machine(def{name: "one", who: []string{fn("a"), human("human"), human("carol"), half}, top: secondBefore, states: `"open":{"transitions":{"pay":"done"}},"done":{}`})
	s = b.start(one)
	b.recorded(s, "human", "pay", session.CodeSecondHuman, payload(`{"usd":1}`))
	if b.executed(s, "carol", "pay", payload(`{"usd":1}`)); b.lessons()[len(b.lessons())-1].Second != nil {
		t.Error("where there is nothing to choose between, it is counted who chose what")
	}
}

// TestProposalTakesRuling: where a second human may have to agree, a human's winning
// proposal is no way around that, though it can be undone.
func TestProposalTakesRuling(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol"))
	b.propose(s, "human", "park")
	b.propose(s, "a", "park")
	tick := b.stepTo(s, runner.TickHuman)
	if tick.Code != "ruling_needed" || tick.Reasoning() != `A human proposed "park", where another may have to agree (secondHuman): it takes a ruling` || b.now(s).Executed != 0 {
		t.Fatalf("%s: %s", tick.Code, tick.Reasoning())
	}
	if a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID()}); err != nil || a.Executed {
		t.Errorf("the arbiter is asked again: %+v (%v)", a, err)
	}
	b.recorded(s, "human", "again", session.CodeSecondHuman)
	b.executed(s, "carol", "again")
	b.propose(s, "a", "park") // what no human proposed is a consensus as ever
	b.stepTo(s, runner.TickAdvanced)
}

// TestSecondHumanBeforeAlone: a definition that a store holds, where only one human
// may rule, draws nobody; so it is with those that are switched off.
func TestSecondHumanBeforeAlone(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol"))
	b.ok(b.r.Disable(b.ctx, "desk", "carol"))
	if e := b.executed(s, "human", "again"); e.Draws != nil || e.Authors != nil {
		t.Errorf("with one human, it is %+v", e)
	}
}

// TestSecondHumanWords refuses what would make two rulings of one human, or change one
// when another's is there.
func TestSecondHumanWords(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.AllowOperator = true })
	s := b.start(b.eyes("human", "carol", "dave"))
	if _, err := b.word(s, "human", "", back); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("nothing is taken back: %v", err)
	}
	digests := map[string]bool{} // of the question: they must not tell what was ruled
	for _, transition := range []string{"finish", "park", "park"} {
		b.recorded(s, "human", transition, session.CodeSecondHuman)
		for _, viewer := range []string{"", "carol", "human"} {
			q, err := b.r.Question(b.ctx, b.now(s), machine.SpecialistID(viewer))
			b.ok(err)
			if digests[q.Digest] = true; fmt.Sprint(q.Humans) != "[carol dave]" || (len(q.Rulings) == 1) != (viewer == "human") || q.WithheldRulings+len(q.Rulings) != 1 {
				t.Errorf("%q is shown %+v and %d withheld, asked are %q", viewer, q.Rulings, q.WithheldRulings, q.Humans)
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("the question has %d digests, by what was ruled", len(digests))
	}
	if a, _ := b.word(s, runner.Operator, "park"); a.Executed || a.GuardReason != onlyHumans {
		t.Errorf("the operator is a second human: %+v", a)
	}
	if _, err := b.word(s, "human", "park", func(in *runner.Ruling) { in.Withdraw = true }); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("given and taken back: %v", err)
	}
	b.recorded(s, "carol", "finish", session.CodeSecondHuman)
	for _, change := range []func() (runner.Arbitration, error){
		func() (runner.Arbitration, error) { return b.word(s, "human", "finish") },
		func() (runner.Arbitration, error) { return b.word(s, "carol", "", back) },
	} {
		before := b.now(s).Sequence
		if a, err := change(); !errors.Is(err, runner.ErrForbidden) || a.Executed || a.Recorded || b.now(s).Sequence != before {
			t.Errorf("a ruling is changed beside another's: %v, %+v", err, a)
		}
	}
}

// TestPendingRulingHolds: while a ruling waits, nothing else moves the session, and
// taking it back leaves the session where it stood.
func TestPendingRulingHolds(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.eyes("human", "carol")
	b.train(b.machine(def{who: []string{fn("a"), human("human"), half}}), "a", 20, 20)
	s := b.start(m)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	waiting := b.now(s).Outcome()
	b.propose(s, "a", "again")
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
	b.ok(err)
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Clear: true})
	b.ok(err)
	b.stepTo(s, runner.TickHuman)
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human"})
	if b.ok(err); a.Executed || !strings.Contains(a.GuardReason, "waits for another's") {
		t.Errorf("the arbiter decides beside a ruling: %+v", a)
	}
	if now := b.now(s); now.Executed != 0 || now.Outcome() != waiting || len(now.Proposals()) != 1 {
		t.Fatalf("the session is %s with %d steps: %+v", now.Status, now.Executed, now.Outcome())
	}
	_, err = b.word(s, "human", "", back)
	b.ok(err)
	if now := b.now(s); now.Status != session.Running {
		t.Fatalf("taken back, the session is %s: %+v", now.Status, now.Outcome())
	}
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" {
		t.Errorf("then it goes %s", tick.Transition.Name)
	}
}

// TestPendingRulingOfStopped: a session that a guard stopped is taken up by a ruling
// that waits, stands stopped again when that is taken back, and goes on when it is
// executed. One that is stopped meanwhile goes on waiting.
func TestPendingRulingOfStopped(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), arb("firstProposal")}, top: secondBefore + `,"guards":{"limits":{"max_steps":1}}`})
	reopen := func(in *runner.Ruling) { in.Reopen = true }
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickStopped)
	stopped := b.now(s).Outcome()
	b.recorded(s, "human", "finish", session.CodeSecondHuman, reopen)
	_, err := b.word(s, "human", "", back)
	if b.ok(err); b.now(s).Status != session.Stopped || b.now(s).Outcome() != stopped {
		t.Errorf("taken back, the session is %s: %+v", b.now(s).Status, b.now(s).Outcome())
	}
	b.recorded(s, "human", "finish", session.CodeSecondHuman, reopen)
	a, err := b.word(s, "carol", "finish")
	b.ok(err)
	if list, _ := b.now(s).PendingRulings(); a.Executed || len(list) != 1 || b.now(s).Outcome().Code != session.CodeSecondHuman {
		t.Errorf("a guard refused what two agreed about: %d rulings wait: %+v", len(list), b.now(s).Outcome())
	}
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{SpecialistID: "carol", Note: "one more", Raise: []guard.Raise{{Limit: "limits.max_steps", To: "5"}}})
	if b.ok(err); b.now(s).Outcome().Code != session.CodeSecondHuman {
		t.Errorf("with more room, it waits for %+v", b.now(s).Outcome())
	}
	b.executed(s, "carol", "finish")
	s = b.start(m)
	b.recorded(s, "human", "again", session.CodeSecondHuman)
	_, err = b.r.Run(b.ctx, s.ID, runner.RunOptions{})
	b.ok(err)
	b.executed(s, "carol", "again")
}

// TestExecuteJointly: executeTransition is a ruling like others, and teaches nothing.
func TestExecuteJointly(t *testing.T) {
	b := newBench(t)
	m := b.eyes("human", "carol")
	execute := func(s *session.Session, who string) runner.Arbitration {
		a, err := b.r.Execute(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: "park"})
		b.ok(err)
		return a
	}
	for _, first := range []bool{true, false} {
		s := b.start(m)
		if first {
			if a := execute(s, "human"); a.Executed || !a.Recorded {
				t.Errorf("one human executes alone: %+v", a)
			}
			b.executed(s, "carol", "park")
		} else {
			b.recorded(s, "human", "park", session.CodeSecondHuman)
			if a := execute(s, "carol"); !a.Executed {
				t.Errorf("two who agree execute nothing: %s", a.GuardReason)
			}
		}
		if e := b.now(s).Last(); e.How != session.Direct || b.count(s, session.KindLearned) != 0 || len(e.Authors) != 2 {
			t.Errorf("it is %+v, and teaches %d times", e, b.count(s, session.KindLearned))
		}
	}
}

// TestSecondHumanAudited: a decision of the engine that is drawn for an audit and then
// decided by two humans is that audit, whatever came between their rulings.
func TestSecondHumanAudited(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "finish")
	m := b.machine(def{who: []string{fn("a"), human("human"), human("carol"), arb("firstProposal")}, top: secondBefore + `,"audit":{"rate":1,"mode":"before"}`})
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.executed(s, "carol", "park")
	if o := b.lessons()[0].Outcome; o.Source != trust.Audited || !o.Automatic || o.Unasked || o.SamplingProb.Float() != 1 || o.Pick != "finish" {
		t.Errorf("the outcome is %+v", o)
	}
	s = b.start(m)
	b.stepTo(s, runner.TickHuman)
	b.recorded(s, "human", "park", session.CodeSecondHuman)
	b.propose(s, "a", "again")
	b.executed(s, "carol", "park")
	if o := b.lessons()[1].Outcome; o.Source != trust.Forced || o.Automatic || !o.Unasked {
		t.Errorf("with another proposal between them, the outcome is %+v", o)
	}
}

// TestSecondHumanAtOnce has two humans rule at the same time, 200 times: that is one
// transition that both agreed about, or two rulings of which everybody is shown that
// they differ.
func TestSecondHumanAtOnce(t *testing.T) {
	b := newBench(t)
	m := b.eyes("human", "carol")
	for n := range 200 {
		s := b.start(m)
		chosen := []string{"park", []string{"park", "finish"}[n%2]}
		var wg sync.WaitGroup
		var results [2]runner.Arbitration
		var errs [2]error
		for i, who := range []string{"human", "carol"} {
			wg.Go(func() {
				results[i], errs[i] = b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: chosen[i]})
			})
		}
		wg.Wait()
		b.ok(errors.Join(errs[:]...))
		now, executed := b.now(s), 0
		for _, r := range results {
			if r.Executed {
				executed++
			} else if !r.Recorded {
				t.Fatalf("a ruling came to nothing: %+v", r)
			}
		}
		if same := chosen[0] == chosen[1]; same != (executed == 1) || same && (now.Executed != 1 || len(now.Last().Authors) != 2) || !same && (executed != 0 || now.Outcome().Code != session.CodeContested) {
			t.Fatalf("they chose %q: %d executed, the session is %s: %+v", chosen, executed, now.Status, now.Outcome())
		}
	}
	b.forget()
}

// TestSecondHumanCrash lets the store die at each commit of two rulings, before and
// after it was stored: whoever repeats what was not acknowledged comes to one
// transition that both are authors of.
func TestSecondHumanCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			memory := store.NewMemory()
			b := newBench(t, func(c *runner.Config) { c.Store = memory })
			s := b.start(b.eyes("human", "carol"))
			dies := b.runner(func(c *runner.Config) { c.Store = &dying{memory, n, after} })
			for i, who := range []string{"human", "carol"} {
				in := runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: "park"}
				_, err := dies.Decide(b.ctx, in)
				if died := i+1 >= n; died != errors.Is(err, errPower) {
					t.Fatalf("the store died at write %d: %v", n, err)
				}
			}
			b.ok(dies.Close())
			for _, who := range []string{"human", "carol"} {
				if b.now(s).Executed == 0 {
					_, err := b.word(s, who, "park")
					b.ok(err)
				}
			}
			if now := b.now(s); now.Executed != 1 || fmt.Sprint(now.Last().Authors) != "[human carol]" && fmt.Sprint(now.Last().Authors) != "[carol human]" {
				t.Errorf("crashed at write %d (after: %t), %d steps by %q", n, after, now.Executed, now.Last().Authors)
			}
		}
	}
}

// A seat is one of the humans of the model below.
type seat struct {
	id  string
	off bool
}

// eyesModel says in the slowest way what rulings come to.
type eyesModel struct {
	seats  []seat
	order  []string // of those who have ruled, by when they first did
	chosen map[string]string
	shown  bool     // what each chose
	done   []string // who agreed
}

func (m *eyesModel) off(id string) bool {
	return slices.ContainsFunc(m.seats, func(s seat) bool { return s.id == id && s.off })
}

// on counts the humans who may rule, and those of them who have not.
func (m *eyesModel) on() (on, silent int) {
	for _, s := range m.seats {
		if !s.off {
			on++
			if _, spoke := m.chosen[s.id]; !spoke {
				silent++
			}
		}
	}
	return on, silent
}

// code is what the session waits for, as it is with those who are switched on; "" if for
// nothing.
func (m *eyesModel) code() string {
	different := map[string]bool{}
	for id, choice := range m.chosen {
		if !m.off(id) {
			different[choice] = true
		}
	}
	on, silent := m.on()
	switch {
	case len(m.chosen) == 0:
		return ""
	case on < 2:
		return session.CodeTooFew
	case len(different) == 3, len(different) == 2 && (m.shown || silent == 0):
		return session.CodeContested
	}
	return session.CodeSecondHuman
}

// agree returns who has chosen the same and may rule.
func (m *eyesModel) agree(choice string) (who []string) {
	for _, id := range m.order {
		if !m.off(id) && m.chosen[id] == choice {
			who = append(who, id)
		}
	}
	return who
}

// stands reports whether the ruling of a human is not to be changed.
func (m *eyesModel) stands(id string) bool {
	_, known := m.chosen[id]
	return known && len(m.chosen) > 1 && !m.shown && m.code() != session.CodeContested
}

// rule returns whether the ruling is taken.
func (m *eyesModel) rule(id, choice string) bool {
	earlier, known := m.chosen[id]
	if m.off(id) || m.stands(id) && (earlier != choice || len(m.agree(choice)) < 2) {
		return false
	}
	if on, _ := m.on(); len(m.chosen) == 0 && on < 2 {
		m.done = []string{id}
		return true
	}
	m.shown = m.shown || known && m.code() == session.CodeContested
	if m.chosen[id] = choice; !known {
		m.order = append(m.order, id)
	}
	if who := m.agree(choice); len(who) > 1 {
		m.done = who
	}
	m.shown = m.shown || m.code() == session.CodeContested
	return true
}

func (m *eyesModel) withdraw(id string) bool {
	_, known := m.chosen[id]
	if m.off(id) || !known || m.stands(id) {
		return false
	}
	m.shown = m.shown || m.code() == session.CodeContested
	delete(m.chosen, id)
	m.order = slices.DeleteFunc(m.order, func(who string) bool { return who == id })
	m.shown = m.shown || m.code() == session.CodeContested
	return true
}

// An eyesStep is one thing that a human does, or that is done to one.
type eyesStep struct {
	id, choice string // the choice: a transition and what goes with it, "back", "off" or "on"
}

// eyesSteps are all that three humans can do with two transitions and one payload.
func eyesSteps() (all []eyesStep) {
	for _, id := range []string{"human", "carol", "dave"} {
		for _, choice := range []string{"park", `park {"n":1}`, "finish", "back", "switch"} {
			all = append(all, eyesStep{id, choice})
		}
	}
	return all
}

// play does the steps to a session and the model, and says where they differ.
func (b *bench) play(m *machine.Machine, steps []eyesStep) string {
	b.Helper()
	s := b.start(m)
	model := &eyesModel{seats: []seat{{id: "human"}, {id: "carol"}, {id: "dave"}}, chosen: map[string]string{}}
	defer func() {
		for _, seat := range model.seats {
			if seat.off {
				b.ok(b.r.Enable(b.ctx, m.Name(), machine.SpecialistID(seat.id)))
			}
		}
	}()
	for _, step := range steps {
		var want, taken bool
		switch step.choice {
		case "switch":
			i := slices.IndexFunc(model.seats, func(s seat) bool { return s.id == step.id })
			if model.seats[i].off = !model.seats[i].off; model.seats[i].off {
				b.ok(b.r.Disable(b.ctx, m.Name(), machine.SpecialistID(step.id)))
			} else {
				b.ok(b.r.Enable(b.ctx, m.Name(), machine.SpecialistID(step.id)))
			}
		case "back":
			want = model.withdraw(step.id)
			a, err := b.word(s, step.id, "", back)
			taken = err == nil && a.Recorded
		default:
			want = model.rule(step.id, step.choice)
			name, data, _ := strings.Cut(step.choice, " ")
			a, err := b.word(s, step.id, name, func(in *runner.Ruling) {
				if data != "" {
					in.MetaJSON = json.RawMessage(data)
				}
			})
			taken = err == nil && (a.Recorded || a.Executed)
		}
		if differs := b.differs(s, model, want, taken); differs != "" {
			return differs
		}
		if model.done != nil {
			return ""
		}
	}
	return ""
}

func (b *bench) differs(s *session.Session, m *eyesModel, want, taken bool) string {
	now := b.now(s)
	why, err := b.r.Outcome(b.ctx, now, "")
	b.ok(err)
	list, concealed := now.PendingRulings()
	var who []string
	for _, r := range list {
		who = append(who, r.SpecialistID)
	}
	switch {
	case want != taken:
		return fmt.Sprintf("taken: %t, want %t", taken, want)
	case (m.done != nil) != (now.Executed > 0):
		return fmt.Sprintf("executed: %t, want %q", now.Executed > 0, m.done)
	case m.done != nil:
		if e := now.Last(); len(m.done) > 1 && !slices.Equal(e.Authors, m.done) || len(m.done) == 1 && e.Authors != nil {
			return fmt.Sprintf("the authors are %q, want %q", e.Authors, m.done)
		}
		return ""
	case why.Code != m.code():
		return fmt.Sprintf("the code is %q, want %q", why.Code, m.code())
	case !slices.Equal(who, m.order):
		return fmt.Sprintf("there wait %q, want %q", who, m.order)
	case concealed != (len(m.order) > 0 && !m.shown):
		return fmt.Sprintf("concealed: %t", concealed)
	case concealed && strings.Contains(why.Reason, " chose "):
		return "what is concealed is told: " + why.Reason
	}
	return ""
}

// TestSecondHumanSmallCases goes through all that three humans can do in three steps,
// and in four of which the first is a ruling; then through longer ones at random.
func TestSecondHumanSmallCases(t *testing.T) {
	b := newBench(t)
	m, all := b.eyes("human", "carol", "dave"), eyesSteps()
	try := func(steps ...eyesStep) {
		if differs := b.play(m, steps); differs != "" {
			t.Fatalf("after %v: %s", steps, differs)
		}
		b.forget()
	}
	first := eyesStep{"human", "park"} // by symmetry
	for _, x := range all {
		for _, y := range all {
			for _, z := range all {
				try(first, x, y, z)
			}
		}
		try(x)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		steps := make([]eyesStep, 5+r.IntN(6))
		for i := range steps {
			steps[i] = all[r.IntN(len(all))]
		}
		if differs := b.play(m, steps); differs != "" {
			t.Fatalf("seed %d: after %v: %s", seed, steps, differs)
		}
	}
	b.forget()
}

// TestSecondHumanProposes: where two humans have to agree, one of them does not execute
// by a proposal what cannot be undone, and does not tell by one what was ruled.
func TestSecondHumanProposes(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{
		states: `"open":{"prompt":"Which way?","transitions":{"finish":{"target":"done","irreversible":true},"again":"open"}},"done":{}`,
		who:    []string{human("human"), human("carol"), arbFn("judge")}, top: secondBefore}))
	b.cast.judge("judge", electFirst)
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "human", TransitionName: "finish"})
	b.ok(err)
	if tick := b.stepTo(s, runner.TickHuman); tick.Code != "irreversible" || b.now(s).Executed != 0 {
		t.Fatalf("after a human's proposal there are %d steps: %s", b.now(s).Executed, tick.Code)
	}
	b.recorded(s, "human", "finish", session.CodeSecondHuman)
	for viewer, shown := range map[string]int{"": 0, "carol": 0, "human": 1} {
		q, err := b.r.Question(b.ctx, b.now(s), machine.SpecialistID(viewer))
		if b.ok(err); len(q.Proposals) != shown || len(b.now(s).ViewFor(machine.SpecialistID(viewer)).Proposals) != shown {
			t.Errorf("%q is shown %d proposals, want %d", viewer, len(q.Proposals), shown)
		}
	}
	b.executed(s, "carol", "finish")
}

// TestContestedPayloads: where rulings for one transition differ about what goes with it,
// nobody is handed what somebody else wrote: each sees their own with the choice, others none.
func TestContestedPayloads(t *testing.T) {
	b := newBench(t)
	s := b.start(b.eyes("human", "carol", "dave"))
	b.recorded(s, "human", "park", session.CodeSecondHuman, payload(`{"iban":"DE11"}`))
	b.recorded(s, "carol", "park", session.CodeSecondHuman, payload(`{"iban":"FR22"}`))
	b.recorded(s, "dave", "again", session.CodeContested)
	for viewer, want := range map[machine.SpecialistID]string{"": "", "human": `{"iban":"DE11"}`, "carol": `{"iban":"FR22"}`, "dave": ""} {
		q, err := b.r.Question(b.ctx, b.now(s), viewer)
		b.ok(err)
		for _, choice := range q.Transitions {
			if got := string(choice.MetaJSON); choice.Name == "park" && got != want || choice.Name != "park" && got != "" {
				t.Errorf("%q is handed %s with %s, want %q", viewer, got, choice.Name, want)
			}
		}
	}
	b.recorded(s, "carol", "park", session.CodeContested, payload(`{"iban": "DE12"}`))
	b.recorded(s, "dave", "park", session.CodeContested, payload(`{"iban":"FR23"}`))
}
