package runner_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// payment is a machine whose two states offer a transition of one name: harmless in
// the first, irreversible in the second.
const payment = `"open":{"transitions":{"approve":"pay","drop":"done"}},
	"pay":{"transitions":{"approve":{"target":"done","irreversible":true},"back":"open"}},"done":{}`

// TestTwoHumansAtOnce has two humans approve one question at once, 200 times. The
// second used to rule on the next state, whose approval nobody had been asked for.
func TestTwoHumansAtOnce(t *testing.T) {
	for i := range 200 {
		b := newBench(t)
		s := b.start(b.machine(def{states: payment, who: []string{human("ann"), human("bob"), half}}))
		var results [2]runner.Arbitration
		var errs [2]error
		var both sync.WaitGroup
		for i, who := range []string{"ann", "bob"} {
			both.Go(func() {
				results[i], errs[i] = b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: "approve"})
			})
		}
		both.Wait()
		first := 0
		if results[1].Executed {
			first = 1
		}
		second := 1 - first
		b.ok(errs[first])
		stale, ok := errors.AsType[*runner.StaleError](errs[second])
		if !ok || stale.Refusal.Code != runner.CodeStaleRound || !errors.Is(stale, runner.ErrStaleRound) || !results[second].Stale || results[second].Executed {
			t.Fatalf("trial %d: the second human gets %+v and %v", i, results[second], errs[second])
		}
		now := b.now(s)
		if now.Executed != 1 || now.State.Name != "pay" || stale.Question.RoundID != now.Key().ID() || stale.Question.State != "pay" {
			t.Fatalf("trial %d: the session is in %s after %d transitions, the question is %+v", i, now.State.Name, now.Executed, stale.Question)
		}
		if want := fmt.Sprintf("[%s (human) executed approve: open → pay]", []string{"ann", "bob"}[first]); fmt.Sprint(stale.Changed) != want {
			t.Errorf("what changed is %v, want %s", stale.Changed, want)
		}
	}
}

// TestStaleRulingIsNotRecorded rules on rounds that are over, or never were.
func TestStaleRulingIsNotRecorded(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: payment, who: []string{fn("a"), human("ann"), half}}))
	old := s.Key().ID()
	in := runner.Ruling{SessionID: s.ID, RoundID: old, SpecialistID: "ann", TransitionName: "approve", Usage: cost(dollar)}
	b.rule(in)
	before := b.now(s).Sequence
	for _, round := range []string{old, "nothing", strings.ToUpper(old)} {
		in.RoundID = round
		for _, decide := range []func() (runner.Arbitration, error){
			func() (runner.Arbitration, error) { return b.r.Decide(b.ctx, in) },
			func() (runner.Arbitration, error) { return b.r.Execute(b.ctx, in) },
			func() (runner.Arbitration, error) {
				return b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: round})
			},
		} {
			a, err := decide()
			if b.refused(err, runner.ErrStaleRound, staleText); !a.Stale || a.Executed || a.GuardReason != staleText {
				t.Errorf("a ruling on round %s is %+v", round, a)
			}
		}
	}
	if now := b.now(s); now.Sequence != before {
		t.Errorf("refused rulings wrote to the log:\n%s", b.log(s, before))
	}
}

// TestRoundRequired: a ruling or a proposal without a round is refused, and one on
// whichever round is open executes nothing irreversible, whoever elects it.
func TestRoundRequired(t *testing.T) {
	b := newBench(t)
	s := b.start(b.machine(def{states: payment, who: []string{fn("a"), human("ann"), half}}))
	for _, decide := range []func(runner.Ruling) error{
		func(in runner.Ruling) error { _, err := b.r.Decide(b.ctx, in); return err },
		func(in runner.Ruling) error { _, err := b.r.Execute(b.ctx, in); return err },
	} {
		b.refused(decide(runner.Ruling{SessionID: s.ID, SpecialistID: "ann", TransitionName: "approve"}), runner.ErrIllegal, "roundId is required")
	}
	in := runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "approve"}
	b.rule(in)
	const text = `transition "approve" is irreversible: who chooses it must name the round it is about`
	a, err := b.r.Decide(b.ctx, in)
	if b.refused(err, runner.ErrIllegal, text); a.Executed || a.GuardReason != text || !a.IsHuman {
		t.Errorf("the result is %+v", a)
	}
	if refusal, ok := errors.AsType[*runner.Error](err); !ok || refusal.Code != runner.CodeRoundRequired || refusal.Hint == "" {
		t.Errorf("the refusal is %+v", refusal)
	}
	_, err = b.r.Execute(b.ctx, in)
	b.refused(err, runner.ErrIllegal, text)
	proposed := runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "approve"}
	_, _, err = b.r.Propose(b.ctx, proposed)
	b.refused(err, runner.ErrIllegal, text)
	proposed.RoundID = b.now(s).Key().ID()
	b.submit(proposed) // a human's proposal lifts the bar for consensus, not for whoever calls
	elected := runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound}
	a, err = b.r.Decide(b.ctx, elected)
	if b.refused(err, runner.ErrIllegal, text); a.Executed || b.now(s).State.Name != "pay" {
		t.Errorf("the result is %+v", a)
	}
	elected.RoundID = b.now(s).Key().ID()
	if a = b.rule(elected); !a.Executed || b.now(s).Status != session.Completed {
		t.Errorf("on its round the result is %+v", a)
	}
}
