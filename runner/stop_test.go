package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

var carol = session.Actor{Subject: "local:carol", Method: "local"}

// TestStop cancels a session while an answer is out: the ask is ended and charged as
// estimated, who did it and why is in the log, a later answer changes nothing but what
// it cost, and the session can be resumed.
func TestStop(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.PublicURL = "https://dialai.example" })
	b.cast.play("w", failing(specialist.ErrAccepted))
	s := b.start(b.machine(def{who: []string{web("w", `"estimatedCostUSD":0.4`), half}}))
	b.stepTo(s, runner.TickWaiting)
	after, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: carol, Note: "the customer has withdrawn"})
	b.ok(err)
	if o := after.Outcome(); after.Status != session.Stopped || o.Code != session.CodeCancelled || o.Reason != "the customer has withdrawn" {
		t.Errorf("the session is %s: %+v", after.Status, o)
	}
	if spent := after.Spent(); len(after.OpenAsks()) != 0 || spent.Money.String() != "0.4" || spent.Calls != 1 {
		t.Errorf("%d asks are out, spent is %+v", len(after.OpenAsks()), spent)
	}
	var log strings.Builder
	for _, rec := range b.records(s) {
		log.Write(rec.Events)
	}
	if want := `"status":"stopped","code":"cancelled","reason":"the customer has withdrawn","actor":{"subject":"local:carol","method":"local"}`; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %s", log.String())
	}
	b.cast.say("w", "finish")
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickAdvanced)
}

// TestStopNeedsNothing: what going on would need may be missing.
func TestStopNeedsNothing(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), web("w"), half))
	alone, err := runner.New(runner.Config{Store: b.store})
	b.ok(err)
	if _, err := alone.Step(b.ctx, s.ID); err == nil {
		t.Fatal("a runner without functions and services can step")
	}
	after, err := alone.Stop(b.ctx, s.ID, runner.Stopping{Actor: carol, Note: "nobody has them any more"})
	b.ok(err)
	if after.Status != session.Stopped {
		t.Errorf("the session is %s", after.Status)
	}
}

// TestStopRefuses what is not there, what has ended, and whom or why nobody knows.
func TestStopRefuses(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(fn("a"), half))
	why := runner.Stopping{Actor: carol, Note: "enough"}
	stop := func(id specialist.SessionID, why runner.Stopping) error {
		_, err := b.r.Stop(b.ctx, id, why)
		return err
	}
	b.refused(stop(s.ID, runner.Stopping{Actor: carol, Note: " "}), nil, "a session is cancelled without a note: say why")
	b.refused(stop(s.ID, runner.Stopping{Note: "enough"}), nil, "a session is cancelled by nobody: say who does it")
	b.refused(stop(specialist.SessionID{1}, why), session.ErrNotFound, "Session not found: 01000000-0000-0000-0000-000000000000")
	b.ok(stop(s.ID, why))
	b.refused(stop(s.ID, why), runner.ErrNotRunning, "Session is not running: "+s.ID.String()+" (stopped)")
	b.cast.say("a", "finish")
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickAdvanced)
	b.refused(stop(s.ID, why), runner.ErrNotRunning, "Session is not running: "+s.ID.String()+" (completed)")
}

// TestCancelledTakesNoRuling: a word on a question from before does not take up again what
// somebody has cancelled; one on what a limit has stopped does.
func TestCancelledTakesNoRuling(t *testing.T) {
	b := newBench(t)
	s := b.start(b.desk(human("human"), half))
	b.stepTo(s, runner.TickHuman)
	_, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: carol, Note: "do not pay"})
	b.ok(err)
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "finish", Reopen: true})
	if now := b.now(s); !errors.Is(err, runner.ErrNotRunning) || a.Executed || now.Status != session.Stopped || now.Executed != 0 {
		t.Errorf("it is %s after %d steps: %v", now.Status, now.Executed, err)
	}
}

// TestStopGivesUpWhatFailed: a session that came to a panic, or to a state that leads
// nowhere, is given up by who cancels it, as it says. It was refused.
func TestStopGivesUpWhatFailed(t *testing.T) {
	b, f, sick, _, _ := newFaulty(t)
	f.fail("Commit", sick.ID, 1)
	_, err := b.tickAll()
	b.ok(err)
	if s := b.now(sick); s.Status != session.Failed {
		t.Fatalf("the session is %s", s.Status)
	}
	after, err := b.r.Stop(b.ctx, sick.ID, runner.Stopping{Actor: carol, Note: "nobody repairs it"})
	b.ok(err)
	if o := after.Outcome(); after.Status != session.Stopped || o.Code != session.CodeCancelled || o.Reason != "nobody repairs it" {
		t.Errorf("the session is %s: %+v", after.Status, o)
	}
	_, err = b.r.Stop(b.ctx, sick.ID, runner.Stopping{Actor: carol, Note: "again"})
	b.refused(err, runner.ErrNotRunning, "Session is not running: "+sick.ID.String()+" (stopped)")
	_, err = b.r.Resume(b.ctx, sick.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(sick, runner.TickAdvanced)
}
