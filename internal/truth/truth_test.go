package truth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/verdict"
)

func TestDecide(t *testing.T) {
	def := truth.DefaultThresholds()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name       string
		u, s, a    float64
		thresholds truth.Thresholds
		kind       truth.Kind
		code       string
		stage      string
	}{
		{"all good", 0.1, 0.9, 0.9, def, "pass", "", "pass"},
		{"all at their thresholds", 0.6, 0.5, 0.5, def, "pass", "", "pass"},
		{"uncertain", 0.600001, 0.9, 0.9, def, "refuse", "high_uncertainty", "uncertainty"},
		{"insensitive", 0.1, 0.499999, 0.9, def, "refuse", "low_sensitivity", "sensitivity"},
		{"unsteady", 0.1, 0.9, 0.499999, def, "escalate", "low_adherence", "adherence"},
		{"everything fails, the first counts", 1, 0, 0, def, "refuse", "high_uncertainty", "uncertainty"},
		{"the second before the third", 0, 0, 0, def, "refuse", "low_sensitivity", "sensitivity"},
		{"tighter", 0.5, 0.9, 0.9, truth.Thresholds{TauU: 0.4, TauS: 0.4, TauA: 0.5}, "refuse", "high_uncertainty", "uncertainty"},
		{"a threshold each", 0.1, 0.7, 0.7, truth.Thresholds{TauU: 0.6, TauS: 0.5, TauA: 0.8}, "escalate", "low_adherence", "adherence"},
		{"the ends", 1, 0, 0, truth.Thresholds{TauU: 1}, "pass", "", "pass"},
		{"NaN first", nan, 0.9, 0.9, def, "escalate", "internal_error", "uncertainty"},
		{"NaN second", 0.1, nan, 0.9, def, "escalate", "internal_error", "sensitivity"},
		{"NaN third, though the first refuses", 1, 0.9, nan, def, "escalate", "internal_error", "adherence"},
		{"negative", -0.001, 0.9, 0.9, def, "escalate", "internal_error", "uncertainty"},
		{"above one", 0.1, 1.001, 0.9, def, "escalate", "internal_error", "sensitivity"},
		{"infinite", 0.1, 0.9, inf, def, "escalate", "internal_error", "adherence"},
		{"a threshold that is none", 0.1, 0.9, 0.9, truth.Thresholds{TauU: nan}, "escalate", "internal_error", "config"},
	} {
		want := truth.Decision{Kind: c.kind, Code: c.code, Stage: c.stage}
		if got := truth.Decide(truth.Scores{Uncertainty: c.u, Sensitivity: c.s, Adherence: c.a}, c.thresholds); got != want {
			t.Errorf("%s: Decide = %+v, want %+v", c.name, got, want)
		}
	}
}

// TestDecideIsMonotone checks that a better score never turns a pass into anything
// else.
func TestDecideIsMonotone(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	f := func() float64 { return float64(rng.IntN(11)) / 10 }
	for range 20000 {
		th := truth.Thresholds{TauU: f(), TauS: f(), TauA: f()}
		s := truth.Scores{Uncertainty: f(), Sensitivity: f(), Adherence: f()}
		better := truth.Scores{Uncertainty: s.Uncertainty * f(), Sensitivity: max(s.Sensitivity, f()), Adherence: max(s.Adherence, f())}
		want := s.Uncertainty <= th.TauU && s.Sensitivity >= th.TauS && s.Adherence >= th.TauA
		if got := truth.Decide(s, th).Kind == truth.Pass; got != want {
			t.Fatalf("seed %d: Decide(%+v, %+v) passes: %v", seed, s, th, got)
		}
		if want && truth.Decide(better, th).Kind != truth.Pass {
			t.Fatalf("seed %d: %+v passes %+v, but %+v does not", seed, s, th, better)
		}
	}
}

func found(value float64) truth.Probe {
	return truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) { return value, nil })
}

// stubbed is a configuration whose probes find these scores.
func stubbed(u, s, a float64) truth.Config {
	return truth.Config{Completer: truth.NewScript(), Uncertainty: found(u), Sensitivity: found(s), Adherence: found(a)}
}

var someTokens = truth.CountedTokens(60, 40)

func TestGatePaths(t *testing.T) {
	hard := func(tokens int64) *spend.Budget { return &spend.Budget{HardTokens: &tokens} }
	for _, c := range []struct {
		name    string
		u, s, a float64
		change  func(*truth.Config)
		kind    truth.Kind
		reason  string
		stage   string
		tripped string
		probes  int
		status  verdict.Status
		codes   string
	}{
		{"pass", 0.1, 0.9, 0.9, nil, "pass", "", "pass", "", 3, verdict.OK, ""},
		{"refuse", 0.9, 0.9, 0.9, nil, "refuse", "high_uncertainty", "uncertainty", "", 3, verdict.Retry, "high_uncertainty"},
		{"refuse second", 0.1, 0.1, 0.1, nil, "refuse", "low_sensitivity", "sensitivity", "", 3, verdict.Retry, "low_sensitivity"},
		{"escalate", 0.1, 0.9, 0.1, nil, "escalate", "low_adherence", "adherence", "", 3, verdict.Escalate, "low_adherence"},
		{"a refused answer stops early", 0.9, 0.9, 0.9, func(c *truth.Config) { c.ShortCircuit = true }, "refuse", "high_uncertainty", "uncertainty", "", 1, verdict.Retry, "high_uncertainty"},
		{"the second stops early", 0.1, 0.1, 0.1, func(c *truth.Config) { c.ShortCircuit = true }, "refuse", "low_sensitivity", "sensitivity", "", 2, verdict.Retry, "low_sensitivity"},
		{"NaN stops early", math.NaN(), 0.9, 0.9, func(c *truth.Config) { c.ShortCircuit = true }, "escalate", "internal_error", "uncertainty", "", 1, verdict.Escalate, "internal_error"},
		{"nothing to stop early for", 0.1, 0.9, 0.9, func(c *truth.Config) { c.ShortCircuit = true }, "pass", "", "pass", "", 3, verdict.OK, ""},
		{"NaN escalates", 0.1, math.NaN(), 0.9, nil, "escalate", "internal_error", "sensitivity", "", 3, verdict.Escalate, "internal_error"},
		{"at the hard limit", 0.1, 0.9, 0.9, func(c *truth.Config) { c.Budget = hard(100) }, "pass", "", "pass", "", 3, verdict.OK, ""},
		{"over the hard limit, no probe runs", 0.9, 0.9, 0.9, func(c *truth.Config) { c.Budget = hard(99) }, "budget_exceed", "", "budget", "budget_tokens", 0, verdict.Abort, "budget_tokens"},
		{"over the calls", 0.1, 0.9, 0.9, func(c *truth.Config) { c.Budget = &spend.Budget{HardCalls: new(int64)} }, "budget_exceed", "", "budget", "budget_calls", 0, verdict.Abort, "budget_calls"},
		{"observed", 0.1, 0.9, 0.9, func(c *truth.Config) { c.Budget = hard(9); c.Budget.Mode = spend.ModeObserve }, "pass", "", "pass", "budget_tokens", 3, verdict.Warn, "budget_tokens"},
		{"observed, and refused", 0.9, 0.9, 0.9, func(c *truth.Config) { c.Budget = hard(9); c.Budget.Mode = spend.ModeObserve }, "refuse", "high_uncertainty", "uncertainty", "budget_tokens", 3, verdict.Retry, "high_uncertainty budget_tokens"},
		{"soft", 0.1, 0.9, 0.9, func(c *truth.Config) { c.Budget = &spend.Budget{SoftTokens: new(int64(50))} }, "pass", "", "pass", "", 3, verdict.Warn, "budget_soft"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := stubbed(c.u, c.s, c.a)
			if c.change != nil {
				c.change(&cfg)
			}
			r := truth.Gate(t.Context(), truth.Candidate{ID: "c", Tokens: someTokens}, cfg)
			var reasons []string
			if c.reason != "" {
				reasons = []string{c.reason}
			}
			if r.Kind != c.kind || !slices.Equal(r.Reasons, reasons) || r.Meta.Stage != c.stage || r.Meta.Tripped != c.tripped || len(r.Meta.ProbesRun) != c.probes || r.Meta.CandidateID != "c" {
				t.Errorf("Gate = %+v", r)
			}
			if (r.Err != nil) != (c.reason == truth.CodeInternalError) {
				t.Errorf("Err = %v", r.Err)
			}
			v := r.Verdict()
			if v.Status != c.status || strings.Join(v.Codes(), " ") != c.codes {
				t.Errorf("Verdict = %+v", v)
			}
			if compared := c.kind != "pass" && c.reason != "" && c.reason != truth.CodeInternalError; compared != (v.Status > verdict.Warn && v.Reasons[0].Limit != "" && v.Reasons[0].Seen != "") {
				t.Errorf("the first reason is %+v", v.Reasons[0])
			}
			if (len(v.Notices) > 0) != strings.Contains(c.codes, "budget_soft") {
				t.Errorf("Notices = %q", v.Notices)
			}
			data, err := json.Marshal(r)
			if err != nil || !strings.Contains(string(data), `"reasons":[`) {
				t.Errorf("%s, %v", data, err)
			}
		})
	}
}

func TestGateRecords(t *testing.T) {
	for _, c := range []struct {
		name           string
		tokens         truth.TokenCounts
		prompt, answer string
		want           int64
	}{
		{"known", someTokens, "long prompt", "long answer", 100},
		{"known to be nothing", truth.CountedTokens(0, 0), "long prompt", "long answer", 0},
		{"nothing to estimate from", truth.TokenCounts{}, "", "", 8},
		{"estimated", truth.TokenCounts{}, "abc", "abcd", 4 + 1 + 4 + 2},
		{"estimated, not ASCII", truth.TokenCounts{}, "äö😀", "a\u2028", 4 + 6 + 4 + 1 + 2},
		{"input estimated", truth.TokenCounts{Output: new(int64(7))}, "abc", "x", 12},
		{"output estimated", truth.TokenCounts{Input: new(int64(7))}, "abc", "x", 12},
	} {
		ledger := tokenLedger(t, nil, nil)
		cfg := stubbed(0.9, 0.9, 0.9)
		cfg.Ledger = ledger
		truth.Gate(t.Context(), truth.Candidate{Prompt: c.prompt, Answer: c.answer, Tokens: c.tokens}, cfg)
		if got := ledger.Totals(); got != (truth.TokenTotals{Tokens: c.want, Calls: 1}) {
			t.Errorf("%s: %+v, want %d tokens", c.name, got, c.want)
		}
	}
}

func TestGateBooks(t *testing.T) {
	budget := &spend.Budget{HardTokens: new(int64(150)), SoftTokens: new(int64(50))}
	warnings := 0
	warn := func(truth.TokenTotals) error { warnings++; return nil }
	c := truth.Candidate{Tokens: someTokens}
	kinds := func(cfg truth.Config, id string) string {
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		c.UsageID = id
		var kinds []string
		for range 2 {
			kinds = append(kinds, string(truth.Gate(t.Context(), c, cfg).Kind))
		}
		return strings.Join(kinds, " ")
	}
	cfg := stubbed(0.1, 0.9, 0.9)
	cfg.Budget, cfg.OnSoft = budget, warn
	if got := kinds(cfg, ""); got != "pass pass" || warnings != 2 {
		t.Errorf("a fresh ledger each: %s, %d warnings", got, warnings)
	}
	warnings, cfg.Budget, cfg.Ledger = 0, nil, tokenLedger(t, budget, warn)
	if got := kinds(cfg, ""); got != "pass budget_exceed" || warnings != 1 {
		t.Errorf("a shared ledger: %s, %d warnings", got, warnings)
	}
	cfg.Ledger = tokenLedger(t, budget, warn)
	if got := kinds(cfg, "same"); got != "pass pass" {
		t.Errorf("a usage charged already: %s", got)
	}
}

// TestGateLooksAgain checks that spending by others stops the gate after the probe
// during which it happened, even if that is the last one.
func TestGateLooksAgain(t *testing.T) {
	for i, stage := range []string{truth.StageUncertainty, truth.StageSensitivity, truth.StageAdherence} {
		ledger := tokenLedger(t, &spend.Budget{HardTokens: new(int64(1000))}, nil)
		cfg := stubbed(0.1, 0.9, 0.9)
		cfg.Ledger = ledger
		other := truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) {
			_, err := ledger.Record(truth.TokenUsage{Input: 1000})
			return 0.5, err
		})
		*[]*truth.Probe{&cfg.Uncertainty, &cfg.Sensitivity, &cfg.Adherence}[i] = other
		r := truth.Gate(t.Context(), truth.Candidate{Tokens: someTokens}, cfg)
		if r.Kind != truth.BudgetExceed || len(r.Reasons) != 0 || len(r.Meta.ProbesRun) != i+1 || r.Meta.Ledger.Tokens != 1100 {
			t.Errorf("%s: %+v", stage, r)
		}
	}
}

// A brokenLedger fails where it is told to.
type brokenLedger struct{ at string }

func (l brokenLedger) fail(where string) {
	if l.at == where {
		panic("broken " + where)
	}
}

func (l brokenLedger) Record(truth.TokenUsage) (bool, error) {
	l.fail("Record")
	if l.at == "error" {
		return false, errors.New("broken")
	}
	return false, nil
}
func (l brokenLedger) Tripped() truth.Trip       { l.fail("Tripped"); return truth.Trip{} }
func (l brokenLedger) Totals() truth.TokenTotals { l.fail("Totals"); return truth.TokenTotals{} }

// TestGateFailsClosed breaks everything there is to break. Every case would pass if
// the break went unnoticed.
func TestGateFailsClosed(t *testing.T) {
	boom := errors.New("boom")
	fails := truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) { return 0.5, boom })
	panics := truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) { panic("boom") })
	sink := func(kind string) func(truth.Event) error {
		return func(e truth.Event) error {
			if e.Type == kind {
				return boom
			}
			return nil
		}
	}
	steps := func(c *truth.Config) {
		c.Uncertainty, c.Estimator = nil, truth.EstimateSteps
	}
	for _, c := range []struct {
		name   string
		change func(*truth.Config)
		stage  string
	}{
		{"uncertainty fails", func(c *truth.Config) { c.Uncertainty = fails }, "uncertainty"},
		{"sensitivity panics", func(c *truth.Config) { c.Sensitivity = panics }, "sensitivity"},
		{"adherence fails", func(c *truth.Config) { c.Adherence = fails }, "adherence"},
		{"adherence is out of range", func(c *truth.Config) { c.Adherence = found(1.5) }, "adherence"},
		{"sink fails at record", func(c *truth.Config) { c.OnEvent = sink("record") }, "event"},
		{"sink fails at probe", func(c *truth.Config) { c.OnEvent = sink("probe") }, "event"},
		{"sink fails at verdict", func(c *truth.Config) { c.OnEvent = sink("verdict") }, "event"},
		{"sink panics", func(c *truth.Config) { c.OnEvent = func(truth.Event) error { panic("boom") } }, "event"},
		{"sink fails at soft_warn", func(c *truth.Config) {
			c.Budget, c.OnEvent = &spend.Budget{SoftTokens: new(int64)}, sink("soft_warn")
		}, "event"},
		{"soft warning fails", func(c *truth.Config) {
			c.Budget = &spend.Budget{SoftTokens: new(int64)}
			c.OnSoft = func(truth.TokenTotals) error { return boom }
		}, "record"},
		{"soft warning panics", func(c *truth.Config) {
			c.Budget = &spend.Budget{SoftTokens: new(int64)}
			c.OnSoft = func(truth.TokenTotals) error { panic(boom) }
		}, "record"},
		{"budget is negative", func(c *truth.Config) { c.Budget = &spend.Budget{HardTokens: new(int64(-1))} }, "budget"},
		{"soft limit above the hard one", func(c *truth.Config) {
			c.Budget = &spend.Budget{SoftTokens: new(int64(1001)), HardTokens: new(int64(1000))}
		}, "budget"},
		{"ledger fails", func(c *truth.Config) { c.Ledger = brokenLedger{"error"} }, "record"},
		{"ledger panics", func(c *truth.Config) { c.Ledger = brokenLedger{"Record"} }, "record"},
		{"ledger cannot say whether it tripped", func(c *truth.Config) { c.Ledger = brokenLedger{"Tripped"} }, "budget"},
		{"ledger cannot count", func(c *truth.Config) { c.Ledger = brokenLedger{"Totals"} }, "record"},
		{"no completer", func(c *truth.Config) { c.Completer = nil }, "config"},
		{"unknown estimator", func(c *truth.Config) { c.Estimator = "guess" }, "config"},
		{"critique fails", func(c *truth.Config) {
			steps(c)
			c.Completer = &truth.Script{Replies: []truth.ScriptReply{{Err: boom}}}
		}, "uncertainty"},
		{"splitter panics", func(c *truth.Config) { steps(c); c.Steps.Split = func(string) []string { panic("boom") } }, "uncertainty"},
		{"template panics", func(c *truth.Config) { steps(c); c.Steps.Template = func(truth.Critique) string { panic("boom") } }, "uncertainty"},
		{"a completer that is no pointer to anything", func(c *truth.Config) { steps(c); c.Completer = (*truth.Script)(nil) }, "uncertainty"},
		{"no log probabilities", func(c *truth.Config) { c.Uncertainty, c.Estimator = nil, truth.EstimateLogProbs }, "uncertainty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := stubbed(0.1, 0.9, 0.9)
			c.change(&cfg)
			r := truth.Gate(t.Context(), truth.Candidate{Answer: "one step", Tokens: someTokens}, cfg)
			if r.Kind != truth.Escalate || !slices.Equal(r.Reasons, []string{truth.CodeInternalError}) || r.Meta.Stage != c.stage || r.Err == nil {
				t.Errorf("Gate = %+v", r)
			}
			if v := r.Verdict(); v.Status != verdict.Escalate || !strings.Contains(v.Reasons[0].Message, c.stage) || strings.Contains(v.Reasons[0].Message, "boom") {
				t.Errorf("Verdict = %+v", v)
			}
		})
	}
}

func TestGateRefusesNegativeTokens(t *testing.T) {
	for _, tokens := range []truth.TokenCounts{truth.CountedTokens(-1, 5), truth.CountedTokens(5, -1)} {
		if r := truth.Gate(t.Context(), truth.Candidate{Tokens: tokens}, stubbed(0.1, 0.9, 0.9)); r.Kind != truth.Escalate || !errors.Is(r.Err, verdict.ErrInput) {
			t.Errorf("Gate = %+v", r)
		}
	}
}

// Tokens are charged even if the configuration turns out to be of no use.
func TestGateChargesBeforeItFails(t *testing.T) {
	ledger := tokenLedger(t, nil, nil)
	truth.Gate(t.Context(), truth.Candidate{Tokens: someTokens}, truth.Config{Ledger: ledger})
	if ledger.Totals().Tokens != 100 {
		t.Errorf("%+v", ledger.Totals())
	}
}

func TestGateEvents(t *testing.T) {
	cfg := stubbed(0.1, 0.2, math.NaN())
	cfg.Budget = &spend.Budget{SoftTokens: new(int64(50))}
	var log strings.Builder
	cfg.OnEvent = func(e truth.Event) error {
		data, err := json.Marshal(e)
		fmt.Fprintf(&log, "%s\n", data)
		return err
	}
	truth.Gate(t.Context(), truth.Candidate{ID: "c", Tokens: someTokens}, cfg)
	cfg.Adherence, cfg.Budget = found(0.9), nil
	truth.Gate(t.Context(), truth.Candidate{ID: "d", Tokens: truth.TokenCounts{}}, cfg)
	const want = `{"type":"record","candidate_id":"c","stage":"record","tokens":{"input":60,"output":40},"ledger":{"tokens":100,"calls":1}}
{"type":"soft_warn","candidate_id":"c","stage":"record","ledger":{"tokens":100,"calls":1}}
{"type":"probe","candidate_id":"c","stage":"uncertainty","value":0.1}
{"type":"probe","candidate_id":"c","stage":"sensitivity","value":0.2}
{"type":"probe","candidate_id":"c","stage":"adherence"}
{"type":"error","candidate_id":"c","stage":"adherence","ledger":{"tokens":100,"calls":1},"verdict":"escalate","reason":"internal_error"}
{"type":"record","candidate_id":"d","stage":"record","tokens":{"input":4,"output":4,"estimated":true}}
{"type":"probe","candidate_id":"d","stage":"uncertainty","value":0.1}
{"type":"probe","candidate_id":"d","stage":"sensitivity","value":0.2}
{"type":"probe","candidate_id":"d","stage":"adherence","value":0.9}
{"type":"verdict","candidate_id":"d","stage":"sensitivity","verdict":"refuse","reason":"low_sensitivity"}
`
	if log.String() != want {
		t.Errorf("events:\n%swant:\n%s", log.String(), want)
	}
}

// wordy answers everything with one text that costs ten tokens.
type wordy struct{ calls int }

func (w *wordy) Complete(context.Context, truth.CompletionRequest) (truth.Completion, error) {
	w.calls++
	return truth.Completion{Text: "same", Tokens: truth.CountedTokens(6, 4)}, nil
}

func TestGateDebitsProbes(t *testing.T) {
	for _, c := range []struct {
		name   string
		debits bool
		limit  int64
		kind   truth.Kind
		tokens int64
		calls  int
	}{
		// Three samples and twice two near worlds of two calls each.
		{"compat counts the candidate alone", false, 100, "refuse", 100, 11},
		{"debits", true, 1000, "refuse", 210, 11},
		{"debits up to the limit", true, 130, "budget_exceed", 140, 4},
		{"debits past the limit in the first probe", true, 105, "budget_exceed", 110, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := &wordy{}
			ledger := tokenLedger(t, &spend.Budget{HardTokens: &c.limit}, nil)
			cfg := truth.Config{Completer: model, Ledger: ledger, DebitProbes: c.debits}
			r := truth.Gate(t.Context(), truth.Candidate{Prompt: "p", Answer: "same", Tokens: someTokens}, cfg)
			if r.Kind != c.kind || ledger.Totals().Tokens != c.tokens || model.calls != c.calls {
				t.Errorf("%s %v, %+v, %d calls", r.Kind, r.Err, ledger.Totals(), model.calls)
			}
		})
	}
}

// A failed call has cost something all the same.
func TestGateDebitsFailedCalls(t *testing.T) {
	ledger := tokenLedger(t, nil, nil)
	cfg := truth.Config{Completer: truth.NewScript(), Ledger: ledger, DebitProbes: true}
	r := truth.Gate(t.Context(), truth.Candidate{Prompt: "abc", Tokens: someTokens}, cfg)
	if r.Kind != truth.Escalate || ledger.Totals() != (truth.TokenTotals{Tokens: 100 + 5 + 4, Calls: 2}) {
		t.Errorf("%+v, %+v", r, ledger.Totals())
	}
}

func TestGateEstimators(t *testing.T) {
	same := slices.Repeat([]string{"w", "other"}, 2)
	stay := slices.Repeat([]string{"w", "1. a 2. b"}, 2)
	for _, c := range []struct {
		name    string
		change  func(*truth.Config)
		replies []string
		probs   []float64
		value   float64
		kind    truth.Kind
	}{
		{"consistency", func(*truth.Config) {}, []string{"1 a 2 b", "1 a 2 b", "1 a 2 b"}, nil, 0, "pass"},
		{"steps, at the threshold", func(c *truth.Config) {
			c.Estimator, c.Thresholds = truth.EstimateSteps, &truth.Thresholds{TauU: 0.3, TauS: 0.5, TauA: 0.5}
		}, []string{"SCORE: 0.7"}, nil, 0.3, "pass"},
		{"one bad step", func(c *truth.Config) { c.Estimator = truth.EstimateSteps }, []string{"SCORE: 0.2"}, nil, 0.8, "refuse"},
		{"log probabilities", func(c *truth.Config) { c.Estimator = truth.EstimateLogProbs }, nil, []float64{math.Log(0.25)}, 0.75, "refuse"},
		{"no log probabilities, lenient", func(c *truth.Config) { c.Estimator, c.LenientLogProbs = truth.EstimateLogProbs, true }, nil, nil, 1, "refuse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := truth.Config{Completer: truth.NewScript(slices.Concat(c.replies, same, stay)...)}
			c.change(&cfg)
			r := truth.Gate(t.Context(), truth.Candidate{Prompt: "p", Answer: "1. a 2. b", LogProbs: c.probs}, cfg)
			if r.Kind != c.kind || r.Meta.Uncertainty == nil || *r.Meta.Uncertainty != c.value || *r.Meta.Sensitivity != 1 || *r.Meta.Adherence != 1 {
				t.Errorf("Gate = %+v, %v", r, r.Err)
			}
			if verified := cfg.Estimator == truth.EstimateSteps; verified != (r.Meta.StepsTotal == 1 && r.Meta.StepsVerified == 1) {
				t.Errorf("steps %d of %d", r.Meta.StepsVerified, r.Meta.StepsTotal)
			}
		})
	}
}

func TestGateProbeModel(t *testing.T) {
	main, other := truth.NewScript(), truth.NewScript(slices.Repeat([]string{"w"}, 11)...)
	cfg := truth.Config{Completer: main, ProbeCompleter: other}
	truth.Gate(t.Context(), truth.Candidate{Answer: "w"}, cfg)
	if len(main.Requests()) != 0 || len(other.Requests()) != 11 {
		t.Errorf("%d and %d calls", len(main.Requests()), len(other.Requests()))
	}
}

func TestGateStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		slow := truth.CompleterFunc(func(ctx context.Context, _ truth.CompletionRequest) (truth.Completion, error) {
			<-ctx.Done()
			return truth.Completion{}, ctx.Err()
		})
		start := time.Now()
		r := truth.Gate(ctx, truth.Candidate{}, truth.Config{Completer: slow})
		if r.Kind != truth.Escalate || r.Meta.Stage != "uncertainty" || !errors.Is(r.Err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(start), r, r.Err)
		}
		// Probes that do not look at their context cannot make it pass either.
		if r := truth.Gate(ctx, truth.Candidate{}, stubbed(0.1, 0.9, 0.9)); r.Kind != truth.Escalate || len(r.Meta.ProbesRun) != 0 {
			t.Errorf("a done context: %+v", r)
		}
	})
}

// TestGatesShareALedger lets many gates debit one ledger. However they interleave,
// nothing is lost, and none passes that began over the limit.
func TestGatesShareALedger(t *testing.T) {
	ledger := tokenLedger(t, &spend.Budget{HardTokens: new(int64(1000)), SoftTokens: new(int64(500))}, nil)
	cfg := stubbed(0.1, 0.9, 0.9)
	cfg.Ledger = ledger
	var mu sync.Mutex
	var passed, softs int
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			r := truth.Gate(t.Context(), truth.Candidate{Tokens: someTokens}, cfg)
			mu.Lock()
			defer mu.Unlock()
			if r.Kind == truth.Pass {
				passed++
			}
			if r.Meta.SoftWarned {
				softs++
			}
		})
	}
	wg.Wait()
	if passed > 10 || softs != 1 || ledger.Totals() != (truth.TokenTotals{Tokens: 2000, Calls: 20}) {
		t.Errorf("%d passed, %d soft warnings, %+v", passed, softs, ledger.Totals())
	}
}

func TestReasonNamesNumbers(t *testing.T) {
	cfg := stubbed(0.1, 0.25, 0.9)
	cfg.Thresholds = &truth.Thresholds{TauU: 0.4, TauS: 0.3, TauA: 0.5}
	r := truth.Gate(t.Context(), truth.Candidate{}, cfg).Verdict().Reasons[0]
	if r.Guard != "truth" || r.Limit != "0.3" || r.Seen != "0.25" {
		t.Errorf("the reason is %+v", r)
	}
}

func TestFailure(t *testing.T) {
	boom := errors.New("boom")
	r := truth.Failure(truth.StageConfig, boom)
	if r.Kind != truth.Escalate || !slices.Equal(r.Reasons, []string{truth.CodeInternalError}) || r.Meta.Stage != "config" || r.Err != boom {
		t.Errorf("Failure = %+v", r)
	}
}

func TestSlotsDoNothing(t *testing.T) {
	var e truth.EntitlementSlot = truth.NoEntitlement{}
	var m truth.MetaSlot = truth.NoMeta{}
	c, r := truth.Candidate{}, truth.Result{}
	if err := errors.Join(e.Acquire(t.Context(), "a", c), e.Transfer(t.Context(), "a", "b", c), e.Rectify(t.Context(), "b", c, r), m.Reflect(t.Context(), c, r)); err != nil {
		t.Error(err)
	}
}
