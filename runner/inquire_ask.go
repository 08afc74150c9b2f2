package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// How the two guards that ask somebody put their questions. Each question becomes a
// probe (whom it asks, a digest of what is asked, and what it may cost), and goes
// through inquirer.call, which answers from the log what the log has an answer to, and
// otherwise records the question, sends it, and records what came.
//
// So what is recorded must be enough to read the answer again: of a classifier its
// verdict, score and code as JSON; of a model its text, or its log probabilities as
// JSON. The digest covers all that the answer depends on: the model, the stage, the
// prompt, how to sample.
//
// What a call of a model may cost is known before: its input is estimated, and its
// output is the most that the model says it can give, or what its last outputs make
// likely where the budget adapts. What a model does not say afterwards is estimated
// too, and marked so. The truth gate sees the session's spending as its ledger but
// charges nothing there: each call is charged where it is recorded.

// classify puts one question to the classifier.
func (q *inquirer) classify(ctx context.Context, c guard.Classification) (guard.ClassifierAnswer, error) {
	p := probe{guard: session.ClassifierID, source: specialist.Webhook, stage: c.Stage, digest: c.Digest(), timeout: q.config.Classifier.Timeout}
	if q.config.Classifier.Function != "" {
		p.source, p.need = specialist.Function, q.judging(&c)
	}
	text, err := q.call(ctx, p, func(ctx context.Context) reply {
		a, err := q.config.Classifier.Ask(ctx, q.respondents.Classifier, c)
		return reply{text: encodeAnswer(a), usage: a.Usage, err: err}
	})
	switch {
	case q.err != nil:
		return guard.ClassifierAnswer{}, fmt.Errorf("%w: %w", guard.ErrNotAsked, q.err)
	case q.refused != nil:
		return guard.ClassifierAnswer{}, fmt.Errorf("%w: %w", guard.ErrNotAsked, q.refused)
	case err != nil:
		return guard.ClassifierAnswer{}, err
	}
	return decodeAnswer(text)
}

// judging returns what a function costs that judges by a model: the text at the price of that
// model. It is zero where no model is named, or nothing is known of what that costs.
func (q *inquirer) judging(c *guard.Classification) specialist.Usage {
	u := specialist.Usage{NumInputTokens: spend.EstimateTokens(append(slices.Clip(c.Meta.Turns), c.Text)...), NumOutputTokens: judgementTokens, Given: specialist.InputGiven | specialist.OutputGiven}
	if u = q.w.price(u, spend.Called{Model: c.Meta.Model}); u.CostUSD == 0 {
		return specialist.Usage{}
	}
	return u
}

// judgementTokens is how long an answer of a classifier is thought to be: three members of a
// JSON object.
const judgementTokens = 256

// A classified is an answer of a classifier as it is stored.
type classified struct {
	Verdict verdict.Status `json:"verdict"`
	Score   float64        `json:"score"`
	Code    string         `json:"code,omitempty"`
}

func encodeAnswer(a guard.ClassifierAnswer) string {
	text, err := json.Marshal(classified{a.Verdict, a.Score, specialist.Clip(a.Code, 256)})
	if err != nil {
		return "" // it was no answer: its score is no number
	}
	return string(text)
}

func decodeAnswer(text string) (a guard.ClassifierAnswer, err error) {
	var c struct {
		Verdict string  `json:"verdict"`
		Score   float64 `json:"score"`
		Code    string  `json:"code"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return a, err
	}
	status, ok := verdict.StatusNamed(c.Verdict)
	if !ok {
		return a, &session.DecodeError{What: "verdict", Value: c.Verdict}
	}
	return guard.ClassifierAnswer{Verdict: status, Score: c.Score, Code: c.Code}, nil
}

// truth puts a decision to the truth gate.
func (q *inquirer) truth(ctx context.Context, d decision) verdict.Verdict {
	section := q.config.Truth
	c := section.Config()
	c.Completer = q.completer(q.respondents.Model, section.Model)
	c.ProbeCompleter = q.completer(q.respondents.Prober, section.Prober())
	c.Ledger = sessionLedger{q}
	c.OnEvent = q.measured
	candidate := truth.Candidate{
		ID: q.w.now.Key().ProposalID(d.arrival), Description: d.transition.Description,
		Prompt: q.question(), Answer: d.transition.Name + "\n" + d.reasoning,
	}
	return truth.Gate(ctx, candidate, c).Verdict()
}

// measured records what a probe of the truth gate has measured.
func (q *inquirer) measured(e truth.Event) error {
	if e.Type == "probe" && e.Value != nil && q.err == nil && q.w.open.Measured(e.Stage, *e.Value) == nil {
		q.w.emit(&session.Probed{Guard: session.TruthID, Stage: e.Stage, Value: e.Value})
	}
	return nil
}

// question returns what the proposers of the round were asked, as one text.
func (q *inquirer) question() string {
	about := q.w.question()
	text := "Choose one of the transitions."
	if about.State.Prompt != "" {
		text = about.State.Prompt
	}
	return text + "\n\nThis is the situation, as JSON:\n" + string(about.AppendContext(nil, false)) +
		"\n\nReply with the name of one transition on the first line, and with your reasons below it."
}

// completer returns a model whose calls are recorded.
func (q *inquirer) completer(by truth.Completer, model string) truth.Completer {
	c := &recorded{q, by, model}
	if asks, ok := by.(truth.LogProber); ok {
		return &recordedProber{c, asks}
	}
	return c
}

// A recorded model asks the log first.
type recorded struct {
	q     *inquirer
	inner truth.Completer
	model string
}

// mostOutput is how long a completion may be for all that is known.
const mostOutput = 16_384

// probe returns what there is to say of one call before it is made.
func (c *recorded) probe(stage string, output int64, parts ...string) probe {
	h := sha256.New()
	for _, part := range append([]string{c.model, stage}, parts...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	need := specialist.Usage{NumInputTokens: spend.EstimateTokens(parts[0]), NumOutputTokens: output, Given: specialist.InputGiven | specialist.OutputGiven}
	return probe{
		guard: session.TruthID, source: specialist.Model, stage: stage, model: c.model, digest: hex.EncodeToString(h.Sum(nil)[:16]),
		need: c.q.w.price(need, spend.Called{Model: c.model}), timeout: c.q.w.now.State.TimeoutOf(&machine.Specialist{}),
	}
}

// Complete implements truth.Completer.
func (c *recorded) Complete(ctx context.Context, r truth.CompletionRequest) (truth.Completion, error) {
	output := int64(mostOutput)
	if l, ok := c.inner.(truth.OutputLimiter); ok {
		output = min(output, max(l.MaxOutputTokens(), 0))
	}
	known := c.q.w.r.outputsOf(c.model)
	if c.q.config.Adapts() {
		output = known.Likely(output)
	}
	p := c.probe(string(r.Purpose), output, r.Prompt, fmt.Sprint(r.Temperature), fmt.Sprint(r.Seed))
	text, err := c.q.call(ctx, p, func(ctx context.Context) reply {
		done, err := c.inner.Complete(ctx, r)
		if err == nil && done.Tokens.Output != nil {
			known.Add(max(*done.Tokens.Output, 0))
		}
		return reply{done.Text, usageOf(&done, r.Prompt, err), done.Model, "", err}
	})
	return truth.Completion{Text: text}, err
}

// outputsOf returns what this process knows of the length of a model's outputs.
func (r *Runner) outputsOf(model string) *spend.Outputs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outputs.GetOr(model, func() *spend.Outputs { return &spend.Outputs{} })
}

// usageOf returns what a completion cost. What a model that answered does not say
// is estimated.
func usageOf(done *truth.Completion, prompt string, err error) specialist.Usage {
	u := specialist.Usage{}
	if done.CostUSD != nil {
		u = u.WithCost(*done.CostUSD)
	}
	if err != nil && done.Tokens == (truth.TokenCounts{}) {
		return u
	}
	count := func(given *int64, text string) int64 {
		if given != nil {
			return *given
		}
		u.Estimated = true
		return spend.EstimateTokens(text)
	}
	u.NumInputTokens, u.NumOutputTokens = count(done.Tokens.Input, prompt), count(done.Tokens.Output, done.Text)
	u.Given |= specialist.InputGiven | specialist.OutputGiven
	return u
}

// A recordedProber is a recorded model that can also say how likely it finds an
// answer.
type recordedProber struct {
	*recorded
	prober truth.LogProber
}

// LogProbs implements truth.LogProber.
func (c *recordedProber) LogProbs(ctx context.Context, prompt, answer string) ([]float64, error) {
	text, err := c.q.call(ctx, c.probe("log_probs", 0, prompt+answer), func(ctx context.Context) reply {
		probs, err := c.prober.LogProbs(ctx, prompt, answer)
		if err != nil {
			return reply{err: err}
		}
		text, err := json.Marshal(probs)
		return reply{text: string(text), err: err, usage: specialist.Usage{NumInputTokens: spend.EstimateTokens(prompt, answer), Given: specialist.InputGiven, Estimated: true}}
	})
	if err != nil {
		return nil, err
	}
	var probs []float64
	err = json.Unmarshal([]byte(text), &probs)
	return probs, err
}

// A sessionLedger shows the truth gate what the session has spent. The calls
// themselves are charged where they are recorded.
type sessionLedger struct{ q *inquirer }

// Record implements truth.Ledger: the answer was charged when it was recorded.
func (sessionLedger) Record(truth.TokenUsage) (bool, error) { return false, nil }

// Tripped implements truth.Ledger.
func (l sessionLedger) Tripped() truth.Trip {
	if l.q.refused == nil {
		l.q.refused = l.q.config.Budget.Over(l.q.w.now.Spent())
	}
	if l.q.refused == nil {
		return truth.Trip{}
	}
	return truth.Trip{Code: l.q.refused.Code, Kill: true}
}

// Totals implements truth.Ledger.
func (l sessionLedger) Totals() truth.TokenTotals {
	spent := l.q.w.now.Spent()
	return truth.TokenTotals{Tokens: spent.TokensIn + spent.TokensOut, Calls: spent.Calls}
}
