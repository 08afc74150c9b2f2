package llm

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A tapedCall is a request as people read it on a tape.
type tapedCall struct {
	Model  string `json:"model"`
	System string `json:"system,omitempty"`
	User   string `json:"user"`
	Tools  []Tool `json:"tools,omitempty"`
}

// A tapedAnswer is what was read of an answer, the same for every provider.
type tapedAnswer struct {
	Text      string                  `json:"text,omitempty"`
	ToolCalls []ToolCall              `json:"toolCalls,omitempty"`
	Finish    Finish                  `json:"finish,omitempty"`
	Refusal   string                  `json:"refusal,omitempty"`
	Model     string                  `json:"model,omitempty"`
	ID        string                  `json:"id,omitempty"`
	LogProbs  []float64               `json:"logProbs,omitempty"`
	LogTokens []string                `json:"logTokens,omitempty"`
	Input     *int64                  `json:"numInputTokens,omitempty"`
	Output    *int64                  `json:"numOutputTokens,omitempty"`
	Cost      *exact.Money            `json:"costUSD,omitempty"`
	Calls     *int64                  `json:"calls,omitempty"` // nil is one
	Unbilled  int64                   `json:"unbilledCalls,omitempty"`
	Estimated bool                    `json:"estimated,omitempty"`
	Detail    *specialist.UsageDetail `json:"tokenDetail,omitempty"`
}

func (r *Response) taped() tapedAnswer {
	u := r.Usage
	t := tapedAnswer{Text: r.Text, ToolCalls: r.ToolCalls, Finish: r.Finish, Refusal: r.Refusal, Model: r.Model, ID: r.ID, LogProbs: r.LogProbs, LogTokens: r.LogTokens, Unbilled: u.Unbilled, Estimated: u.Estimated, Detail: u.Detail}
	if u.Has(specialist.InputGiven) {
		t.Input = &u.NumInputTokens
	}
	if u.Has(specialist.OutputGiven) {
		t.Output = &u.NumOutputTokens
	}
	if u.Has(specialist.CostGiven) {
		t.Cost = &u.CostUSD
	}
	if u.Has(specialist.CallsGiven) {
		t.Calls = &u.Calls
	}
	return t
}

func (t *tapedAnswer) response() Response {
	r := Response{Text: t.Text, ToolCalls: t.ToolCalls, Finish: t.Finish, Refusal: t.Refusal, Model: t.Model, ID: t.ID, LogProbs: t.LogProbs, LogTokens: t.LogTokens}
	r.Usage.Unbilled, r.Usage.Estimated, r.Usage.Detail = max(t.Unbilled, 0), t.Estimated, t.Detail
	count(&r.Usage.Calls, t.Calls, &r.Usage.Given, specialist.CallsGiven)
	count(&r.Usage.NumInputTokens, t.Input, &r.Usage.Given, specialist.InputGiven)
	count(&r.Usage.NumOutputTokens, t.Output, &r.Usage.Given, specialist.OutputGiven)
	if t.Cost != nil && *t.Cost >= 0 {
		r.Usage = r.Usage.WithCost(*t.Cost)
	}
	return r
}

// keys returns every key that is set and long enough to be one.
func (c *Client) keys() (list []string) {
	for _, p := range providers {
		if key := c.variable(p.key); p.key != "" && len(key) >= minKey {
			list = append(list, key)
		}
	}
	return list
}

// taped asks a model through the tape.
func (c *Client) taped(ctx context.Context, m *model, r *Request, left callLimit) (Response, error) {
	request, err := jsontext.Marshal(tapedCall{m.id.model, r.System, r.User, r.Tools})
	if err != nil {
		return Response{}, err
	}
	o := &r.Origin
	label := webhook.Label{Kind: string(r.Purpose), Specialist: o.SpecialistID, State: o.State, Round: o.Round, Attempt: o.Attempt, Ask: o.Nth}
	keys := webhook.Conceal(c.keys()...)
	said := c.config.Tape.Exchange(ctx, label, []byte(keys.Hide(string(request))), func() webhook.Taped {
		resp, err := c.ask(ctx, m.id, r, left)
		body, bad := jsontext.Marshal(resp.taped())
		return webhook.Taped{Status: 200, Body: []byte(keys.Hide(string(body))), Err: cmp.Or(err, bad)}
	})
	var answer tapedAnswer
	if len(said.Body) > 0 {
		if bad := json.Unmarshal(said.Body, &answer); bad != nil && said.Err == nil {
			return Response{}, bad
		}
	}
	return answer.response(), said.Err
}
