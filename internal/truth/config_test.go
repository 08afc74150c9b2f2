package truth_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
)

func TestParse(t *testing.T) {
	section, problems := truth.Parse([]byte(`{"model":"m","probe_model":"p","thresholds":{"tau_u":0.4,"tau_a":0},"estimator":"process_reward_verifier",
		"strict":false,"prm_options":{"max_steps":3},"budget":{"hard_limit_calls":2,"debit_probes":true},"when":["ship"],"short_circuit":true}`), truth.Defaults())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := section.Config()
	if *c.Thresholds != (truth.Thresholds{TauU: 0.4, TauS: 0.5, TauA: 0}) {
		t.Errorf("thresholds %+v", *c.Thresholds)
	}
	if section.Model != "m" || section.Prober() != "p" || c.Estimator != truth.EstimateSteps || !c.LenientLogProbs || c.Steps.MaxSteps != 3 ||
		*c.Budget.HardCalls != 2 || !c.DebitProbes || !c.ShortCircuit || c.Steps.MergeTail {
		t.Errorf("%+v", c)
	}
	if !section.Needs("ship") || section.Needs("hold") {
		t.Error("when is not kept")
	}
}

func TestParseDefaults(t *testing.T) {
	for strict, defaults := range map[bool]truth.Section{false: truth.Defaults(), true: truth.StrictDefaults()} {
		section, problems := truth.Parse([]byte(`{"when":"all"}`), defaults)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := section.Config()
		if *c.Thresholds != truth.DefaultThresholds() || c.Budget != nil || c.LenientLogProbs || !section.Needs("anything") {
			t.Errorf("strict %v: %+v", strict, c)
		}
		if c.ShortCircuit != strict || c.DebitProbes != strict || c.Steps.MergeTail != strict || c.Steps.StrictScore != strict {
			t.Errorf("strict %v: %+v", strict, c)
		}
	}
	section, problems := truth.Parse([]byte(`{"short_circuit":false,"budget":{"debit_probes":false}}`), truth.StrictDefaults())
	if len(problems) > 0 || section.Config().ShortCircuit || section.Config().DebitProbes {
		t.Errorf("%+v, %v", section, problems)
	}
}

func TestParseRefuses(t *testing.T) {
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
		if section, problems := truth.Parse([]byte(config), truth.Defaults()); section != nil || !strings.Contains(listed(problems), want) {
			t.Errorf("%s: %v, want %s", config, listed(problems), want)
		}
	}
}

// TestConfigCheck: what cannot be used is named, and a gate that cannot be used escalates.
func TestConfigCheck(t *testing.T) {
	ledger := tokenLedger(t, nil, nil)
	good := truth.Config{Completer: truth.NewScript()}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	thresholds := func(u, s, a float64) *truth.Thresholds { return &truth.Thresholds{TauU: u, TauS: s, TauA: a} }
	for name, c := range map[string]struct {
		change func(*truth.Config)
		want   string // the key that the error names; "": none
	}{
		"no completer":      {func(c *truth.Config) { c.Completer = nil }, `"completion"`},
		"two books":         {func(c *truth.Config) { c.Budget, c.Ledger = &spend.Budget{}, ledger }, `"budget"`},
		"bad budget":        {func(c *truth.Config) { c.Budget = &spend.Budget{Mode: "x"} }, `unknown mode "x" of the budget`},
		"not a threshold":   {func(c *truth.Config) { c.Thresholds = thresholds(0.5, math.NaN(), 0.5) }, `"thresholds.tau_s"`},
		"threshold above":   {func(c *truth.Config) { c.Thresholds = thresholds(0.5, 0.5, 1.1) }, `"thresholds.tau_a"`},
		"threshold below":   {func(c *truth.Config) { c.Thresholds = thresholds(-0.1, 0.5, 1) }, `"thresholds.tau_u"`},
		"unknown estimator": {func(c *truth.Config) { c.Estimator = "x" }, `"estimator"`},
		"bad steps":         {func(c *truth.Config) { c.Steps.Aggregator = "x" }, `"prm_options.aggregator"`},
		"lenient falls open": {func(c *truth.Config) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = truth.EstimateLogProbs, true, thresholds(1, 0, 0)
		}, `"thresholds.tau_u"`},
		"lenient below 1": {func(c *truth.Config) {
			c.Estimator, c.LenientLogProbs, c.Thresholds = truth.EstimateLogProbs, true, thresholds(0.99, 0, 0)
		}, ""},
		"1 is fine if not lenient": {func(c *truth.Config) { c.Estimator, c.Thresholds = truth.EstimateLogProbs, thresholds(1, 0, 0) }, ""},
		"1 is fine for others":     {func(c *truth.Config) { c.LenientLogProbs, c.Thresholds = true, thresholds(1, 0, 0) }, ""},
		"a budget":                 {func(c *truth.Config) { c.Budget = &spend.Budget{} }, ""},
		"a ledger":                 {func(c *truth.Config) { c.Ledger = ledger }, ""},
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
		r := truth.Gate(t.Context(), truth.Candidate{}, cfg)
		if r.Kind != truth.Escalate || r.Reasons[0] != truth.CodeInternalError || r.Err == nil {
			t.Errorf("%s: Gate = %+v", name, r)
		}
	}
}

// listed returns problems as text: path, code, message, hint.
func listed(problems []machine.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.Join([]string{p.Path, p.Code, p.Message, p.Hint}, " "))
	}
	return strings.Join(lines, "\n")
}
