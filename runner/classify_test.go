package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/verdict"
)

// A censor is a classifier.
type censor struct {
	asked []guard.Classification
	says  func(q guard.Classification) (guard.ClassifierAnswer, error)
}

func (c *censor) Classify(_ context.Context, q guard.Classification) (guard.ClassifierAnswer, error) {
	c.asked = append(c.asked, q)
	if c.says == nil {
		return guard.ClassifierAnswer{}, nil
	}
	return c.says(q)
}

// of registers the censor as the function "mod".
func (c *censor) of(b *bench) func(*runner.Config) {
	return asking(strategies.Registry{}.WithClassifier("mod", c))
}

func (c *censor) bench(t *testing.T, more ...func(*runner.Config)) *bench {
	b := newBench(t)
	b.ok(b.r.Close())
	b.r = b.runner(append(more, c.of(b))...)
	return b
}

// classified is a machine whose steps are classified.
func (b *bench) classified(members string) *session.Session {
	b.Helper()
	b.cast.say("a", "again")
	return b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"classifier":{"function":"mod"` + members + `}}`}))
}

// TestClassifierInMachines: it is asked about what the winner says and which
// tools it calls, after the other guards and never about a human's ruling; what it
// says is the verdict, and what it costs is paid.
func TestClassifierInMachines(t *testing.T) {
	flagged := func(s verdict.Status) func(guard.Classification) (guard.ClassifierAnswer, error) {
		return func(q guard.Classification) (guard.ClassifierAnswer, error) {
			if q.Stage == "args" {
				return guard.ClassifierAnswer{Verdict: s, Score: 0.9, Code: "S1", Usage: cost(dollar)}, nil
			}
			return guard.ClassifierAnswer{Usage: cost(dollar)}, nil
		}
	}
	failing := func(guard.Classification) (guard.ClassifierAnswer, error) {
		return guard.ClassifierAnswer{}, errors.New("no power")
	}
	for _, c := range []struct {
		says    func(guard.Classification) (guard.ClassifierAnswer, error)
		members string
		status  runner.TickStatus
		code    string
		spent   int64
	}{
		{flagged(verdict.OK), `,"on_error":"closed"`, runner.TickAdvanced, "", 2},
		{flagged(verdict.Warn), `,"on_error":"closed"`, runner.TickAdvanced, "", 2},
		{flagged(verdict.Retry), `,"on_error":"closed"`, runner.TickRejected, "classifier_flagged", 2},
		{flagged(verdict.Abort), `,"on_error":"closed"`, runner.TickStopped, "classifier_flagged", 2},
		{failing, `,"on_error":"closed"`, runner.TickHuman, "classifier_error", 0},
		{failing, `,"on_error":"open"`, runner.TickAdvanced, "", 0},
	} {
		asked := &censor{says: c.says}
		b := asked.bench(t)
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{TransitionName: "again", Reasoning: "it is again", ToolCalls: []specialist.ToolCall{{Name: "rm", Args: []byte(`{"p":"/"}`)}}}, nil
		})
		s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: `"guards":{"classifier":{"function":"mod","model":"g"` + c.members + `}}`}))
		tick := b.stepTo(s, c.status)
		if spent := b.now(s).Spent(); tick.Code != c.code || spent.Money != dollar*exact.Money(c.spent) || len(asked.asked) != 2 || spent.Calls != 2 {
			t.Errorf("%s: came to %s, spent %+v", c.members, tick.Code, spent)
		}
		if q := asked.asked[1]; q.Stage != "args" || q.Text != `{"p":"/"}` || q.Meta.Tool != "rm" || q.Meta.Model != "g" || q.Meta.Task != s.ID.String() {
			t.Errorf("asked was %+v", q)
		}
		b.force(s0(b, s), "again")
		if len(asked.asked) != 2 {
			t.Errorf("%s: the ruling was classified", c.members)
		}
	}
}

// s0 resumes a session that was stopped.
func s0(b *bench, s *session.Session) *session.Session {
	b.Helper()
	_, err := b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	return s
}

// TestClassifierReserves: what a function costs that judges by a model is set aside before
// it is asked, at the model's price; where that is more than is left, nobody is asked. A
// model without a price is charged what the budget thinks of whoever does not say.
func TestClassifierReserves(t *testing.T) {
	const priced = `},"cost":{"prices":{"g":{"output_per_1m":1000}}`
	for name, c := range map[string]struct {
		model, budget string
		status        runner.TickStatus
		held, spent   exact.Money
	}{
		"a price within the limit": {"g", `"hard_limit_usd":9,"probe_share_max":1` + priced, runner.TickAdvanced, dollar * 256 / 1000, dollar / 8},
		"a price beyond the limit": {"g", `"hard_limit_usd":0.2` + priced, runner.TickStopped, 0, 0},
		"a default":                {"h", `"hard_limit_usd":9,"probe_share_max":1,"default_estimate_usd":0.25`, runner.TickAdvanced, dollar / 4, dollar / 4},
		"nothing to go by":         {"h", `"hard_limit_calls":9`, runner.TickAdvanced, 0, 0},
		"another pays":             {"h", `"hard_limit_usd":9,"default_estimate_usd":0.25,"debit_probes":false`, runner.TickAdvanced, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var held exact.Money
			asked := &judge{}
			b := newBench(t)
			b.ok(b.r.Close())
			b.r = b.runner(asking(strategies.Registry{}.WithClassifier("mod", asked)))
			b.cast.say("a", "again")
			s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"classifier":{"function":"mod","on_error":"closed","model":"` + c.model + `"},"budget":{` + c.budget + `}}`}))
			asked.before = func() {
				for _, a := range b.now(s).OpenAsks() {
					held += a.Remote.Estimate
				}
			}
			tick := b.step(s)
			if got := b.now(s).Spent().Money; tick.Status != c.status || got != c.spent || held != c.held || asked.calls > 0 != (c.status == runner.TickAdvanced) {
				t.Errorf("came to %s %s with $%s set aside, $%s spent and %d questions", tick.Status, tick.Code, held, got, asked.calls)
			}
		})
	}
}

// A judge is a classifier that asks a model, whose cost it tells where it is known.
type judge struct {
	before func()
	calls  int
}

func (j *judge) Classify(ctx context.Context, q guard.Classification) (guard.ClassifierAnswer, error) {
	j.before()
	j.calls++
	u := specialist.Usage{NumOutputTokens: 125, Given: specialist.InputGiven | specialist.OutputGiven}.WithCalls(1, 0)
	specialist.CallerOf(ctx).Spent(u, q.Meta.Model, q.Meta.Model)
	return guard.ClassifierAnswer{}, nil
}

// TestClassifierMemory: what was asked once is not asked again by this process,
// in any session, and one that keeps failing is left alone for a while.
func TestClassifierMemory(t *testing.T) {
	c := &censor{}
	b := c.bench(t)
	for range 3 {
		b.stepTo(b.classified(`,"on_error":"closed"`), runner.TickAdvanced)
	}
	if len(c.asked) != 1 {
		t.Errorf("%d questions were asked", len(c.asked))
	}
	now := time.Now()
	c = &censor{says: func(guard.Classification) (guard.ClassifierAnswer, error) {
		return guard.ClassifierAnswer{}, errors.New("no power")
	}}
	b = c.bench(t, func(r *runner.Config) { r.Now = func() time.Time { now = now.Add(time.Millisecond); return now } })
	s := b.classified(`,"on_error":"open","breaker":{"failures":2,"pause_ms":5000}`)
	for range 4 {
		b.stepTo(s, runner.TickAdvanced)
	}
	if len(c.asked) != 2 || !strings.Contains(string(b.raw(s)[len(b.raw(s))-3].Data), "not asked for a while") {
		t.Errorf("%d questions were asked; the log:\n%s", len(c.asked), b.raw(s)[len(b.raw(s))-3].Data)
	}
	now = now.Add(5 * time.Second)
	b.stepTo(s, runner.TickAdvanced)
	if len(c.asked) != 3 {
		t.Errorf("after the pause %d questions were asked", len(c.asked))
	}
}

// TestClassifierTurns: it is shown what was said before.
func TestClassifierTurns(t *testing.T) {
	c := &censor{}
	b := c.bench(t)
	s := b.classified(`,"on_error":"closed","context_turns":2,"cache":0`)
	for range 4 {
		b.stepTo(s, runner.TickAdvanced)
	}
	if got := c.asked[3].Meta.Turns; len(c.asked) != 4 || len(got) != 2 || got[0] != "it is again" || c.asked[0].Meta.Turns != nil {
		t.Errorf("the turns are %q", got)
	}
}

// TestClassifierAndTruth: the classifier first; what it refuses no model is asked
// about.
func TestClassifierAndTruth(t *testing.T) {
	for _, status := range []verdict.Status{verdict.OK, verdict.Retry} {
		var o oracle
		c := &censor{says: func(guard.Classification) (guard.ClassifierAnswer, error) {
			return guard.ClassifierAnswer{Verdict: status}, nil
		}}
		b := c.bench(t, o.with)
		b.cast.say("a", "again")
		s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"classifier":{"function":"mod","on_error":"open"},"truth":{"model":"m"}}`}))
		tick := b.step(s)
		if want := map[verdict.Status]int{verdict.OK: probes}[status]; o.asked() != want {
			t.Errorf("%s: %d questions, came to %s", status, o.asked(), tick.Status)
		}
	}
}

// TestClassifierBehindAWebhook: a url is asked through the program's Resolver.
func TestClassifierBehindAWebhook(t *testing.T) {
	c := &censor{}
	b := newBench(t, asking(remoteCensor{c: c}))
	b.cast.say("a", "again")
	s := b.start(b.machine(def{who: []string{fn("a"), half}, top: `"guards":{"classifier":{"url":"https://c.example","token_name":"T","on_error":"open"}}`}))
	b.stepTo(s, runner.TickAdvanced)
	if len(c.asked) != 1 || !strings.Contains(b.log(s, 0), "asked __classifier#2") {
		t.Errorf("the log:\n%s", b.log(s, 0))
	}
}

type remoteCensor struct {
	strategies.Registry
	c *censor
}

func (r remoteCensor) Classifier(c *guard.ClassifierConfig) (guard.Classifier, error) {
	if c.URL != "https://c.example" || c.TokenName != "T" {
		return nil, errors.New("another one")
	}
	return r.c, nil
}

// TestLostQuestionIsAskedAgain: what a killed process has asked is asked again, under
// its key, and paid, also where another session has got the answer meanwhile.
func TestLostQuestionIsAskedAgain(t *testing.T) {
	c := &censor{says: func(guard.Classification) (guard.ClassifierAnswer, error) {
		return guard.ClassifierAnswer{Usage: cost(dollar)}, nil
	}}
	dead := errors.New("killed")
	disk := &contested{}
	b := c.bench(t, func(c *runner.Config) { disk.Store = c.Store; c.Store = disk })
	s := b.classified(`,"on_error":"closed"`)
	disk.on(func(c *session.Change) error {
		if settles(c) {
			return dead
		}
		return nil
	})
	if _, err := b.r.Step(b.ctx, s.ID); !errors.Is(err, dead) || len(c.asked) != 1 {
		t.Fatalf("the step came to %v after %d questions", err, len(c.asked))
	}
	b.ok(b.r.Close())
	disk.on(nil)
	b.r = b.runner(c.of(b))
	other := b.classified(`,"on_error":"closed"`)
	b.stepTo(other, runner.TickAdvanced)
	b.stepTo(s, runner.TickAdvanced)
	if spent := b.now(s).Spent(); len(c.asked) != 3 || spent.Money != dollar {
		t.Errorf("%d questions were asked, and the session that was lost spent %+v", len(c.asked), spent)
	}
	third := b.classified(`,"on_error":"closed"`)
	b.stepTo(third, runner.TickAdvanced)
	if len(c.asked) != 3 {
		t.Errorf("%d questions were asked: what is known is asked again where nothing was lost", len(c.asked))
	}
}
