package guard_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/spend"
)

func TestParseTruth(t *testing.T) {
	section, problems := guard.ParseTruth([]byte(`{"model":"m","probe_model":"p","thresholds":{"tau_u":0.4,"tau_a":0},"estimator":"process_reward_verifier",
		"strict":false,"prm_options":{"max_steps":3},"budget":{"hard_limit_calls":2,"debit_probes":true},"when":["ship"],"short_circuit":true}`), guard.TruthDefaults())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := section.Config()
	if *c.Thresholds != (guard.Thresholds{TauU: 0.4, TauS: 0.5, TauA: 0}) {
		t.Errorf("thresholds %+v", *c.Thresholds)
	}
	if section.Model != "m" || section.Prober() != "p" || c.Estimator != guard.EstimateSteps || !c.LenientLogProbs || c.Steps.MaxSteps != 3 ||
		*c.Budget.HardCalls != 2 || !c.DebitProbes || !c.ShortCircuit || c.Steps.MergeTail {
		t.Errorf("%+v", c)
	}
	if !section.Needs("ship") || section.Needs("hold") {
		t.Error("when is not kept")
	}
}

func TestParseTruthDefaults(t *testing.T) {
	for strict, defaults := range map[bool]guard.Truth{false: guard.TruthDefaults(), true: guard.StrictTruth()} {
		section, problems := guard.ParseTruth([]byte(`{"when":"all"}`), defaults)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := section.Config()
		if *c.Thresholds != guard.DefaultThresholds() || c.Budget != nil || c.LenientLogProbs || !section.Needs("anything") {
			t.Errorf("strict %v: %+v", strict, c)
		}
		if c.ShortCircuit != strict || c.DebitProbes != strict || c.Steps.MergeTail != strict || c.Steps.StrictScore != strict {
			t.Errorf("strict %v: %+v", strict, c)
		}
	}
	section, problems := guard.ParseTruth([]byte(`{"short_circuit":false,"budget":{"debit_probes":false}}`), guard.StrictTruth())
	if len(problems) > 0 || section.Config().ShortCircuit || section.Config().DebitProbes {
		t.Errorf("%+v, %v", section, problems)
	}
}

func TestParseTruthRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`null`:                           `truth must be an object`,
		`{"thresholds":{"tau_u":1.5}}`:   `/thresholds/tau_u out-of-range tau_u is 1.5`,
		`{"thresholds":{"tau_s":"0.5"}}`: `/thresholds/tau_s out-of-range tau_s is "0.5"`,
		`{"thresholds":{"tau_v":0.5}}`:   `did you mean "tau_u"?`,
		`{"thresholds":[]}`:              `thresholds must be an object`,
		`{"estimator":"entropy"}`:        `estimator is "entropy"`,
		`{"estimator":"token_logprob_entropy","strict":false,"thresholds":{"tau_u":1}}`: `/thresholds contradiction tau_u is 1 and strict is false`,
		`{"strict":"yes"}`:           `true or false`,
		`{"budget":{"mode":"none"}}`: `/budget/mode bad-value mode is "none"`,
		`{"budget":{"soft_limit_tokens":2,"hard_limit_tokens":1}}`: `more than hard_limit_tokens`,
		`{"prm_options":{"max_steps":0}}`:                          `max_steps is 0`,
		`{"when":[]}`:                                              `when is an empty list`,
		`{"when":"none"}`:                                          `when is "none"`,
		`{"when":[""]}`:                                            `/when/0 bad-value 0 is ""`,
		`{"estimater":"consistency"}`:                              `did you mean "estimator"?`,
		`{"model":""}`:                                             `model is ""`,
	} {
		if section, problems := guard.ParseTruth([]byte(config), guard.TruthDefaults()); section != nil || !strings.Contains(listed(problems), want) {
			t.Errorf("%s: %v, want %s", config, listed(problems), want)
		}
	}
}

// TestTruthConfigCheck: what cannot be used is named, and a gate that cannot be used escalates.
func TestTruthConfigCheck(t *testing.T) {
	ledger := tokenLedger(t, nil, nil)
	good := guard.TruthConfig{Completer: guard.NewScript()}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	thresholds := func(u, s, a float64) *guard.Thresholds { return &guard.Thresholds{TauU: u, TauS: s, TauA: a} }
	for name, c := range map[string]struct {
		change func(*guard.TruthConfig)
		want   string // the key that the error names; "": none
	}{
		"no completer":      {func(c *guard.TruthConfig) { c.Completer = nil }, `"completion"`},
		"two books":         {func(c *guard.TruthConfig) { c.Budget, c.Ledger = &spend.Budget{}, ledger }, `"budget"`},
		"bad budget":        {func(c *guard.TruthConfig) { c.Budget = &spend.Budget{Mode: "x"} }, `unknown mode "x" of the budget`},
		"not a threshold":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(0.5, math.NaN(), 0.5) }, `"thresholds.tau_s"`},
		"threshold above":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(0.5, 0.5, 1.1) }, `"thresholds.tau_a"`},
		"threshold below":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(-0.1, 0.5, 1) }, `"thresholds.tau_u"`},
		"unknown estimator": {func(c *guard.TruthConfig) { c.Estimator = "x" }, `"estimator"`},
		"bad steps":         {func(c *guard.TruthConfig) { c.Steps.Aggregator = "x" }, `"prm_options.aggregator"`},
		"lenient falls open": {func(c *guard.TruthConfig) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = guard.EstimateLogProbs, true, thresholds(1, 0, 0)
		}, `"thresholds.tau_u"`},
		"lenient below 1": {func(c *guard.TruthConfig) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = guard.EstimateLogProbs, true, thresholds(0.99, 0, 0)
		}, ""},
		"1 is fine if not lenient": {func(c *guard.TruthConfig) { c.Estimator, c.Thresholds = guard.EstimateLogProbs, thresholds(1, 0, 0) }, ""},
		"1 is fine for others":     {func(c *guard.TruthConfig) { c.LenientLogProbs, c.Thresholds = true, thresholds(1, 0, 0) }, ""},
		"a budget":                 {func(c *guard.TruthConfig) { c.Budget = &spend.Budget{} }, ""},
		"a ledger":                 {func(c *guard.TruthConfig) { c.Ledger = ledger }, ""},
	} {
		cfg := good
		c.change(&cfg)
		err := errors.Join(cfg.Check(), cfg.Budget.Check())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Check = %v, want %s", name, err, c.want)
		}
		if err == nil {
			continue
		}
		r := guard.Gate(t.Context(), guard.Candidate{}, cfg)
		if r.Kind != guard.TruthEscalate || r.Reasons[0] != guard.CodeInternalError || r.Err == nil {
			t.Errorf("%s: Gate = %+v", name, r)
		}
	}
}
