package guard_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
)

func TestParseTruth(t *testing.T) {
	c, err := guard.ParseTruth([]byte(`{"model":"m","probe_model":"p","thresholds":{"tau_u":0.4,"tau_a":0},"estimator":"process_reward_verifier",
		"strict":false,"prm_options":{"max_steps":3},"budget":{"hard_limit_calls":2,"debit_probes":true},"when":["ship"],"short_circuit":true}`), guard.Compat)
	if err != nil {
		t.Fatal(err)
	}
	if *c.Thresholds != (guard.Thresholds{TauU: 0.4, TauS: 0.5, TauA: 0}) {
		t.Errorf("thresholds %+v", *c.Thresholds)
	}
	if c.Model != "m" || c.ProbeModel != "p" || c.Estimator != guard.EstimateSteps || !c.LenientLogProbs || c.Steps.MaxSteps != 3 ||
		*c.Budget.HardLimitCalls != 2 || !c.DebitProbes || !c.ShortCircuit || c.Steps.MergeTail {
		t.Errorf("%+v", c)
	}
	if !c.Needs("ship") || c.Needs("hold") {
		t.Error("when is not kept")
	}
}

func TestParseTruthDefaults(t *testing.T) {
	for profile, strict := range map[guard.Profile]bool{guard.Compat: false, guard.Strict: true} {
		c, err := guard.ParseTruth([]byte(`{"when":"all"}`), profile)
		if err != nil {
			t.Fatal(err)
		}
		if *c.Thresholds != guard.DefaultThresholds() || c.Budget != nil || c.LenientLogProbs || !c.Needs("anything") {
			t.Errorf("%s: %+v", profile, c)
		}
		if c.ShortCircuit != strict || c.DebitProbes != strict || c.Steps.MergeTail != strict || c.Steps.StrictScore != strict {
			t.Errorf("%s: %+v", profile, c)
		}
	}
	c, err := guard.ParseTruth([]byte(`{"short_circuit":false,"budget":{"debit_probes":false}}`), guard.Strict)
	if err != nil || c.ShortCircuit || c.DebitProbes {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestParseTruthRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`null`:                           `must be a JSON object`,
		`{"thresholds":{"tau_u":1.5}}`:   `"thresholds.tau_u" is 1.5`,
		`{"thresholds":{"tau_s":"0.5"}}`: `"thresholds.tau_s" is "0.5"`,
		`{"thresholds":{"tau_v":0.5}}`:   `did you mean "tau_u"?`,
		`{"thresholds":[]}`:              `"thresholds" is []`,
		`{"estimator":"entropy"}`:        `"estimator" is "entropy"`,
		`{"strict":"yes"}`:               `true or false`,
		`{"budget":{"mode":"none"}}`:     `"budget.mode" is "none"`,
		`{"budget":{"soft_limit_tokens":2,"hard_limit_tokens":1}}`: `at most hard_limit_tokens`,
		`{"prm_options":{"max_steps":0}}`:                          `"prm_options.max_steps" is 0`,
		`{"when":[]}`:                                              `"when" is []`,
		`{"when":"none"}`:                                          `"when" is "none"`,
		`{"when":[""]}`:                                            `"when" is [""]`,
		`{"estimater":"consistency"}`:                              `did you mean "estimator"?`,
		`{"model":""}`:                                             `"model" is ""`,
	} {
		if _, err := guard.ParseTruth([]byte(config), guard.Compat); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
}

func TestNewGate(t *testing.T) {
	ledger := tokenLedger(t, guard.TokenBudget{})
	good := guard.TruthConfig{Completer: guard.NewScript()}
	if _, err := guard.NewGate(good); err != nil {
		t.Fatal(err)
	}
	thresholds := func(u, s, a float64) *guard.Thresholds { return &guard.Thresholds{TauU: u, TauS: s, TauA: a} }
	for name, c := range map[string]struct {
		change func(*guard.TruthConfig)
		want   string // the key that the error names; "": none
	}{
		"no completer":      {func(c *guard.TruthConfig) { c.Completer = nil }, "completion"},
		"two books":         {func(c *guard.TruthConfig) { c.Budget, c.Ledger = &guard.TokenBudget{}, ledger }, "budget"},
		"bad budget":        {func(c *guard.TruthConfig) { c.Budget = &guard.TokenBudget{Mode: "x"} }, "budget.mode"},
		"not a threshold":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(0.5, math.NaN(), 0.5) }, "thresholds.tau_s"},
		"threshold above":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(0.5, 0.5, 1.1) }, "thresholds.tau_a"},
		"threshold below":   {func(c *guard.TruthConfig) { c.Thresholds = thresholds(-0.1, 0.5, 1) }, "thresholds.tau_u"},
		"unknown estimator": {func(c *guard.TruthConfig) { c.Estimator = "x" }, "estimator"},
		"bad steps":         {func(c *guard.TruthConfig) { c.Steps.Aggregator = "x" }, "prm_options.aggregator"},
		"lenient falls open": {func(c *guard.TruthConfig) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = guard.EstimateLogProbs, true, thresholds(1, 0, 0)
		}, "thresholds.tau_u"},
		"lenient below 1": {func(c *guard.TruthConfig) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = guard.EstimateLogProbs, true, thresholds(0.99, 0, 0)
		}, ""},
		"1 is fine if not lenient": {func(c *guard.TruthConfig) { c.Estimator, c.Thresholds = guard.EstimateLogProbs, thresholds(1, 0, 0) }, ""},
		"1 is fine for others":     {func(c *guard.TruthConfig) { c.LenientLogProbs, c.Thresholds = true, thresholds(1, 0, 0) }, ""},
		"a budget":                 {func(c *guard.TruthConfig) { c.Budget = &guard.TokenBudget{} }, ""},
		"a ledger":                 {func(c *guard.TruthConfig) { c.Ledger = ledger }, ""},
	} {
		cfg := good
		c.change(&cfg)
		gate, err := guard.NewGate(cfg)
		if (err == nil) != (c.want == "") || (gate == nil) != (err != nil) {
			t.Errorf("%s: NewGate = %v, %v", name, gate, err)
			continue
		}
		if option, isOption := errors.AsType[*guard.OptionError](err); err != nil && (!isOption || option.Key != c.want) {
			t.Errorf("%s: the error is %v", name, err)
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
