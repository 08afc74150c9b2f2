package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// accepting is the part of a service that answers later.
func accepting(context.Context, specialist.Question) (specialist.Answer, error) {
	return specialist.Answer{}, specialist.ErrAccepted
}

// public makes late answers possible.
func public(c *runner.Config) { c.PublicURL = "https://engine.example" }

// late begins a round in which "w" was asked and will answer later.
func (b *bench) late(rest ...string) (*session.Session, specialist.Ask) {
	b.Helper()
	b.cast.play("w", accepting)
	s := b.start(b.desk(web("w", rest...), human("human"), half))
	b.stepTo(s, runner.TickWaiting)
	return s, b.cast.lastAsk()
}

// callback answers as the web server would have it from the address.
func (b *bench) callback(a specialist.Ask, token string, answer specialist.Answer) (*specialist.Proposal, error) {
	b.Helper()
	_, id, found := strings.Cut(a.CallbackURL, "https://engine.example/v1/callbacks/")
	if !found {
		b.Fatalf("the address is %q", a.CallbackURL)
	}
	p, _, err := b.r.Callback(b.ctx, id, token, answer)
	return p, err
}

const badCallback = "this callback is not valid, or was used already"

// TestLateAnswer answers an ask later: the step waits, asks nobody twice, and
// goes on with the answer.
func TestLateAnswer(t *testing.T) {
	b := newBench(t, public)
	s, ask := b.late()
	b.stepTo(s, runner.TickWaiting)
	result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
	b.ok(err)
	if result.Status != "waiting" || len(b.cast.who()) != 1 {
		t.Errorf("the run came to %s", result.Status)
	}
	p, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "park", Reasoning: "at last", Usage: cost(dollar)})
	b.ok(err)
	if p.SpecialistID != "w" || p.IsHuman || p.Mode != specialist.Webhook || p.Detail.AskID != ask.ID {
		t.Errorf("the proposal is %+v", p)
	}
	b.stepTo(s, runner.TickAdvanced)
	b.wantLog(s, 2, "asked w#1", "asked w#1", "proposed w park 1", "judged arb decided", "gated park ok", "executed w park", "round_opened parked 2 0")
	for _, r := range b.raw(s) {
		if strings.Contains(string(r.Data), ask.CallbackToken) {
			t.Errorf("the secret is in the log: %s", r.Data)
		}
	}
}

// TestCallbackRefusals refuses what is not the one answer to the one ask.
func TestCallbackRefusals(t *testing.T) {
	b := newBench(t, public)
	answer := specialist.Answer{TransitionName: "again"}
	s, ask := b.late()
	_, foreign := b.late()
	id := strings.TrimPrefix(ask.CallbackURL, "https://engine.example/v1/callbacks/")
	for _, c := range []struct{ id, token string }{
		{id, ""}, {id, "wrong"}, {id, foreign.CallbackToken}, {strings.TrimPrefix(foreign.CallbackURL, "https://engine.example/v1/callbacks/"), ask.CallbackToken},
		{s.ID.String(), ask.CallbackToken}, {s.ID.String() + ".", ask.CallbackToken}, {"nonsense." + ask.ID, ask.CallbackToken}, {"", ""},
		{specialist.SessionID{9}.String() + "." + ask.ID, ask.CallbackToken},
	} {
		_, _, err := b.r.Callback(b.ctx, c.id, c.token, answer)
		b.refused(err, runner.ErrForbidden, badCallback)
	}
	if n := b.count(s, "proposed"); n != 0 {
		t.Fatalf("%d proposals got in", n)
	}
	_, err := b.callback(ask, ask.CallbackToken, answer)
	b.ok(err)
	_, err = b.callback(ask, ask.CallbackToken, answer) // once only
	b.refused(err, runner.ErrForbidden, badCallback)
	b.stepTo(s, runner.TickAdvanced)
	_, err = b.callback(ask, ask.CallbackToken, answer) // not in another round
	b.refused(err, runner.ErrForbidden, badCallback)
	if n := b.count(s, "proposed"); n != 1 {
		t.Errorf("%d proposals got in", n)
	}
}

// TestIllegalLateAnswer uses the token up: the ask has failed.
func TestIllegalLateAnswer(t *testing.T) {
	b := newBench(t, public)
	s, ask := b.late()
	_, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "nowhere", Usage: cost(dollar)})
	b.refused(err, runner.ErrIllegal, `Invalid transition "nowhere" from state "open"`)
	_, err = b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "again"})
	b.refused(err, runner.ErrForbidden, badCallback)
	b.stepTo(s, runner.TickHuman)
	if spent := b.now(s).Spent(); spent.Money != dollar {
		t.Errorf("spent were %s", spent.Money)
	}
}

// TestLateAnswerByProposal takes the late answer through Propose as well, and
// shuts the callback by it.
func TestLateAnswerByProposal(t *testing.T) {
	b := newBench(t, public)
	s, ask := b.late()
	b.submit(runner.Submission{SessionID: s.ID, SpecialistID: "w", RoundID: s.Key().ID(), TransitionName: "again"})
	_, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "park"})
	b.refused(err, runner.ErrForbidden, badCallback)
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" || len(b.cast.who()) != 1 {
		t.Errorf("the step went %s", tick.Transition.Name)
	}
}

// TestAskedAgainForLater asks somebody once more who has proposed and now answers
// later: the proposal of before is not taken for the answer.
func TestAskedAgainForLater(t *testing.T) {
	b := newBench(t, public)
	s, _ := b.late()
	b.propose(s, "w", "again")
	p, after, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w"})
	if p != nil || !errors.Is(err, specialist.ErrAccepted) || len(after.OpenAsks()) != 1 {
		t.Errorf("it proposed %+v (%v), with %d asks open", p, err, len(after.OpenAsks()))
	}
	ask := b.cast.lastAsk()
	_, err = b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "park"})
	b.ok(err)
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "park" {
		t.Errorf("the step went %s", tick.Transition.Name)
	}
}

// TestNoLateAnswerWithoutAddress gives no callback where the program cannot be
// reached.
func TestNoLateAnswerWithoutAddress(t *testing.T) {
	b := newBench(t)
	b.cast.say("w", "again")
	b.stepTo(b.start(b.desk(web("w"), half)), runner.TickAdvanced)
	if a := b.cast.lastAsk(); a.CallbackURL != "" || a.CallbackToken != "" || a.ID == "" {
		t.Errorf("the ask is %+v", a)
	}
}

// TestLateAnswersEnd gives up on an answer after asyncTimeout, charged as
// estimated; what comes after that counts for nothing but its cost.
func TestLateAnswersEnd(t *testing.T) {
	bubble(t, func(b *bench) {
		b.r = b.runner(inBubble, public)
		s, ask := b.late(estimated("0.5"))
		time.Sleep(24*time.Hour - time.Second)
		b.stepTo(s, runner.TickWaiting)
		time.Sleep(2 * time.Second)
		if tick := b.stepTo(s, runner.TickHuman); tick.Reasoning() != "No proposals" {
			t.Errorf("the step came to %s", tick.Reasoning())
		}
		if spent := b.now(s).Spent(); spent.Money != dollar/2 || spent.Estimated != 1 {
			t.Errorf("spent were %+v", spent)
		}
		b.tooLate(s, ask, "superseded")
	})
}

// TestRunWaits stays in a run until the late answer comes.
func TestRunWaits(t *testing.T) {
	bubble(t, func(b *bench) {
		b.r = b.runner(inBubble, public)
		s, ask := b.late()
		go func() {
			time.Sleep(time.Minute)
			b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "finish"})
		}()
		start := time.Now()
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{Wait: true})
		b.ok(err)
		if took := time.Since(start); result.Status != "completed" || took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("the run came to %s after %s", result.Status, took)
		}
	})
}

// tooLate answers an ask that nobody waits for any more, which was charged $0.5 as
// estimated: what the answer cost is recorded, once, and nothing else changes.
func (b *bench) tooLate(s *session.Session, ask specialist.Ask, code string) {
	b.Helper()
	before := b.now(s)
	if spent := before.Spent().Money; spent != dollar/2 {
		b.Errorf("spent were %s", spent)
	}
	said := specialist.Answer{TransitionName: "finish", Usage: cost(dollar / 4)}
	_, err := b.callback(ask, "wrong", said)
	b.refused(err, runner.ErrForbidden, badCallback)
	_, err = b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "finish"})
	b.refused(err, runner.ErrStaleRound, "the answer of w counts for nothing ("+code+"), and names no cost")
	if now := b.now(s); now.Sequence != before.Sequence {
		b.Errorf("%d events were recorded", now.Sequence-before.Sequence)
	}
	_, err = b.callback(ask, ask.CallbackToken, said)
	b.refused(err, runner.ErrStaleRound, "the answer of w counts for nothing ("+code+"): its cost is recorded")
	b.wantLog(s, before.Sequence, "discarded 1 0 w finish "+code+" 0.25")
	_, err = b.callback(ask, ask.CallbackToken, said)
	b.refused(err, runner.ErrForbidden, badCallback)
	if now := b.now(s); now.Spent().Money != dollar/4 || now.Key() != before.Key() || now.Status != before.Status || now.Executed != before.Executed {
		b.Errorf("it is %s after %d steps, and spent %s", now.Status, now.Executed, now.Spent().Money)
	}
}

// TestRulingEndsTheWait rules while a late answer is out: it is charged as estimated, until
// the answer says what it cost. It was refused, and nobody learned what it cost.
func TestRulingEndsTheWait(t *testing.T) {
	for name, end := range map[string]func(b *bench, s *session.Session){
		"the round is over":   func(b *bench, s *session.Session) { b.force(s, "again") },
		"the session is over": func(b *bench, s *session.Session) { b.force(s, "finish") },
		"it was cancelled": func(b *bench, s *session.Session) {
			_, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: carol, Note: "enough"})
			b.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, public)
			s, ask := b.late(estimated("0.5"))
			end(b, s)
			b.tooLate(s, ask, "late")
		})
	}
}
