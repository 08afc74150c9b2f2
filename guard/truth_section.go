package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/dialai/dialai/guard/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// A Truth is the section truth of a machine: a gate that winners must pass
// before they are executed. It is plain data; who asks the models is added to
// what [Truth.Config] returns. It never changes.
type Truth struct {
	Model      string // that gave or could give the answers; never ""
	ProbeModel string // an independent one for all probes; "" for Model

	Thresholds   Thresholds
	Estimator    Estimator // never ""
	Strict       bool      // without log probabilities a human must look
	ShortCircuit bool      // no probe after one whose score decides
	Steps        StepText
	When         []string // the transitions that need the gate; nil: all
}

// A StepText is prm_options as a file gives them: see [StepOptions].
type StepText struct {
	Aggregator             Aggregator
	MaxSteps, MaxStepChars int64
	ParseFailureScore      float64
	Splitter               string // a regular expression between steps; "" for the built-in way
	Template               string // with {{question}}, {{answer}}, {{step}}, {{number}} and {{total}}; "" for the built-in one
	MergeTail, StrictScore bool
}

// Needs reports whether a transition of this name needs the gate.
func (t *Truth) Needs(transition string) bool {
	return t.When == nil || slices.Contains(t.When, transition)
}

// Prober returns the model that probes ask.
func (t *Truth) Prober() string {
	if t.ProbeModel != "" {
		return t.ProbeModel
	}
	return t.Model
}

// Config returns the section as a gate needs it, without the completers.
func (t *Truth) Config() TruthConfig {
	thresholds := t.Thresholds
	c := TruthConfig{
		Thresholds: &thresholds, Estimator: t.Estimator, LenientLogProbs: !t.Strict, ShortCircuit: t.ShortCircuit,
		Model: t.Model, ProbeModel: t.ProbeModel, When: t.When,
		Steps: StepOptions{
			Aggregator: t.Steps.Aggregator, MaxSteps: int(t.Steps.MaxSteps), MaxStepChars: int(t.Steps.MaxStepChars),
			ParseFailureScore: t.Steps.ParseFailureScore, MergeTail: t.Steps.MergeTail, StrictScore: t.Steps.StrictScore,
		},
	}
	if t.Steps.Splitter != "" {
		c.Steps.splitAt(regexp.MustCompile(t.Steps.Splitter)) // it compiled when the section was read
	}
	if t.Steps.Template != "" {
		c.Steps.fillIn(t.Steps.Template)
	}
	return c
}

// readTruth reads the section truth; false and null switch it off.
func readTruth(r *section.Reader, into **Truth, profile Profile, state bool) func(path string, value []byte) {
	t := &Truth{
		Thresholds: DefaultThresholds(), Estimator: EstimateConsistency, Strict: true, ShortCircuit: profile == Strict,
		Steps: StepText{MaxSteps: DefaultMaxVerifiedSteps, MaxStepChars: DefaultMaxStepChars, Aggregator: AggregateMin,
			MergeTail: profile == Strict, StrictScore: profile == Strict},
	}
	read := r.Object([]section.Member{
		{Name: "model", Read: packs.ModelName(r, &t.Model)},
		{Name: "probe_model", Read: packs.ModelName(r, &t.ProbeModel)},
		{Name: "thresholds", Read: r.Object([]section.Member{
			{Name: "tau_u", Read: r.Score(&t.Thresholds.TauU)}, {Name: "tau_s", Read: r.Score(&t.Thresholds.TauS)}, {Name: "tau_a", Read: r.Score(&t.Thresholds.TauA)},
		})},
		{Name: "estimator", Read: r.OneOf((*string)(&t.Estimator), texts(estimators)...)},
		{Name: "strict", Read: r.Bool(&t.Strict)},
		{Name: "short_circuit", Read: r.Bool(&t.ShortCircuit)},
		{Name: "prm_options", Read: readStepText(r, &t.Steps)},
		{Name: "when", Read: readWhen(r, &t.When)},
		{Name: "budget", Read: func(path string, _ []byte) {
			r.Report(path, "unknown-field", "truth has no budget in a machine", "probes are paid from the session's: set guards.budget")
		}},
	})
	return r.OrOff(func(path string, value []byte) {
		read(path, value)
		if !state { // a state's section takes the rest from the machine's
			r.Require(path, value, "model")
		}
		if t.Estimator == EstimateLogProbs && !t.Strict && t.Thresholds.TauU >= 1 {
			r.Report(path+"/thresholds", "contradiction", "tau_u is 1 and strict is false: answers without log probabilities score 1 and would pass", "lower tau_u")
		}
		*into = t
	}, func() { *into = nil })
}

func readStepText(r *section.Reader, s *StepText) func(path string, value []byte) {
	return r.Object([]section.Member{
		{Name: "aggregator", Read: r.OneOf((*string)(&s.Aggregator), texts(aggregators)...)},
		{Name: "max_steps", Read: r.CountWithin(&s.MaxSteps, 1, math.MaxInt32)},
		{Name: "max_step_chars", Read: r.CountWithin(&s.MaxStepChars, 1, math.MaxInt32/answerShare)},
		{Name: "parse_failure_score", Read: r.Score(&s.ParseFailureScore)},
		{Name: "step_splitter", Read: func(path string, value []byte) {
			if r.Name(&s.Splitter)(path, value); s.Splitter == "" {
				return
			}
			if _, err := regexp.Compile(s.Splitter); err != nil {
				r.Report(path, "bad-pattern", "the pattern does not compile: "+machine.PatternError(s.Splitter, err).Error(), "patterns are RE2: no look-around, no back-references")
			}
		}},
		{Name: "critique_template", Read: func(path string, value []byte) {
			if r.Name(&s.Template)(path, value); s.Template != "" && !strings.Contains(s.Template, "{{step}}") {
				r.Report(path, "bad-value", "critique_template does not contain {{step}}", "a critique must see the step it judges")
			}
		}},
		{Name: "merge_tail", Read: r.Bool(&s.MergeTail)},
		{Name: "strict_score", Read: r.Bool(&s.StrictScore)},
	})
}

// readWhen reads "all" or the names of transitions.
func readWhen(r *section.Reader, into *[]string) func(path string, value []byte) {
	read := r.Names(into)
	return func(path string, value []byte) {
		switch {
		case string(value) == `"all"`:
		case !bytes.HasPrefix(value, []byte("[")):
			r.Report(path, "bad-value", fmt.Sprintf("when is %s", value), `it may be "all" or a list of transitions`)
		default:
			if read(path, value); len(*into) == 0 {
				r.Report(path, "bad-value", "when is an empty list, so nothing would need the gate", `it may be "all" or a list of transitions`)
			}
		}
	}
}

func texts[T ~string](list []T) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = string(s)
	}
	return all
}

// CheckIn is [machine.Checks].GuardsIn: it reports transitions that a section says
// need the truth gate and that there are not, since a gate that never closes is
// worse than none; and what a state's section lacks or contradicts only together
// with the machine's.
func CheckIn(machineSection, state []byte, transitions []string) (problems []machine.Problem) {
	section := machineSection
	if state != nil {
		section = state
		problems = checkTogether(machineSection, state)
	}
	var named struct {
		Truth struct{ When json.RawMessage }
	}
	var when []string
	if json.Unmarshal(section, &named) != nil || json.Unmarshal(named.Truth.When, &when) != nil {
		return problems // "all", or reported already
	}
	for i, name := range when {
		if !slices.Contains(transitions, name) {
			problems = append(problems, machine.Problem{Path: fmt.Sprintf("/truth/when/%d", i), Code: "unknown-transition",
				Message: fmt.Sprintf("there is no transition %q, so the truth gate would never judge it", name), Hint: machine.DidYouMean(name, transitions)})
		}
	}
	return problems
}

// checkTogether returns the problems that neither of two sections has alone.
func checkTogether(machineSection, state []byte) (problems []machine.Problem) {
	if len(Check(state, true)) > 0 || machineSection != nil && len(Check(machineSection, false)) > 0 {
		return nil // those come first
	}
	merged, err := Merge(machineSection, state)
	if err != nil {
		return nil // they are objects, as was checked
	}
	for _, p := range Check(merged, false) {
		p.Message += ", once the machine's guards are added"
		problems = append(problems, p)
	}
	return problems
}
