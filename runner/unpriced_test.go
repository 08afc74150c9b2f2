package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// TestUnpricedAsksAreNotMade: under a hard limit of dollars nobody is asked of whom
// nothing says what that may cost: a file that names one is refused, and what was
// registered fails unasked, saying why.
func TestUnpricedAsksAreNotMade(t *testing.T) {
	const limit = `"hard_limit_usd":0.01`
	for name, c := range map[string]struct {
		who    string
		budget string
		load   string // the error of loading the file, or of starting
	}{
		"a webhook":              {web("w"), limit, `specialist "w" is asked by webhook and does not say what that may cost`},
		"an arbiter":             {arbWeb("w"), limit, `specialist "w" is asked by webhook and does not say what that may cost`},
		"a webhook that is free": {web("w", estimated("0")), limit, ""},
		"an estimate":            {web("w", estimated("0.001")), limit, ""},
		"a default":              {web("w"), limit + `,"default_estimate_usd":0.001`, ""},
		"no hard limit":          {web("w"), `"soft_limit_usd":0.01`, ""},
		"one that only observes": {web("w"), limit + `,"mode":"observe"`, ""},
		"a model":                {llm("m", "unknown"), limit, `specialist "m" asks the model "unknown", and nothing says what that may cost`},
		"a known model":          {llm("m", "cheap"), limit, ""},
		"a model with a default": {llm("m", "unknown"), limit + `,"default_estimate_usd":0.001`, ""},
		"a function":             {fn("f"), limit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := modelBench(t)
			d := def{who: []string{c.who, human("human")}, top: budget(c.budget)}
			m, err := machine.Parse("machine.json", []byte(d.text()), runner.Checks())
			if err == nil {
				_, err = b.r.Start(b.ctx, m, runner.StartOptions{})
			}
			if c.load == "" && err != nil || c.load != "" && (err == nil || !strings.Contains(err.Error(), c.load) || !strings.Contains(err.Error(), "machine.json:2:")) {
				t.Errorf("the error is %v, want %q", err, c.load)
			}
		})
	}
}

// TestUnpricedAreThoseWhoAreAsked: whom a state's list names by reference is asked there,
// as are the arbiters of the machine where the list has none; whom no
// state asks needs no price.
func TestUnpricedAreThoseWhoAreAsked(t *testing.T) {
	limit := budget(`"hard_limit_usd":0.01`)
	states := func(list string) string {
		return `"open":{"transitions":{"go":"done"},"specialists":[` + list + `]},"done":{}`
	}
	for name, c := range map[string]struct {
		d    def
		path string // of who has no price; "" if there is none
	}{
		"a reference":                    {def{who: []string{fn("f"), web("w")}, states: states(ref("proposer", "w")), top: limit}, "/specialists/1"},
		"an own specialist":              {def{who: []string{fn("f")}, states: states(web("w")), top: limit}, "/states/open/specialists/0"},
		"a reference that is off":        {def{who: []string{web("w")}, states: states(ref("proposer", "w", `"disabled":true`)), top: limit}, ""},
		"the machine's arbiter":          {def{who: []string{arbWeb("w")}, states: states(fn("f")), top: limit}, "/specialists/0"},
		"an arbiter beside a state's":    {def{who: []string{arbWeb("w")}, states: states(fn("f") + "," + arbFn("judge")), top: limit}, ""},
		"somebody whom no state asks":    {def{who: []string{web("w")}, states: states(fn("f")), top: limit}, ""},
		"a budget of the profile compat": {def{who: []string{web("w")}, top: `"guards":{"profile":"compat","budget":{"hard_limit_usd":0.01}}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := machine.Parse("machine.json", []byte(c.d.text()), runner.Checks())
			if invalid, ok := errors.AsType[*machine.Error](err); ok != (c.path != "") || ok && (len(invalid.Problems) != 1 || invalid.Problems[0].Path != c.path || invalid.Problems[0].Code != guard.UnpricedAsk) {
				t.Errorf("loading says %v, want something about %q", err, c.path)
			}
		})
	}
}

// TestRegisteredUnpricedArbiter: one that was registered without a price is not asked
// either, and the session waits for a human instead of asking again and again.
func TestRegisteredUnpricedArbiter(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("f"), human("human")}, top: budget(`"hard_limit_usd":0.01`)})
	b.cast.say("f", "again")
	b.cast.judge("judge", electFirst)
	_, err := b.r.Register(b.ctx, m.Name(), machine.Specialist{SpecialistID: "judge", Role: machine.Arbiter, StrategyWebhookURL: "https://hooks.example/judge", WebhookTokenName: "A_WEBHOOK_TOKEN"}, nil)
	b.ok(err)
	s := b.start(m)
	b.stepTo(s, runner.TickHuman)
	if who, log := strings.Join(b.cast.who(), " "), b.log(s, 1); who != "f" || strings.Count(log, "unpriced_ask") != 1 {
		t.Errorf("asked were %s\n%s", who, log)
	}
}

// TestRegisteredUnpricedIsNotAsked registers three services of $5 under a limit of one
// cent: nobody is asked, and each failure says what to write.
func TestRegisteredUnpricedIsNotAsked(t *testing.T) {
	for _, whole := range []bool{true, false} {
		b := newBench(t)
		top := `"hard_limit_usd":0.01`
		if whole {
			top += `,"default_estimate_usd":0.001`
		}
		m := b.machine(def{who: []string{human("human"), half}, top: budget(top)})
		for _, id := range []string{"w1", "w2", "w3"} {
			b.cast.play(id, func(context.Context, specialist.Question) (specialist.Answer, error) {
				return specialist.Answer{TransitionName: "again", Usage: cost(5 * dollar)}, nil
			})
			_, err := b.r.Register(b.ctx, m.Name(), machine.Specialist{SpecialistID: id, Role: machine.Proposer, StrategyWebhookURL: "https://hooks.example/" + id, WebhookTokenName: "A_WEBHOOK_TOKEN"}, nil)
			b.ok(err)
		}
		s := b.start(m)
		b.step(s)
		who, log := b.cast.who(), b.log(s, 1)
		if whole != (len(who) == 3) || !whole && strings.Count(log, "unpriced_ask") != 3 {
			t.Errorf("with a default %t, asked were %v\n%s", whole, who, log)
		}
		if whole {
			continue
		}
		if _, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w1"}); err == nil || !strings.Contains(err.Error(), "budget.default_estimate_usd") {
			t.Errorf("asked by hand: %v", err)
		}
		if b.now(s).Spent().Money != 0 {
			t.Errorf("spent %+v", b.now(s).Spent())
		}
	}
}

// TestModelsWithoutPriceAreChargedAsEstimated: a call of a model that has no price costs
// what the machine says that one costs, whether it fails after it was sent or is
// answered: else a limit of dollars never ends them.
func TestModelsWithoutPriceAreChargedAsEstimated(t *testing.T) {
	tokens := specialist.Usage{NumInputTokens: 400, NumOutputTokens: 1000, Given: specialist.InputGiven | specialist.OutputGiven}
	for name, c := range map[string]struct {
		usage specialist.Usage
		fails bool
		spent spend.Book
	}{
		"reset":              {tokens, true, spend.Book{Calls: 1, Money: dollar / 2, TokensIn: 400, TokensOut: 1000}},
		"answered":           {tokens, false, spend.Book{Calls: 1, Money: dollar / 2, TokensIn: 400, TokensOut: 1000}},
		"repaired once":      {tokens.WithCalls(2, 0), false, spend.Book{Calls: 2, Money: dollar, TokensIn: 400, TokensOut: 1000}},
		"refused":            {specialist.Usage{}.WithCalls(1, 1), true, spend.Book{Calls: 1}},
		"a provider says so": {tokens.WithCost(dollar / 8), false, spend.Book{Calls: 1, Money: dollar / 8, TokensIn: 400, TokensOut: 1000}},
	} {
		for limit, own := range map[string][2]string{"an estimate": {estimated("0.5"), "0.01"}, "a default": {"", "0.5"}} {
			t.Run(name+", "+limit, func(t *testing.T) {
				b := modelBench(t)
				b.cast.play("m", func(context.Context, specialist.Question) (specialist.Answer, error) {
					if c.fails {
						return specialist.Answer{Usage: c.usage, Model: "unknown"}, errors.New("connection reset by peer")
					}
					return specialist.Answer{TransitionName: "again", Usage: c.usage, Model: "unknown"}, nil
				})
				s := b.start(b.machine(def{who: []string{llm("m", "unknown", own[0]), human("human"), half}, top: budget(`"hard_limit_usd":9,"default_estimate_usd":` + own[1])}))
				_, err := b.r.Step(b.ctx, s.ID)
				b.ok(err)
				got := b.now(s).Spent()
				if got.Estimated, got.Unpriced = 0, 0; got != c.spent {
					t.Errorf("%+v is spent, want %+v", got, c.spent)
				}
			})
		}
	}
}

// TestLostVerdictsCostTheDefault: an arbiter's service that is asked and lost costs what
// the budget says of those that say nothing, as a proposer's does.
func TestLostVerdictsCostTheDefault(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Decision{}, fmt.Errorf("connection reset by peer: %w", specialist.ErrUncounted)
	}))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), arbWeb("judge")}, top: budget(`"hard_limit_usd":0.6,"default_estimate_usd":0.25`)}))
	for range 4 {
		_, err := b.r.Step(b.ctx, s.ID)
		b.ok(err)
		if _, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{}); err != nil && !errors.Is(err, runner.ErrNotRunning) {
			t.Fatal(err)
		}
	}
	if spent := b.now(s).Spent(); spent.Money != dollar/2 || spent.Calls != 2 {
		t.Errorf("of a limit of $0.60 %+v is spent", spent)
	}
}
