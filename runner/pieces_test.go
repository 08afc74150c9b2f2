package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// handedOut starts a session of the desk and hands out its asks.
func (b *bench) handedOut(who ...string) (*session.Session, []runner.Asking) {
	b.Helper()
	s := b.start(b.desk(append(who, human("human"), `{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}`)...))
	asks, err := b.r.Asks(b.ctx, s.ID)
	b.ok(err)
	return s, asks
}

// answer answers an ask and returns the code of the refusal, "" for none.
func (b *bench) answer(ask runner.AskRef, transition string, u specialist.Usage) string {
	b.Helper()
	_, _, err := b.r.Answer(b.ctx, ask, specialist.Answer{TransitionName: transition, Usage: u}, nil)
	if refused, ok := errors.AsType[*runner.Error](err); ok {
		return refused.Code
	}
	b.ok(err)
	return ""
}

// TestAsksAreHandedOutOnce hands out who is outside this process, once, and has Step wait
// for the answers without asking anybody.
func TestAsksAreHandedOutOnce(t *testing.T) {
	b := newBench(t)
	s, asks := b.handedOut(web("v"), web("w"))
	if len(asks) != 2 || asks[0].SpecialistID != "v" || asks[1].Index != 2 || asks[1].Question.Self != "w" || asks[1].Question.Ask.ID != s.Key().AskID(2) {
		t.Fatalf("handed out are %+v", asks)
	}
	again, err := b.r.Asks(b.ctx, s.ID)
	b.ok(err)
	if len(again) != 0 || len(b.now(s).OpenAsks()) != 2 {
		t.Errorf("handed out again are %+v", again)
	}
	b.stepTo(s, runner.TickWaiting)
	for _, ask := range asks {
		if code := b.answer(ask.AskRef, "again", cost(dollar)); code != "" {
			t.Errorf("the answer of %s is refused: %s", ask.SpecialistID, code)
		}
	}
	if tick := b.stepTo(s, runner.TickAdvanced); tick.Transition.Name != "again" || len(b.cast.who()) != 0 {
		t.Errorf("the step went %s, asked were %v", tick.Transition.Name, b.cast.who())
	}
}

// TestAnswersAreFenced counts one answer to the newest request of an ask that was made,
// and charges an ask once, by the costlier of two answers.
func TestAnswersAreFenced(t *testing.T) {
	b := newBench(t)
	s, asks := b.handedOut(web("v"), web("w"))
	v := asks[0].AskRef
	for what, ref := range map[string]runner.AskRef{
		"another index":      {Round: v.Round, Index: 9, SpecialistID: "v"},
		"another specialist": {Round: v.Round, Index: v.Index, SpecialistID: "w"},
		"a round to come":    {Round: specialist.RoundKey{Session: s.ID, Round: 7}, Index: 1, SpecialistID: "v"},
	} {
		if _, _, err := b.r.Answer(b.ctx, ref, specialist.Answer{TransitionName: "again"}, nil); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	former := v
	former.Repeat = 1
	if code := b.answer(former, "again", cost(dollar)); code != session.CodeTakenOver {
		t.Errorf("an answer to another request: %q", code)
	}
	if code := b.answer(v, "again", cost(dollar)); code != "" {
		t.Errorf("the answer: %q", code)
	}
	if code := b.answer(v, "park", cost(dollar)); code != session.CodeSuperseded {
		t.Errorf("the same once more: %q", code)
	}
	if code := b.answer(asks[1].AskRef, "again", cost(dollar)); code != "" {
		t.Errorf("the other answer: %q", code)
	}
	b.stepTo(s, runner.TickAdvanced)
	if code := b.answer(v, "again", cost(dollar)); code != session.CodeLate {
		t.Errorf("after the round: %q", code)
	}
	if now := b.now(s); now.Last().Transition.Name != "again" || now.Spent().Money != 2*dollar || b.count(s, "discarded") != 3 {
		t.Errorf("executed is %s, spent were %s, discarded %d", now.Last().Transition.Name, now.Spent().Money, b.count(s, "discarded"))
	}
}

// TestFailuresAreAnswers records why there is no answer, and what is not legal.
func TestFailuresAreAnswers(t *testing.T) {
	b := newBench(t)
	s, asks := b.handedOut(web("v"), web("w"))
	_, _, err := b.r.Answer(b.ctx, asks[0].AskRef, specialist.Answer{}, errors.New("the service is down"))
	b.refused(err, runner.ErrIllegal, "the service is down")
	if code := b.answer(asks[1].AskRef, "nowhere", specialist.Usage{}); code != session.CodeIllegal {
		t.Errorf("an answer that is not legal: %q", code)
	}
	b.stepTo(s, runner.TickHuman)
	if open := b.now(s).OpenAsks(); len(open) != 0 {
		t.Errorf("still open are %+v", open)
	}
}

// elsewhere knows that services are asked by workers, never by this process.
type elsewhere struct{ strategies.Resolvers }

func (elsewhere) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	return specialist.ProposerFunc(func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{}, errors.New("a worker asks")
	}), nil
}

// Programs with workers of their own take a step apart: one process hands out whom to
// ask, any may bring an answer, and any has the arbiter decide once all is in.
func ExampleRunner_Asks() {
	ctx := context.Background()
	m := must(machine.Parse("mail.json", []byte(`{
		"machineName": "mail", "initialState": "new", "goalState": "done", "consensusThreshold": 0,
		"states": { "new": { "prompt": "Is it spam?", "transitions": { "keep": "done", "drop": "done" } }, "done": {} },
		"specialists": [
			{ "role": "proposer", "specialistId": "filter", "strategyWebhookUrl": "https://filter.example/", "webhookTokenName": "FILTER_TOKEN" },
			{ "role": "arbiter", "specialistId": "first", "strategyFnName": "firstProposal" } ] }`), runner.Checks()))
	r := must(runner.New(runner.Config{Store: store.NewMemory(), Resolver: elsewhere{}}))
	defer r.Close()

	s := must(r.Start(ctx, m, runner.StartOptions{}))
	for _, ask := range must(r.Asks(ctx, s.ID)) {
		fmt.Println(ask.SpecialistID+":", ask.Question.State.Prompt)
		p, _, err := r.Answer(ctx, ask.AskRef, specialist.Answer{TransitionName: "drop", Reasoning: "all capitals"}, nil)
		fmt.Println(p.Transition.Name, err)
	}
	fmt.Println(must(r.Step(ctx, s.ID)).Status)
	// Output:
	// filter: Is it spam?
	// drop <nil>
	// advanced
}
