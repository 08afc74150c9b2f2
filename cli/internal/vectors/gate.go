package vectors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/truth"
)

// Vectors of the truth gate: a case gives a section, answers of a scripted judge and steps, and
// says what each step comes to, what was asked, and what was counted.

// A gateCase is what the steps of one case about the truth gate share.
type gateCase struct {
	config    truth.Config
	configErr error
	noModel   bool
	sinkFails bool
	softFails bool
	softFault bool // softFails, of this step only
	softWarns int
	ledger    *truth.TokenLedger // shared, or nil
	broken    error              // of the shared ledger
}

func gateSuite(config json.RawMessage) (guardSuite, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &members); err != nil {
		return nil, err
	}
	g := &gateCase{}
	g.noModel = string(members["completion"]) == "null"
	g.sinkFails = string(members["on_event"]) == `"throws"`
	g.softFails = string(members["on_soft_warn"]) == `"throws"`
	if raw, given := members["ledger"]; given {
		g.ledger, g.broken = g.openLedger(raw)
	}
	for _, own := range []string{"completion", "on_event", "on_soft_warn", "ledger"} {
		delete(members, own)
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	section, err := parseGate(rest)
	if g.configErr = err; err == nil {
		g.config = section.Config()
	}
	return reading(false, g.step), nil
}

// parseGate reads a section truth as the published gate does.
func parseGate(config []byte) (*truth.Section, error) {
	section, problems := truth.Parse(config, truth.Defaults())
	if len(problems) > 0 {
		return nil, &guard.ConfigError{Path: "truth", Problems: problems}
	}
	return section, nil
}

// openLedger makes the ledger that all steps share.
func (g *gateCase) openLedger(raw json.RawMessage) (*truth.TokenLedger, error) {
	section, err := parseGate(slices.Concat([]byte(`{"budget":`), raw, []byte("}")))
	if err != nil {
		return nil, err
	}
	return truth.NewTokenLedger(section.Budget, g.onSoftWarn)
}

func (g *gateCase) onSoftWarn(truth.TokenTotals) error {
	g.softWarns++
	if g.softFails || g.softFault {
		return errStub
	}
	return nil
}

// A gateInput is one candidate with what the probes are to find.
type gateInput struct {
	Scores     map[string]*scoreValue `json:"scores"` // null: as a built-in probe finds
	Tokens     truth.TokenCounts      `json:"tokens"`
	Prompt     string                 `json:"prompt"`
	Answer     *string                `json:"answer"`
	LogProbs   []float64              `json:"logprobs"`
	StepScores []*float64             `json:"step_scores"`
	Fault      *struct {
		Stage string `json:"stage"`
	} `json:"fault"`
	External *struct {
		Stage  string `json:"stage"`
		Tokens int64  `json:"tokens"`
	} `json:"external_debit_after"`
}

// A scoreValue is a number, or a text such as "NaN" for what JSON cannot say.
type scoreValue float64

// UnmarshalJSON reads a number or a text.
func (s *scoreValue) UnmarshalJSON(data []byte) error {
	switch text := string(bytes.Trim(data, `"`)); text {
	case "NaN":
		*s = scoreValue(math.NaN())
	case "Infinity", "+Infinity":
		*s = scoreValue(math.Inf(1))
	case "-Infinity":
		*s = scoreValue(math.Inf(-1))
	default:
		return json.Unmarshal(data, (*float64)(s))
	}
	return nil
}

// A gateResult is the verdict on one candidate.
type gateResult struct {
	plainResult
	LLMCalls    int                `json:"llm_calls"`
	ProbesRun   []string           `json:"probes_run"`
	SoftWarns   int                `json:"soft_warns"`
	Uncertainty *float64           `json:"uncertainty,omitempty"`
	Ledger      *truth.TokenTotals `json:"ledger,omitempty"`
}

func (g *gateCase) step(ctx context.Context, in gateInput) (any, error) {
	g.softWarns = 0
	stub := &stepStub{scores: in.StepScores, fails: in.fails("completion", "critique", "sample")}
	r := g.judge(ctx, &in, stub)
	return gateResult{
		plain(string(r.Kind), r.Reasons...), stub.calls, append([]string{}, r.Meta.ProbesRun...),
		g.softWarns, r.Meta.Uncertainty, r.Meta.Ledger,
	}, nil
}

// fails reports whether the case has one of the named stages fail.
func (in *gateInput) fails(stages ...string) bool {
	return in.Fault != nil && slices.Contains(stages, in.Fault.Stage)
}

// candidate returns what is to be judged.
func (in *gateInput) candidate() truth.Candidate {
	answer := strings.Join(numberedSteps(len(in.StepScores)), "\n")
	if in.Answer != nil {
		answer = *in.Answer
	}
	return truth.Candidate{Prompt: in.Prompt, Answer: answer, Tokens: in.Tokens, LogProbs: in.LogProbs}
}

// judge makes the gate of one step, with probes that find what the case says.
func (g *gateCase) judge(ctx context.Context, in *gateInput, stub *stepStub) truth.Result {
	if err := errors.Join(g.configErr, g.broken); err != nil {
		return truth.Failure(truth.StageConfig, err)
	}
	c := in.candidate()
	stub.answersAlike = c.Answer
	cfg := g.config
	if !g.noModel {
		cfg.Completer = stub
	}
	g.softFault = in.fails("on_soft_warn")
	others, err := g.books(&cfg, in.External != nil)
	if err != nil {
		return truth.Failure(truth.StageBudget, err)
	}
	cfg.OnEvent = func(e truth.Event) error { return g.onEvent(in, e, others) }
	for stage, probe := range map[string]*truth.Probe{
		truth.StageUncertainty: &cfg.Uncertainty, truth.StageSensitivity: &cfg.Sensitivity, truth.StageAdherence: &cfg.Adherence,
	} {
		if score := in.Scores[stage]; score != nil || in.fails(stage) {
			*probe = in.probe(stage, score)
		}
	}
	return truth.Gate(ctx, c, cfg)
}

// books sets the ledger or the budget of one step and returns the ledger that
// others debit. If others spend from a budget, its fresh ledger is made here: a
// gate keeps its own to itself.
func (g *gateCase) books(cfg *truth.Config, shared bool) (others truth.Ledger, err error) {
	if g.ledger != nil {
		cfg.Ledger, others = g.ledger, g.ledger
	}
	if cfg.Budget == nil {
		return others, nil
	}
	cfg.OnSoft = g.onSoftWarn
	if shared && g.ledger == nil {
		others, err = truth.NewTokenLedger(cfg.Budget, g.onSoftWarn)
		cfg.Budget, cfg.Ledger = nil, others
	}
	return others, err
}

// probe returns a probe that finds score, or fails if the case says so. It stands
// for one that asks the model.
func (in *gateInput) probe(stage string, score *scoreValue) truth.Probe {
	return truth.ProbeFunc(func(context.Context, truth.Candidate) (float64, error) {
		if score == nil || in.fails(stage, "completion") {
			return 0, errStub
		}
		return float64(*score), nil
	})
}

// onEvent is the sink: it fails if the case says so, and spends what others spend
// after a stage.
func (g *gateCase) onEvent(in *gateInput, e truth.Event, others truth.Ledger) error {
	if g.sinkFails || in.fails("on_event", e.Type) {
		return errStub
	}
	after := e.Type == "probe" || e.Type == "record"
	if !after || others == nil || in.External == nil || in.External.Stage != e.Stage {
		return nil
	}
	_, err := others.Record(truth.TokenUsage{Input: in.External.Tokens})
	return err
}
