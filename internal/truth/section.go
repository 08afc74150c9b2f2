package truth

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// A truth section as plain data, and how it is read. Defaults come first, those of the
// profile, so that what is absent is never 0; then each member is taken over if it is
// right, and what contradicts another is reported. A gate in a machine has no budget of
// its own, since the session pays; one that stands alone may. A splitter and a template
// are texts here and become functions in Options; a template is filled in one pass, so
// that no text from outside can bring in a placeholder.

// A Section is a section truth: in a machine, a gate that winners must pass before they
// are executed. It is plain data; who asks the models is added to what [Section.Config]
// returns. It never changes.
type Section struct {
	Model      string // that gave or could give the answers; never "" in a machine
	ProbeModel string // an independent one for all probes; "" for Model

	Thresholds   Thresholds
	Estimator    Estimator // never ""
	Strict       bool      // without log probabilities a human must look
	ShortCircuit bool      // no probe after one whose score decides
	Steps        StepText
	When         []string // the transitions that need the gate; nil: all

	// Of a gate that stands alone. In a machine the session pays.
	Budget      *spend.Budget // of tokens and calls; nil: nothing is counted
	DebitProbes bool          // its probes' calls count too
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
func (t *Section) Needs(transition string) bool {
	return t.When == nil || slices.Contains(t.When, transition)
}

// Prober returns the model that probes ask.
func (t *Section) Prober() string { return cmp.Or(t.ProbeModel, t.Model) }

// Calls returns how many calls of a model a gate that passes makes at most.
func (t *Section) Calls() int64 {
	const worlds = 2 * 2 * nearWorlds
	switch t.Estimator {
	case EstimateSteps:
		return t.Steps.MaxSteps + worlds
	case EstimateLogProbs:
		return 1 + worlds
	}
	return consistencySamples + worlds
}

// Config returns the section as a gate needs it, without the completers.
func (t *Section) Config() Config {
	return Config{
		Thresholds: new(t.Thresholds), Estimator: t.Estimator, LenientLogProbs: !t.Strict, ShortCircuit: t.ShortCircuit,
		Steps: t.Steps.Options(), Budget: t.Budget, DebitProbes: t.DebitProbes,
	}
}

// Options returns the options as a gate needs them.
func (s StepText) Options() StepOptions {
	o := StepOptions{
		Aggregator: s.Aggregator, MaxSteps: int(s.MaxSteps), MaxStepChars: int(s.MaxStepChars),
		ParseFailureScore: s.ParseFailureScore, MergeTail: s.MergeTail, StrictScore: s.StrictScore,
	}
	if s.Splitter != "" {
		splitter := regexp.MustCompile(s.Splitter) // it compiled when the section was read
		o.Split = func(answer string) []string { return splitter.Split(answer, -1) }
	}
	if s.Template != "" { // one pass, so that no text can bring in another
		o.Template = func(q Critique) string {
			return strings.NewReplacer("{{question}}", q.Question, "{{answer}}", q.Answer, "{{step}}", q.Step,
				"{{number}}", fmt.Sprint(q.Number), "{{total}}", fmt.Sprint(q.Total)).Replace(s.Template)
		}
	}
	return o
}

// Defaults returns the section that says nothing, as the published gate has it.
func Defaults() Section {
	return Section{Thresholds: DefaultThresholds(), Estimator: EstimateConsistency, Strict: true,
		Steps: StepText{MaxSteps: DefaultMaxVerifiedSteps, MaxStepChars: DefaultMaxStepChars, Aggregator: AggregateMin}}
}

// StrictDefaults returns the section that says nothing, in the profile strict.
func StrictDefaults() Section {
	t := Defaults()
	t.ShortCircuit, t.DebitProbes, t.Steps.MergeTail, t.Steps.StrictScore = true, true, true, true
	return t
}

// Parse reads the section of a gate that stands alone, a JSON object. What it
// leaves out is as in defaults. It needs no model, and may have a budget with the members
// soft_limit_tokens, hard_limit_tokens, hard_limit_calls, mode and debit_probes. The
// problems have JSON pointers relative to the section.
func Parse(data []byte, defaults Section) (*Section, []machine.Problem) {
	t := defaults
	problems := section.Parse("truth", data, func(r *section.Reader) func(path string, value []byte) {
		return r.Object(append(t.members(r), section.Member{Name: "budget", Read: t.readBudget(r)}))
	})
	if problems = append(problems, t.contradictions("")...); len(problems) > 0 {
		return nil, problems
	}
	return &t, nil
}

func (t *Section) readBudget(r *section.Reader) func(path string, value []byte) {
	b := &spend.Budget{}
	read := r.Object([]section.Member{
		{Name: "soft_limit_tokens", Read: r.OptionalCount(&b.SoftTokens)},
		{Name: "hard_limit_tokens", Read: r.OptionalCount(&b.HardTokens)},
		{Name: "hard_limit_calls", Read: r.OptionalCount(&b.HardCalls)},
		{Name: "mode", Read: r.OneOf((*string)(&b.Mode), string(spend.ModeHardKill), string(spend.ModeObserve))},
		{Name: "debit_probes", Read: r.Flag(&t.DebitProbes)},
	})
	return func(path string, value []byte) {
		read(path, value)
		for _, p := range b.Contradictions() {
			r.Report(path+p.Path, p.Code, p.Message, p.Hint)
		}
		t.Budget = b
	}
}

// Read reads the section truth of a machine, or of a state of one; false and null
// switch it off. What it leaves out is as in defaults.
func Read(r *section.Reader, into **Section, defaults Section, state bool) func(path string, value []byte) {
	t := &defaults
	t.DebitProbes = false // the session's budget says
	read := r.Object(append(t.members(r), section.Member{Name: "budget", Read: func(path string, _ []byte) {
		r.Report(path, "unknown-field", "truth has no budget in a machine", "probes are paid from the session's: set guards.budget")
	}}))
	return r.OrOff(func(path string, value []byte) {
		read(path, value)
		if !state { // a state's section takes the rest from the machine's
			r.Require(path, value, "model")
		}
		r.Problems = append(r.Problems, t.contradictions(path)...)
		*into = t
	}, func() { *into = nil })
}

// members are those that every section has.
func (t *Section) members(r *section.Reader) []section.Member {
	return []section.Member{
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
	}
}

// contradictions are members that cannot both be meant.
func (t *Section) contradictions(path string) []machine.Problem {
	if t.Estimator == EstimateLogProbs && !t.Strict && t.Thresholds.TauU >= 1 {
		return []machine.Problem{{Path: path + "/thresholds", Code: "contradiction",
			Message: "tau_u is 1 and strict is false: answers without log probabilities score 1 and would pass", Hint: "lower tau_u"}}
	}
	return nil
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
