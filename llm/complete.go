package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/specialist"
)

// Completer returns a model as the truth gate asks it: a prompt in, a text out. It
// is a truth.LogProber and a guard.OutputLimiter too. It returns an error if the
// modelId cannot be.
func (c *Client) Completer(id string) (truth.Completer, error) {
	m, err := parseModelID(id, "")
	if err != nil {
		return nil, err
	}
	return &completer{&model{c, m}}, nil
}

// A completer is a model that completes.
type completer struct{ model *model }

// MaxOutputTokens implements truth.OutputLimiter.
func (*completer) MaxOutputTokens() int64 { return DefaultMaxTokens }

// originOf returns who asks, as far as ctx says.
func originOf(ctx context.Context) Origin {
	c := specialist.CallerOf(ctx)
	return Origin{SessionID: c.SessionID, MachineName: c.MachineName, State: c.State, SpecialistID: c.SpecialistID, Round: c.Round, Attempt: c.Attempt, Nth: c.Nth}
}

// Complete implements truth.Completer.
func (c *completer) Complete(ctx context.Context, q truth.CompletionRequest) (truth.Completion, error) {
	resp, err := c.model.Ask(ctx, &Request{User: q.Prompt, Temperature: q.Temperature, Seed: q.Seed, Purpose: Probe, Origin: originOf(ctx)})
	done := completion(&resp)
	if err == nil && done.Text == "" {
		err = errors.New("the model answered nothing")
	}
	return done, err
}

func completion(resp *Response) truth.Completion {
	done := truth.Completion{Text: cmp.Or(resp.Text, resp.Refusal), UsageID: resp.ID, Model: resp.Model}
	u := resp.Usage
	if u.Has(specialist.InputGiven|specialist.OutputGiven) && !u.Estimated {
		done.Tokens = truth.CountedTokens(u.NumInputTokens, u.NumOutputTokens)
	}
	if u.Has(specialist.CostGiven) {
		done.CostUSD = &u.CostUSD
	}
	return done
}

// LogProbs implements truth.LogProber: the model is asked again, without chance,
// and what it says first is compared with the first line of the answer, which is
// the choice; the rest are reasons, which nobody words twice alike. If the model
// makes the same choice, these are the log probabilities of its tokens. If it makes
// another one of probability p, the answer has at most what that leaves, and this
// is the one number returned. There are none if the provider gives none.
func (c *completer) LogProbs(ctx context.Context, prompt, answer string) ([]float64, error) {
	resp, err := c.model.Ask(ctx, &Request{User: prompt, LogProbs: true, Purpose: Probe, Origin: originOf(ctx)})
	if err != nil || len(resp.LogProbs) == 0 {
		return nil, err
	}
	if len(resp.LogTokens) != len(resp.LogProbs) {
		return nil, fmt.Errorf("the model names %d tokens with %d log probabilities", len(resp.LogTokens), len(resp.LogProbs))
	}
	said, probs := firstLine(resp.LogTokens, resp.LogProbs)
	choice, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	if said == strings.TrimSpace(choice) {
		return probs, nil
	}
	sum := 0.0
	for _, lp := range probs {
		sum += lp
	}
	return []float64{math.Log(max(1-math.Exp(sum), math.SmallestNonzeroFloat64))}, nil
}

// firstLine returns the first line that is not blank, and the log probabilities of
// its tokens.
func firstLine(tokens []string, probs []float64) (line string, of []float64) {
	for i, token := range tokens {
		before, _, broken := strings.Cut(strings.TrimLeft(line+token, "\r\n\t "), "\n")
		line = before
		of = append(of, min(probs[i], 0))
		if broken {
			break
		}
	}
	return strings.TrimSpace(line), of
}
