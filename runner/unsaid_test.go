package runner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// everSpending is a quota in which everything stays.
var everSpending = tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: new(int64(99))}}})

// wantBoth compares what a session and its tenant have spent. Windows of a quota give
// nothing back of what they held while an answer was to come later.
func (b *bench) wantBoth(s *session.Session, want spend.Book, held exact.Money) {
	b.Helper()
	if got := b.spent(s); got != want {
		b.Errorf("%+v is spent, want %+v\n%s", got, want, b.log(s, 1))
	}
	if used, _ := b.r.QuotaUsed(""); used[0] != want.Calls || used[2] != int64(max(want.Money, held)) {
		b.Errorf("the quota has %d calls and $%s, the session %d and $%s", used[0], exact.Money(used[2]), want.Calls, want.Money)
	}
}

// TestAnswersThatNameNoCostAreCharged: a service that answers and says nothing of its
// cost is charged as estimated, whatever it answers; one that says 0 is free. A limit of
// dollars that settled what it had reserved at nothing never ended such a service.
func TestAnswersThatNameNoCostAreCharged(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 7, Given: specialist.InputGiven}
	for name, c := range map[string]struct {
		own, budget string
		said        specialist.Answer
		want        spend.Book
	}{
		"an estimate":            {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1, Money: dollar / 2}},
		"a default":              {"", `"hard_limit_usd":9,"default_estimate_usd":0.25`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1, Money: dollar / 4}},
		"no limit":               {estimated("0.5"), `"hard_limit_calls":9`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1, Money: dollar / 2}},
		"tokens":                 {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again", Usage: tokens}, spend.Book{Calls: 1, Money: dollar / 2, TokensIn: 7}},
		"a model without price":  {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again", Usage: tokens, Model: "unknown"}, spend.Book{Calls: 1, Money: dollar / 2, TokensIn: 7}},
		"an illegal answer":      {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "nowhere"}, spend.Book{Calls: 1, Money: dollar / 2}},
		"a cost of 0":            {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again", Usage: cost(0)}, spend.Book{Calls: 1}},
		"a free service":         {estimated("0"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1}},
		"a cost":                 {estimated("0.5"), `"hard_limit_usd":9`, specialist.Answer{TransitionName: "again", Usage: cost(dollar / 8)}, spend.Book{Calls: 1, Money: dollar / 8}},
		"nothing to go by":       {"", `"hard_limit_calls":9`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1}},
		"the profile compat too": {estimated("0.5"), `"hard_limit_usd":9},"profile":"compat","cost":{"on_unknown_model":"skip"`, specialist.Answer{TransitionName: "again"}, spend.Book{Calls: 1, Money: dollar / 2}},
	} {
		said := func(context.Context, specialist.Question) (specialist.Answer, error) { return c.said, nil }
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everSpending)
			b.cast.play("w", said)
			s := b.start(b.machine(def{who: []string{web("w", c.own), human("human"), half}, top: budget(c.budget)}))
			b.step(s)
			b.wantBoth(s, c.want, 0)
		})
		t.Run(name+", by hand", func(t *testing.T) {
			b := newBench(t, everSpending)
			b.cast.play("w", said)
			s := b.start(b.machine(def{who: []string{web("w", c.own), human("human"), half}, top: budget(c.budget)}))
			_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w"})
			if err != nil && !errors.Is(err, runner.ErrIllegal) {
				t.Fatal(err)
			}
			b.wantBoth(s, c.want, 0)
		})
		t.Run(name+", later", func(t *testing.T) {
			b := newBench(t, public, everSpending)
			b.cast.play("w", accepting)
			s := b.start(b.machine(def{who: []string{web("w", c.own), human("human"), half}, top: budget(c.budget)}))
			b.stepTo(s, runner.TickWaiting)
			used, _ := b.r.QuotaUsed("")
			ask := b.cast.lastAsk()
			if _, err := b.callback(ask, ask.CallbackToken, c.said); err != nil && !errors.Is(err, runner.ErrIllegal) {
				t.Fatal(err)
			}
			b.wantBoth(s, c.want, exact.Money(used[2]))
		})
	}
}

// TestLimitEndsWhoNamesNoCost: of $1, a service of $0.40 that names no cost is asked
// twice.
func TestLimitEndsWhoNamesNoCost(t *testing.T) {
	b := newBench(t)
	b.cast.say("w", "again")
	s := b.start(b.machine(def{who: []string{web("w", estimated("0.4")), human("human"), half}, top: budget(`"hard_limit_usd":1`)}))
	b.stepTo(s, runner.TickAdvanced)
	b.stepTo(s, runner.TickAdvanced)
	if tick := b.stepTo(s, runner.TickStopped); tick.Code != "budget_usd" || b.now(s).Spent().Money != 8*dollar/10 {
		t.Errorf("it stopped by %s when $%s was spent", tick.Code, b.now(s).Spent().Money)
	}
}

// TestLateProposalsThatNameNoCostAreCharged: an ask that was accepted and is answered by
// a proposal from outside costs what that says, and as estimated if it says nothing,
// before the service has said that it will answer later and after it.
func TestLateProposalsThatNameNoCostAreCharged(t *testing.T) {
	for name, c := range map[string]struct {
		usage specialist.Usage
		want  spend.Book
	}{
		"nothing":     {specialist.Usage{}, spend.Book{Calls: 1, Money: dollar / 2}},
		"a cost of 0": {cost(0), spend.Book{Calls: 1}},
		"a cost":      {cost(dollar / 8), spend.Book{Calls: 1, Money: dollar / 8}},
		"tokens":      {specialist.Usage{NumInputTokens: 7, Given: specialist.InputGiven}, spend.Book{Calls: 1, Money: dollar / 2, TokensIn: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, public)
			s, _ := b.late(estimated("0.5"))
			b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w", TransitionName: "again", Usage: c.usage})
			if got := b.spent(s); got != c.want {
				t.Errorf("%+v is spent, want %+v\n%s", got, c.want, b.log(s, 1))
			}
		})
		t.Run(name+", before it is accepted", func(t *testing.T) {
			b := newBench(t, public)
			var s *session.Session
			b.cast.play("w", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
				b.submit(runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w", TransitionName: "again", Usage: c.usage})
				return accepting(ctx, q)
			})
			s = b.start(b.desk(web("w", estimated("0.5")), human("human"), half))
			b.step(s)
			if got := b.spent(s); got != c.want {
				t.Errorf("%+v is spent, want %+v\n%s", got, c.want, b.log(s, 1))
			}
		})
	}
}

// TestVerdictsThatNameNoCostAreCharged: an arbiter's service likewise.
func TestVerdictsThatNameNoCostAreCharged(t *testing.T) {
	for name, c := range map[string]struct {
		expense *arbiter.Expense
		want    spend.Book
	}{
		"nothing":     {nil, spend.Book{Calls: 1, Money: dollar / 4}},
		"a cost of 0": {&arbiter.Expense{Usage: cost(0)}, spend.Book{Calls: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everSpending)
			b.cast.say("a", "again")
			b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
				d := arbiter.Elect(0, "the first")
				d.Expense = c.expense
				return d, nil
			}))
			s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arbWeb("judge")}, top: budget(`"hard_limit_usd":9,"default_estimate_usd":0.25`)}))
			b.stepTo(s, runner.TickAdvanced)
			b.wantBoth(s, c.want, 0)
		})
	}
}

// far is a cast whose censor is a service.
type far struct {
	*cast
	by guard.Classifier
}

// Classifier implements [strategies.Resolver].
func (f far) Classifier(*guard.ClassifierConfig) (guard.Classifier, error) { return f.by, nil }

// TestClassifiersThatNameNoCostAreCharged: a classifier's service likewise.
func TestClassifiersThatNameNoCostAreCharged(t *testing.T) {
	for said, want := range map[specialist.Usage]spend.Book{{}: {Calls: 1, Money: dollar / 4}, cost(0): {Calls: 1}} {
		c := &censor{says: func(guard.Classification) (guard.ClassifierAnswer, error) {
			return guard.ClassifierAnswer{Usage: said}, nil
		}}
		b := newBench(t)
		b.ok(b.r.Close())
		b.r = b.runner(everSpending, asking(far{b.cast, c}))
		b.cast.say("a", "again")
		s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half},
			top: `"guards":{"classifier":{"url":"https://c.example","token_name":"A_WEBHOOK_TOKEN","on_error":"closed"},"budget":{"hard_limit_usd":9,"default_estimate_usd":0.25,"probe_share_max":1}}`}))
		b.stepTo(s, runner.TickAdvanced)
		b.wantBoth(s, want, 0)
	}
}

// TestNobodyIsChargedForARoundOfNothing: an arbiter is not asked about no proposals, so
// that costs nothing.
func TestNobodyIsChargedForARoundOfNothing(t *testing.T) {
	b := newBench(t, everSpending)
	b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{}, errors.New("no such key: score")
	})
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arbWeb("judge")}, top: budget(`"hard_limit_usd":9,"default_estimate_usd":0.25`)}))
	b.stepTo(s, runner.TickHuman)
	b.wantBoth(s, spend.Book{}, 0)
}

// spent returns what a session has spent, but for how it is known.
func (b *bench) spent(s *session.Session) spend.Book {
	got := b.now(s).Spent()
	got.Estimated, got.Unpriced = 0, 0
	return got
}
