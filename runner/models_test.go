package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A model is a part of the cast that says beforehand what it needs.
type model struct {
	*cast
	id      string
	context specialist.Context
}

// Propose implements specialist.Proposer.
func (m model) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	text, err := m.context.Gather(ctx, q)
	if err != nil {
		return specialist.Answer{}, err
	}
	a, err := m.ask(ctx, q)
	a.Reasoning, a.Model = text, m.id
	return a, err
}

// Estimate implements specialist.Estimator.
func (m model) Estimate(specialist.Question) specialist.Estimate {
	return specialist.Estimate{Model: m.id, InputTokens: 1000, OutputTokens: 500}
}

// models makes models of a cast.
type models struct {
	strategies.Registry // of nobody
	cast                *cast
}

func (m models) Proposer(_ *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error) {
	if s.ModelID == "" {
		return nil, nil
	}
	if s.ModelID == "bad[" {
		return nil, errors.New(`modelId "bad[": the flags have no end`)
	}
	return model{m.cast, s.ModelID, context}, nil
}

func withModels(b **bench) func(*runner.Config) {
	return func(c *runner.Config) { asking(models{cast: (*b).cast})(c) }
}

func llm(id, modelID string, rest ...string) string {
	return entry("proposer", id, `"contextFn":"sessionContext","modelId":"`+modelID+`"`, rest...)
}

// modelBench returns a bench whose runner knows models, and what two of them cost.
func modelBench(t *testing.T, configure ...func(*runner.Config)) *bench {
	var b *bench
	table, problems := spend.ParsePrices([]byte(`{"version":"v1","prices":{"cheap":{"input_per_1m":100,"output_per_1m":800},"free":{}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	b = newBench(t)
	b.r = b.runner(append([]func(*runner.Config){func(c *runner.Config) { c.Prices = table }, withModels(&b)}, configure...)...)
	return b
}

func tokens(in, out int64) specialist.Usage {
	return specialist.Usage{NumInputTokens: in, NumOutputTokens: out, Given: specialist.InputGiven | specialist.OutputGiven}
}

func answering(transition string, u specialist.Usage) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: transition, Usage: u}, nil
	}
}

// TestModelPrices: the machine's price wins over the program's, what the provider
// says over both; what nobody knows is counted as that.
func TestModelPrices(t *testing.T) {
	for _, c := range []struct {
		model, guards string
		usage         specialist.Usage
		want          string
		unpriced      int64
	}{
		{"cheap", "", tokens(1000, 100), "0.18", 0},
		{"cheap", `"cost":{"prices":{"cheap":{"input_per_1m":1000}}}`, tokens(1000, 100), "1", 0},
		{"cheap", `"cost":{"prices":{"other":{"input_per_1m":1000}},"on_unknown_model":"estimate_max"}`, tokens(1000, 100), "0.18", 0},
		{"new", `"cost":{"prices":{"other":{"input_per_1m":1000}},"on_unknown_model":"estimate_max"}`, tokens(1000, 100), "1", 0},
		{"cheap", "", tokens(1000, 100).WithCost(dollar / 4), "0.25", 0},
		{"free", "", tokens(1000, 100), "0", 0},
		{"new", "", tokens(1000, 100), "0", 1},
	} {
		b := modelBench(t)
		b.cast.play("m", answering("again", c.usage))
		s := b.start(b.machine(def{who: []string{llm("m", c.model), arb("firstProposal")}, top: `"guards":{` + c.guards + `}`}))
		b.stepTo(s, runner.TickAdvanced)
		if got := b.now(s).Spent(); got.Money.String() != c.want || got.Unpriced != c.unpriced || got.TokensIn != 1000 || got.TokensOut != 100 {
			t.Errorf("%s under {%s}: %+v, want $%s and %d without a price", c.model, c.guards, got, c.want, c.unpriced)
		}
	}
}

// TestModelBudget: what a model is expected to need is held before it is asked, in
// dollars and tokens: of three that need a second each, those that could break the
// budget together wait for what the others did not need, and one that could break
// it alone is not asked.
func TestModelBudget(t *testing.T) {
	for limit, want := range map[string]struct {
		asked int
		took  time.Duration
	}{
		`"hard_limit_usd":1.2`: {3, 2 * time.Second}, `"hard_limit_tokens":3500`: {3, 2 * time.Second},
		`"hard_limit_usd":1.6`: {3, time.Second}, `"hard_limit_tokens":4500`: {3, time.Second},
		`"hard_limit_usd":0.4`: {0, 0}, `"hard_limit_tokens":1499`: {0, 0},
	} {
		bubble(t, func(b *bench) {
			table, _ := spend.ParsePrices([]byte(`{"prices":{"cheap":{"input_per_1m":100,"output_per_1m":800}}}`))
			b.r = b.runner(inBubble, asking(models{cast: b.cast}), func(c *runner.Config) { c.Prices = table })
			for _, id := range []string{"a", "b", "c"} {
				b.cast.play(id, after(time.Second, answering("again", tokens(100, 10))))
			}
			b.cast.judge("judge", electFirst)
			s := b.start(b.machine(def{who: []string{llm("a", "cheap"), llm("b", "cheap"), llm("c", "cheap"), arbFn("judge")}, top: budget(limit)}))
			start := time.Now()
			b.step(s)
			who := slices.DeleteFunc(b.cast.who(), func(id string) bool { return id == "judge" })
			if took := time.Since(start); len(who) != want.asked || took != want.took {
				t.Errorf("%s: asked were %v in %s, want %+v", limit, who, took, want)
			}
			if spent := b.now(s).Spent().Money; int64(spent) != int64(want.asked)*18_000_000_000 {
				t.Errorf("%s: spent $%s", limit, spent)
			}
			if want.asked == 0 && b.now(s).Status != session.Stopped {
				t.Errorf("%s: the session is %s", limit, b.now(s).Status)
			}
		})
	}
}

// TestModelDeclaredCost: estimatedCostUSD of the machine wins over the model's own
// estimate.
func TestModelDeclaredCost(t *testing.T) {
	b := modelBench(t)
	b.cast.play("m", answering("again", tokens(1, 1)))
	s := b.start(b.machine(def{who: []string{llm("m", "cheap", estimated("3")), arb("firstProposal")}}))
	b.stepTo(s, runner.TickAdvanced)
	asked := string(b.raw(s)[2].Data)
	if !strings.Contains(asked, `"estimatedCostUSD":3,"estimatedInputTokens":1000,"estimatedOutputTokens":500`) {
		t.Errorf("held is %s", asked)
	}
}

// TestModelCancelled: a round that is decided without a model charges what it was
// expected to need.
func TestModelCancelled(t *testing.T) {
	bubble(t, func(b *bench) {
		table, _ := spend.ParsePrices([]byte(`{"prices":{"cheap":{"input_per_1m":100,"output_per_1m":800}}}`))
		b.r = b.runner(inBubble, asking(models{cast: b.cast}), func(c *runner.Config) { c.Prices = table })
		b.cast.play("quick", after(time.Second, saying("again")))
		b.cast.play("slow", hanging)
		s := b.start(b.machine(def{who: []string{llm("quick", "free"), llm("slow", "cheap"), arb("firstProposal")}}))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if d := time.Since(start); d != time.Second {
			t.Errorf("the round took %s", d)
		}
		if got := b.now(s).Spent(); got.Money.String() != "0.5" || got.TokensIn != 1000 || got.TokensOut != 500 || got.Estimated != 1 {
			t.Errorf("spent %+v", got)
		}
	})
}

// TestModelContext: the context comes from the Registry, from what is built in, or
// from a webhook, and is gathered before the model is asked.
func TestModelContext(t *testing.T) {
	own := strategies.Registry{}.WithContext("own", specialist.ContextFunc(func(_ context.Context, q specialist.Question) (string, error) {
		return "own context of " + q.Self, nil
	}))
	for source, want := range map[string]string{
		`"contextFn":"sessionContext"`: "metaJson: {\"amount\":7}\n",
		`"contextFn":"own"`:            "own context of m",
		`"contextWebhookUrl":"https://hooks.example/c","webhookTokenName":"A_WEBHOOK_TOKEN"`: "metaJson: {\"amount\":7}\n", // as the cast has it
	} {
		b := modelBench(t, asking(own))
		b.cast.play("m", answering("again", tokens(1, 1)))
		s := b.start(b.machine(def{who: []string{entry("proposer", "m", source+`,"modelId":"free"`), arb("firstProposal")}}), runner.StartOptions{Meta: []byte(`{"amount":7}`)})
		b.stepTo(s, runner.TickAdvanced)
		if got := b.now(s).History()[0].Reasoning; got != want {
			t.Errorf("%s: the context is %q, want %q", source, got, want)
		}
	}
}

// TestContextsAreNoCalls: what gathers a context is part of the ask of its model. It
// costs time and no call of its own, and where it fails nothing was asked and what was
// held is there again.
func TestContextsAreNoCalls(t *testing.T) {
	var broken bool
	own := strategies.Registry{}.WithContext("own", specialist.ContextFunc(func(ctx context.Context, q specialist.Question) (string, error) {
		if broken {
			return "", errors.New("out of order")
		}
		return "a context", nil
	}))
	b := modelBench(t, asking(own), tenants(spend.Quota{Windows: []spend.Window{{Msec: 1 << 40, Calls: new(int64(9))}}}))
	b.cast.play("m", answering("again", tokens(10, 5)))
	s := b.start(b.machine(def{who: []string{entry("proposer", "m", `"contextFn":"own","modelId":"free"`), human("human"), arb("firstProposal")}, top: `"guards":{"budget":{"hard_limit_calls":2}}`}))
	b.stepTo(s, runner.TickAdvanced)
	if spent := b.now(s).Spent(); spent.Calls != 1 || spent.TokensIn != 10 || spent.TokensOut != 5 {
		t.Errorf("a model with a context spent %+v", spent)
	}
	broken = true // then a human is asked
	b.stepTo(s, runner.TickHuman)
	if spent := b.now(s).Spent(); spent.Calls != 1 || !strings.Contains(b.log(s, 2), "ask_failed m ask_error") {
		t.Errorf("a context that failed spent %+v:\n%s", spent, b.log(s, 2))
	}
	broken = false
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
	b.ok(err)
	b.stepTo(s, runner.TickAdvanced)
	if spent := b.now(s).Spent(); spent.Calls != 2 {
		t.Errorf("the second call of two: %+v", spent)
	}
}

// TestModelMissing: everything that a model lacks is said before any step.
func TestModelMissing(t *testing.T) {
	b := modelBench(t)
	_, err := b.r.Start(b.ctx, b.desk(entry("proposer", "m", `"contextFn":"none","modelId":"x"`), half), runner.StartOptions{})
	b.refused(err, runner.ErrUnknownStrategy, `contextFn "none" of specialist "m" is not in the Registry`)
	_, err = b.r.Start(b.ctx, b.desk(llm("m", "bad["), half), runner.StartOptions{})
	b.refused(err, nil, `specialist "m": modelId "bad[": the flags have no end`)
	bare := b.runner(func(c *runner.Config) { c.Resolver = models{cast: b.cast} })
	_, err = bare.Start(b.ctx, b.desk(entry("proposer", "m", `"contextWebhookUrl":"https://hooks.example/c","webhookTokenName":"A_WEBHOOK_TOKEN","modelId":"x"`), half), runner.StartOptions{})
	b.refused(err, nil, `specialist "m" has a webhook as its context, and this program has no way to call one`)
}

// TestModelIsAskedOnce: an answer that was recorded is not asked for again, by
// another process either; one that was lost is, under the same key.
func TestModelIsAskedOnce(t *testing.T) {
	b := modelBench(t)
	b.cast.play("a", answering("again", tokens(1, 1)))
	ctx, cancel := context.WithCancel(b.ctx)
	b.cast.play("b", func(context.Context, specialist.Question) (specialist.Answer, error) {
		cancel() // the process is told to stop while b is out
		return specialist.Answer{}, context.Canceled
	})
	b.cast.judge("judge", electFirst)
	s := b.start(b.machine(def{who: []string{llm("a", "free"), llm("b", "free"), arbFn("judge")}}))
	if _, err := b.r.Step(ctx, s.ID); err == nil { // a may come after b; then it is lost with it
		t.Fatal("a step that was cancelled succeeds")
	}
	heard := b.count(s, session.KindProposed)
	b.cast.who()
	before := b.cast.askIDs()
	b.cast.play("b", answering("again", tokens(1, 1)))
	b.ok(b.r.Close())
	b.r = b.runner(withModels(&b))
	b.stepTo(s, runner.TickAdvanced)
	again := slices.DeleteFunc(b.cast.who(), func(id string) bool { return id == "judge" })
	if len(again) != 2-heard || !slices.Contains(again, "b") {
		t.Errorf("%d answers were recorded, and asked again were %v", heard, again)
	}
	if after := slices.Compact(b.cast.askIDs()); len(after) != 2 || slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(after, id) }) {
		t.Errorf("asks had the ids %v, then %v", before, after)
	}
}

// TestFunctionsSettleARound: what a function says while others are out may decide
// the round, so nobody outside is waited for.
func TestFunctionsSettleARound(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.say("quick", "again")
		b.cast.play("slow", hanging)
		s := b.start(b.machine(def{who: []string{web("slow", estimated("0.25")), fn("quick"), arb("firstProposal")}}))
		start := time.Now()
		b.stepTo(s, runner.TickAdvanced)
		if took := time.Since(start); took != 0 {
			t.Errorf("the round took %s", took)
		}
		if log := b.log(s, 2); !strings.Contains(log, "ask_failed slow cancelled") {
			t.Errorf("the log says\n%s", log)
		}
	})
}
