package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (b *bench) evaluate(s *session.Session) runner.Consensus {
	b.Helper()
	c, err := b.r.Evaluate(b.ctx, s.ID)
	b.ok(err)
	return c
}

// TestEvaluate asks what the arbiter makes of a round, and changes nothing.
func TestEvaluate(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"quorum":"any"`})
	b.train(m, "a", 2, 4)
	s := b.start(m)
	if c := b.evaluate(s); c.ConsensusReached || c.Reasoning != "No proposals" || c.WinningProposalID != "" {
		t.Errorf("without proposals the verdict is %+v", c)
	}
	b.propose(s, "b", "finish")
	if c := b.evaluate(s); !c.ConsensusReached || c.Reasoning != "Single proposal with no competing proposals" || c.WinningProposalID != s.Key().ProposalID(1) {
		t.Errorf("the verdict on one proposal is %+v", c)
	}
	b.propose(s, "a", "again")
	b.propose(s, "human", "again")
	before := b.now(s)
	text, err := json.Marshal(b.evaluate(s))
	b.ok(err)
	want := `{"consensusReached":true,"winningProposalId":"` + s.Key().ProposalID(3) + `","reasoning":"Alignment-weighted margin 1.00 \u003e= threshold 0.5 (leader: again)","margin":1,"threshold":0.5,"scores":{"again":1.150035709,"finish":0}}`
	if string(text) != want {
		t.Errorf("the verdict is\n%s\nwant\n%s", text, want)
	}
	if now := b.now(s); now != before {
		t.Errorf("evaluating moved the session from %d to %d", before.Sequence, now.Sequence)
	}
}

func TestEvaluateWithoutArbiter(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a")))
	_, err := b.r.Evaluate(b.ctx, s.ID)
	b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
	_, err = b.r.Evaluate(b.ctx, [16]byte{1})
	b.refused(err, session.ErrNotFound, "Session not found: 01000000-0000-0000-0000-000000000000")
}

// TestOneVerdictForEachSet counts how often an arbiter that is somebody's code is
// asked: once for each set of proposals, whoever wants to know, and again only
// when the set changes.
func TestOneVerdictForEachSet(t *testing.T) {
	for _, a := range []string{arbFn("judge"), arbWeb("judge")} {
		b := newBench(t)
		b.cast.judge("judge", electNone)
		m := b.desk(fn("a"), fn("b"), human("human"), a)
		s := b.start(m)
		b.evaluate(s) // no proposals: no question
		if n := len(b.cast.who()); n != 0 {
			t.Errorf("the arbiter was asked about nothing %d times", n)
		}
		b.propose(s, "a", "again")
		b.propose(s, "b", "finish")
		before := b.now(s)
		for range 3 {
			if c := b.evaluate(s); c.ConsensusReached || c.Reasoning != "not sure" {
				t.Errorf("the verdict is %+v", c)
			}
		}
		if now := b.now(s); now.Key() != before.Key() || now.Status != session.Running || len(now.Proposals()) != 2 || now.State != before.State {
			t.Error("evaluating moved the session")
		}
		b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
		b.stepTo(s, runner.TickHuman)
		b.evaluate(s)
		if got := fmt.Sprint(b.cast.who()); got != "[judge]" {
			t.Errorf("asked were %s, want the arbiter once", got)
		}
		b.propose(s, "b", "again")
		b.evaluate(s)
		b.stepTo(s, runner.TickHuman)
		if got := fmt.Sprint(b.cast.who()); got != "[judge]" {
			t.Errorf("after a new proposal, asked were %s, want the arbiter once", got)
		}
		b.force(s, "again")
		b.propose(s, "b", "again")
		b.evaluate(s)
		if got := fmt.Sprint(b.cast.who()); got != "[judge]" {
			t.Errorf("in the next round, asked were %s", got)
		}
	}
}

// TestFailedCallIsNoVerdict has an arbiter fail: the session waits, Steps change
// nothing, and resuming asks again.
func TestFailedCallIsNoVerdict(t *testing.T) {
	for _, a := range []string{arbFn("judge"), arbWeb("judge")} {
		b := newBench(t)
		broken := func(p any) arbiter.Func {
			return func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
				if err, ok := p.(error); ok {
					return arbiter.Decision{}, err
				}
				panic(p)
			}
		}
		b.cast.judge("judge", broken(errors.New("no power")))
		b.cast.say("a", "again")
		id := map[string]string{arbFn("judge"): "arb", arbWeb("judge"): "judge"}[a]
		s := b.start(b.desk(fn("a"), human("human"), a))
		tick := b.stepTo(s, runner.TickHuman)
		if tick.Code != "arbiter_failed" || tick.Reasoning() != "Arbiter "+id+" failed: no power" {
			t.Errorf("the step came to %s: %s", tick.Code, tick.Reasoning())
		}
		b.stepTo(s, runner.TickHuman)
		if _, err := b.r.Evaluate(b.ctx, s.ID); err == nil || err.Error() != "Arbiter "+id+" failed" {
			t.Errorf("Evaluate = %v", err)
		}
		if n := len(b.cast.who()); n != 2 { // a and the arbiter
			t.Errorf("%d were asked before resuming", n)
		}
		b.cast.judge("judge", broken("splinters"))
		_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: someone, Note: "power is back"})
		b.ok(err)
		if tick = b.stepTo(s, runner.TickHuman); tick.Reasoning() != "Arbiter "+id+" failed: panic: splinters" {
			t.Errorf("a panicking arbiter: %s", tick.Reasoning())
		}
		b.cast.judge("judge", electFirst)
		_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
		b.ok(err)
		b.stepTo(s, runner.TickAdvanced)
		if got := fmt.Sprint(b.cast.who()); got != "[judge judge]" { // and a has proposed before
			t.Errorf("asked were %s", got)
		}
	}
}

// TestNewProposalAfterFailure asks a failed arbiter about another set without
// anybody resuming the session.
func TestNewProposalAfterFailure(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	s := b.start(b.desk(fn("a"), human("human"), arbFn("judge"))) // judge has no part yet
	b.stepTo(s, runner.TickHuman)
	b.cast.judge("judge", electFirst)
	b.propose(s, "human", "finish")
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "finish" { // humans stand first
		t.Errorf("the step went %s", tick.Transition.Name)
	}
}
