package vectors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/specialist"
)

// A guardVector is one case about guards: a configuration and inputs in order.
type guardVector struct {
	Name   string          `json:"name"`
	Suite  string          `json:"suite"`
	Config json.RawMessage `json:"config"`
	Steps  []struct {
		Input json.RawMessage `json:"input"`
	} `json:"steps"`
}

// A guardSuite runs the steps of one case in order and returns the result of each.
type guardSuite func(ctx context.Context, input json.RawMessage) (any, error)

// reading returns a suite whose steps hold a T. Where its configuration is wrong, every
// step says so.
func reading[T any](configWrong bool, run func(ctx context.Context, in T) (any, error)) guardSuite {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		var in T
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		if configWrong {
			return plain("config_error"), nil
		}
		return run(ctx, in)
	}
}

// guards runs one case and prints a line for each step.
func (r *run) guards(ctx context.Context, raw json.RawMessage) error {
	var v guardVector
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	run, err := v.suite(r)
	if err != nil && len(v.Steps) == 0 {
		return err
	}
	if err != nil {
		run = func(context.Context, json.RawMessage) (any, error) { return nil, err }
	}
	var failed []error
	for i, step := range v.Steps {
		result, err := run(ctx, step.Input)
		if err != nil {
			failed = append(failed, fmt.Errorf("step %d: %w", i, err))
		}
		if err := render.JSON(r.out, struct {
			Name   string `json:"name"`
			Step   int    `json:"step"`
			Result any    `json:"result"`
		}{v.Name, i, orFailed(result, err)}); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (v *guardVector) suite(r *run) (guardSuite, error) {
	if len(v.Config) == 0 {
		v.Config = json.RawMessage("{}")
	}
	switch v.Suite {
	case "arbiter":
		return stepSuite(v.Config)
	case "arbiter-cli":
		return r.commandSuite(v.Config), nil
	case "loop-guard":
		return loopGuardSuite(v.Config), nil
	case "gate":
		return gateSuite(v.Config)
	case "prm-parse":
		return parseSuite(v.Config), nil
	case "prm-aggregate":
		return aggregateSuite(v.Config), nil
	case "jaccard":
		return reading(false, jaccard), nil
	}
	return nil, fmt.Errorf("unknown suite %q", v.Suite)
}

// A plainResult is a result that has only a status and reasons.
type plainResult struct {
	Status  string   `json:"status"`
	Reasons []string `json:"reasons"`
}

func plain(status string, reasons ...string) plainResult {
	return plainResult{status, append([]string{}, reasons...)}
}

// A loopResult is what a hook of the batch loop guard did.
type loopResult struct {
	plainResult
	Count   int      `json:"count,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Pending bool     `json:"pending"`
	Window  int      `json:"window"`
	Warned  int      `json:"warned"`
}

func loopGuardSuite(config json.RawMessage) guardSuite {
	loop, _ := batch.Parse(config)
	var state batch.State
	type step struct {
		Op        string                `json:"op"`
		State     *batch.State          `json:"state"`
		ToolCalls []specialist.ToolCall `json:"tool_calls"`
	}
	return reading(loop == nil, func(_ context.Context, in step) (any, error) {
		if in.State != nil {
			state = *in.State
		}
		r, err := hook(loop, &state, in.Op, in.ToolCalls)
		return loopResult{
			plain(string(r.Outcome), r.Verdict().Codes()...), r.Count, r.Tools,
			state.Pending != nil, len(state.Window), len(state.Warned),
		}, err
	})
}

// hook calls the hook that op names and keeps the state it returns.
func hook(loop *batch.Loop, state *batch.State, op string, calls []specialist.ToolCall) (r batch.Result, err error) {
	switch op {
	case "create":
		return batch.Result{Outcome: "ok"}, nil
	case "before_agent":
		*state, r = loop.BeforeAgent(*state)
	case "before_model":
		*state, r = loop.BeforeModel(*state)
	case "after_model", "after_model_text":
		*state, r, err = loop.AfterModel(*state, calls)
	default:
		return r, fmt.Errorf("unknown op %q", op)
	}
	return r, err
}

// stepOptions reads prm_options as the published gate does.
func stepOptions(config json.RawMessage) (truth.StepOptions, error) {
	section, err := parseGate(slices.Concat([]byte(`{"prm_options":`), config, []byte("}")))
	if err != nil {
		return truth.StepOptions{}, err
	}
	return section.Steps.Options(), nil
}

func parseSuite(config json.RawMessage) guardSuite {
	options, configErr := stepOptions(config)
	type step struct {
		Critique string `json:"critique"`
	}
	return reading(configErr != nil, func(_ context.Context, in step) (any, error) {
		status := "parsed"
		score, ok := truth.ParseScore(in.Critique, options.StrictScore)
		if !ok {
			status, score = "unparsed", options.ParseFailureScore
		}
		return struct {
			plainResult
			Score float64 `json:"score"`
		}{plain(status), score}, nil
	})
}

func jaccard(_ context.Context, in struct{ A, B string }) (any, error) {
	return struct {
		plainResult
		Distance float64 `json:"distance"`
	}{plain("value"), truth.Jaccard(in.A, in.B)}, nil
}

// stepStub stands for a model that criticises steps: its n-th critique ends in the
// n-th score, and has none if that is null.
type stepStub struct {
	scores       []*float64
	calls        int
	mostStep     int // code points of the longest step shown
	mostAnswer   int
	fails        bool
	answersAlike string // to everything that is no critique
}

func (s *stepStub) Complete(_ context.Context, r truth.CompletionRequest) (truth.Completion, error) {
	s.calls++
	if s.fails {
		return truth.Completion{}, errStub
	}
	if r.Purpose != truth.PurposeCritique {
		return truth.Completion{Text: s.answersAlike}, nil
	}
	if n := s.calls - 1; n < len(s.scores) && s.scores[n] != nil {
		return truth.Completion{Text: fmt.Sprintf("SCORE: %v", *s.scores[n])}, nil
	}
	return truth.Completion{Text: "no score"}, nil
}

var errStub = errors.New("the stub fails as the case says")

// template notes how much of the answer a critique would see.
func (s *stepStub) template(q truth.Critique) string {
	s.mostStep = max(s.mostStep, utf8.RuneCountInString(q.Step))
	s.mostAnswer = max(s.mostAnswer, utf8.RuneCountInString(q.Answer))
	return q.Step
}

// numberedSteps returns n steps for cases that only give scores.
func numberedSteps(n int) []string {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fmt.Sprintf("Step %d", i+1)
	}
	return steps
}

func aggregateSuite(config json.RawMessage) guardSuite {
	options, configErr := stepOptions(config)
	type step struct {
		StepScores []*float64 `json:"step_scores"`
		Steps      []string   `json:"steps"`
	}
	return reading(configErr != nil, func(ctx context.Context, in step) (any, error) {
		if in.Steps == nil {
			in.Steps = numberedSteps(len(in.StepScores))
		}
		stub := &stepStub{scores: in.StepScores}
		o := options
		o.Split = func(string) []string { return slices.Clone(in.Steps) }
		o.Template = stub.template
		v := truth.StepVerifier{Kit: truth.ProbeKit{Completer: stub}, Options: o}
		m, err := v.Measure(ctx, truth.Candidate{Answer: strings.Join(in.Steps, "\n\n")})
		return struct {
			plainResult
			Value               float64 `json:"value"`
			LLMCalls            int     `json:"llm_calls"`
			EmbeddedStepChars   int     `json:"embedded_step_chars_max"`
			EmbeddedAnswerChars int     `json:"embedded_answer_chars_max"`
		}{plain("value"), m.Value, stub.calls, stub.mostStep, stub.mostAnswer}, err
	})
}
