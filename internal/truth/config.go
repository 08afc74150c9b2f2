package truth

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/spend"
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
	for i, tau := range t.list() {
		if !isShare(tau) {
			errs = append(errs, badOption("thresholds."+tests[i].tau, fmt.Sprint(tau), "it must be a number from 0 to 1"))
		}
	}
	return errors.Join(errs...)
}

// list returns the thresholds in the order of the tests.
func (t Thresholds) list() [len(tests)]float64 { return [...]float64{t.TauU, t.TauS, t.TauA} }

func badOption(key, value, problem string) error {
	return fmt.Errorf("option %q is %s: %s", key, value, problem)
}

// A Config says how a truth gate judges. Completer is required; the zero value
// of every other member stands for a default. The gate changes nothing of it and
// keeps using what it points to.
type Config struct {
	Completer      Completer
	ProbeCompleter Completer // an independent model for all probes; nil: Completer

	Thresholds      *Thresholds // nil: DefaultThresholds
	Estimator       Estimator   // "": EstimateConsistency
	LenientLogProbs bool        // an answer without log probabilities is refused (score 1), not escalated
	Steps           StepOptions // of EstimateSteps

	// Budget is that of a fresh ledger for each call, of which OnSoft is told once if
	// it passes its soft limit. Ledger is shared. At most one of them may be given;
	// with neither, nothing is counted.
	Budget *spend.Budget
	OnSoft func(TokenTotals) error // as for NewTokenLedger; may be nil
	Ledger Ledger

	// OnEvent, if not nil, is called in order with everything that happens. An error
	// makes the gate escalate.
	OnEvent func(Event) error

	// Uncertainty, Sensitivity and Adherence take the place of the built-in probes.
	Uncertainty, Sensitivity, Adherence Probe

	Distance  TextDistance  // of the built-in probes, see ProbeKit
	Delimiter func() string // see ProbeKit

	ShortCircuit bool // run no probe after one whose score decides
	DebitProbes  bool // count the built-in probes' calls in the ledger
}

// Check returns an error for each member that cannot be used. Whether the Budget is
// sound is for [NewTokenLedger] to say.
func (c Config) Check() error {
	errs := []error{c.thresholds().Check(), c.Steps.Check()}
	if c.Completer == nil {
		errs = append(errs, badOption("completion", "null", "it is required"))
	}
	if c.Budget != nil && c.Ledger != nil {
		errs = append(errs, badOption("budget", "given", "a ledger is given too, and only one of them can count"))
	}
	if !slices.Contains(estimators, c.estimator()) {
		errs = append(errs, badOption("estimator", fmt.Sprintf("%q", c.Estimator), fmt.Sprintf("it must be one of %q", estimators)))
	}
	if c.estimator() == EstimateLogProbs && c.LenientLogProbs && c.thresholds().TauU >= 1 {
		errs = append(errs, badOption("thresholds.tau_u", "1", "with strict false it must be less than 1: answers without log probabilities score 1 and would pass"))
	}
	return errors.Join(errs...)
}

func (c Config) thresholds() Thresholds {
	if c.Thresholds == nil {
		return DefaultThresholds()
	}
	return *c.Thresholds
}

func (c Config) estimator() Estimator { return cmp.Or(c.Estimator, EstimateConsistency) }

// probes returns the three probes in their order. by takes the place of the
// completer.
func (c Config) probes(by Completer) [len(tests)]Probe {
	kit := ProbeKit{by, c.Distance, c.Delimiter}
	probes := [...]Probe{c.Uncertainty, c.Sensitivity, c.Adherence}
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
func (c Config) prober() Completer { return cmp.Or(c.ProbeCompleter, c.Completer) }
