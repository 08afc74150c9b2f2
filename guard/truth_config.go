package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Estimator names a way to measure uncertainty.
type Estimator string

// The estimators: agreement of samples, a critique of each step, the model's own
// probabilities.
const (
	EstimateConsistency Estimator = "consistency"
	EstimateSteps       Estimator = "process_reward_verifier"
	EstimateLogProbs    Estimator = "token_logprob_entropy"
)

var estimators = []Estimator{EstimateConsistency, EstimateSteps, EstimateLogProbs}

// Thresholds are what scores are held against, from 0 to 1. A score that equals its
// threshold passes. The zero Thresholds refuse every uncertainty and accept all
// else; [DefaultThresholds] are those meant where none are given.
type Thresholds struct {
	TauU float64 // the most uncertainty that passes
	TauS float64 // the least sensitivity that passes
	TauA float64 // the least adherence that passes
}

// DefaultThresholds returns 0.6, 0.5, 0.5.
func DefaultThresholds() Thresholds { return Thresholds{0.6, 0.5, 0.5} }

// Check returns an error for each threshold that is no number from 0 to 1.
func (t Thresholds) Check() error {
	var errs []error
	for _, tau := range []struct {
		key   string
		value float64
	}{{"tau_u", t.TauU}, {"tau_s", t.TauS}, {"tau_a", t.TauA}} {
		if !isShare(tau.value) {
			errs = append(errs, truthError("thresholds."+tau.key, fmt.Sprint(tau.value), "it must be a number from 0 to 1"))
		}
	}
	return errors.Join(errs...)
}

// of returns the threshold of a stage, if it has one.
func (t Thresholds) of(stage string) (tau float64, found bool) {
	switch stage {
	case StageUncertainty:
		return t.TauU, true
	case StageSensitivity:
		return t.TauS, true
	case StageAdherence:
		return t.TauA, true
	}
	return 0, false
}

func truthError(key, value, problem string) error {
	return &OptionError{Key: key, Value: value, Problem: problem}
}

// A TruthConfig says how a truth gate judges. Completer is required; the zero value
// of every other member stands for a default. The gate changes nothing of it and
// keeps using what it points to.
type TruthConfig struct {
	Completer      Completer
	ProbeCompleter Completer // an independent model for all probes; nil: Completer

	Thresholds      *Thresholds // nil: DefaultThresholds
	Estimator       Estimator   // "": EstimateConsistency
	LenientLogProbs bool        // an answer without log probabilities is refused (score 1), not escalated
	Steps           StepOptions // of EstimateSteps

	// Budget is that of a fresh ledger for each call. Ledger is shared. At most one
	// of them may be given; with neither, nothing is counted.
	Budget *TokenBudget
	Ledger TruthLedger

	// OnEvent, if not nil, is called in order with everything that happens. An error
	// makes the gate escalate.
	OnEvent func(TruthEvent) error

	// Uncertainty, Sensitivity and Adherence take the place of the built-in probes.
	Uncertainty, Sensitivity, Adherence Probe

	Distance  TextDistance  // of the built-in probes, see ProbeKit
	Delimiter func() string // see ProbeKit

	ShortCircuit bool // run no probe after one whose score decides
	DebitProbes  bool // count the built-in probes' calls in the ledger

	// Model and ProbeModel name what a program is to make the completers of, and
	// When the transitions that need the gate; nil: all. The gate reads none of
	// them.
	Model, ProbeModel string
	When              []string
}

// InProfile returns c with the members that only the profile strict sets:
// ShortCircuit, DebitProbes, Steps.MergeTail and Steps.StrictScore.
func (c TruthConfig) InProfile(p Profile) TruthConfig {
	strict := p == Strict
	c.ShortCircuit, c.DebitProbes = strict, strict
	c.Steps.MergeTail, c.Steps.StrictScore = strict, strict
	return c
}

// Needs reports whether a transition of this name needs the gate.
func (c TruthConfig) Needs(transition string) bool {
	return c.When == nil || slices.Contains(c.When, transition)
}

// Check returns an error for each member that cannot be used. Whether the Budget is
// sound is for [TokenBudget.Check] to say.
func (c TruthConfig) Check() error {
	errs := []error{c.thresholds().Check(), c.Steps.Check()}
	if c.Completer == nil {
		errs = append(errs, truthError("completion", "null", "it is required"))
	}
	if c.Budget != nil && c.Ledger != nil {
		errs = append(errs, truthError("budget", "given", "a ledger is given too, and only one of them can count"))
	}
	if !slices.Contains(estimators, c.estimator()) {
		errs = append(errs, truthError("estimator", fmt.Sprintf("%q", c.Estimator), fmt.Sprintf("it must be one of %q", estimators)))
	}
	if c.estimator() == EstimateLogProbs && c.LenientLogProbs && c.thresholds().TauU >= 1 {
		errs = append(errs, truthError("thresholds.tau_u", "1", "with strict false it must be less than 1: answers without log probabilities score 1 and would pass"))
	}
	return errors.Join(errs...)
}

func (c TruthConfig) thresholds() Thresholds {
	if c.Thresholds == nil {
		return DefaultThresholds()
	}
	return *c.Thresholds
}

func (c TruthConfig) estimator() Estimator {
	if c.Estimator == "" {
		return EstimateConsistency
	}
	return c.Estimator
}

// probes returns the three probes in their order. by takes the place of the
// completer.
func (c TruthConfig) probes(by Completer) [3]Probe {
	kit := ProbeKit{by, c.Distance, c.Delimiter}
	probes := [3]Probe{c.Uncertainty, c.Sensitivity, c.Adherence}
	if probes[0] == nil {
		switch c.estimator() {
		case EstimateSteps:
			probes[0] = StepVerifier{kit, c.Steps}
		case EstimateLogProbs:
			probes[0] = LogProbEntropy{c.prober(), c.LenientLogProbs}
		default:
			probes[0] = kit.Consistency()
		}
	}
	if probes[1] == nil {
		probes[1] = kit.Sensitivity()
	}
	if probes[2] == nil {
		probes[2] = kit.Adherence()
	}
	return probes
}

// prober returns the completer that probes use.
func (c TruthConfig) prober() Completer {
	if c.ProbeCompleter != nil {
		return c.ProbeCompleter
	}
	return c.Completer
}

// ParseTruth reads a truth section, a JSON object, with the defaults of a profile.
// What only Go can say (Completer, Ledger, OnEvent and so on) is left for the
// caller to fill in. The error joins one [OptionError] for each member that is
// unknown, given twice, of the wrong type or out of range.
func ParseTruth(data []byte, p Profile) (TruthConfig, error) {
	c := TruthConfig{}.InProfile(p)
	t := DefaultThresholds()
	c.Thresholds = &t
	strict := true
	var budget TokenBudget
	r := &optionReader{}
	budgetOption := r.inner("budget", append(budget.options(), boolOption("debit_probes", &c.DebitProbes)))
	r.object(data, []option{
		textOption("model", &c.Model), textOption("probe_model", &c.ProbeModel),
		r.inner("thresholds", []option{shareOption("tau_u", &t.TauU), shareOption("tau_s", &t.TauS), shareOption("tau_a", &t.TauA)}),
		choiceOption("estimator", &c.Estimator, estimators...),
		boolOption("strict", &strict),
		r.inner("prm_options", c.Steps.options()),
		{"budget", func(value []byte) string { c.Budget = &budget; return budgetOption.take(value) }},
		{"when", c.takeWhen},
		boolOption("short_circuit", &c.ShortCircuit),
	})
	c.LenientLogProbs = !strict
	if err := r.err(); err != nil {
		return TruthConfig{}, err
	}
	if err := budget.Check(); err != nil {
		return TruthConfig{}, err
	}
	return c, nil
}

// ParseStepOptions reads prm_options, a JSON object, with the defaults of a
// profile. Its errors are those of [ParseTruth].
func ParseStepOptions(data []byte, p Profile) (StepOptions, error) {
	o := TruthConfig{}.InProfile(p).Steps
	r := &optionReader{path: "prm_options"}
	r.object(data, o.options())
	return o, r.err()
}

func (o *StepOptions) options() []option {
	return []option{
		choiceOption("aggregator", &o.Aggregator, aggregators...),
		wholeOption("max_steps", 1, mostCount, func(n int64) { o.MaxSteps = int(n) }),
		wholeOption("max_step_chars", 1, mostCount/answerShare, func(n int64) { o.MaxStepChars = int(n) }),
		shareOption("parse_failure_score", &o.ParseFailureScore),
		{"step_splitter", o.takeSplitter},
		{"critique_template", o.takeTemplate},
		boolOption("merge_tail", &o.MergeTail), boolOption("strict_score", &o.StrictScore),
	}
}

// takeSplitter reads a regular expression; steps are what stands between its
// matches.
func (o *StepOptions) takeSplitter(value []byte) string {
	var pattern string
	if problem := textOption("", &pattern).take(value); problem != "" {
		return problem
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "it must be a regular expression: " + err.Error()
	}
	o.splitAt(re)
	return ""
}

func (o *StepOptions) splitAt(re *regexp.Regexp) {
	o.Split = func(answer string) []string { return re.Split(answer, -1) }
}

// takeTemplate reads a text with {{question}}, {{answer}}, {{step}}, {{number}} and
// {{total}}. All of them are replaced in one pass, so no text can bring in another.
func (o *StepOptions) takeTemplate(value []byte) string {
	var text string
	if problem := textOption("", &text).take(value); problem != "" {
		return problem
	}
	if !strings.Contains(text, "{{step}}") {
		return "it must contain {{step}}"
	}
	o.fillIn(text)
	return ""
}

func (o *StepOptions) fillIn(template string) {
	o.Template = func(q Critique) string {
		return strings.NewReplacer("{{question}}", q.Question, "{{answer}}", q.Answer, "{{step}}", q.Step,
			"{{number}}", fmt.Sprint(q.Number), "{{total}}", fmt.Sprint(q.Total)).Replace(template)
	}
}

func (c *TruthConfig) takeWhen(value []byte) string {
	if string(value) == `"all"` {
		c.When = nil
		return ""
	}
	var names []string
	if json.Unmarshal(value, &names) != nil || len(names) == 0 || slices.Contains(names, "") {
		return `it must be "all" or a list of at least one transition`
	}
	c.When = names
	return ""
}
