package llm

import (
	"context"
	"time"

	"github.com/dialai/dialai/specialist"
)

// A Check is what a tiny call found out about a model.
type Check struct {
	Model    string // without flags
	Provider string // "" if there is nowhere to ask
	Address  string // scheme and host of its API
	Answered string // the model that answered, as the provider calls it
	Form     string // how it was asked to answer: tools, schema or text
	Usable   bool   // it answered in that form
	Latency  time.Duration
	Usage    specialist.Usage
	Err      error // why it did not answer; nil if it did
}

// Check makes one tiny call of a model, in the form in which a proposer would ask
// it: it costs next to nothing.
func (c *Client) Check(ctx context.Context, id, provider string) Check {
	m, err := parseModelID(id, provider)
	k := Check{Model: m.model, Form: "tools", Err: err}
	if err != nil {
		return k
	}
	to, err := c.route(m)
	if err != nil {
		k.Err = err
		return k
	}
	k.Provider, k.Address = to.provider, origin(to.base)
	r := &Request{System: "This is a test of the connection.", User: "Answer with ok.", MaxTokens: 256, Purpose: Probe}
	switch {
	case m.noTools && m.noSchema:
		k.Form = "text"
	case m.noTools:
		k.Form, r.Schema = "schema", []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)
	default:
		r.Tools = []Tool{{Name: "ok", Description: "the connection works", Parameters: noParameters}}
	}
	start := c.config.Now()
	resp, err := c.ask(ctx, m, r, callLimit{-1, -1})
	k.Latency, k.Err, k.Answered, k.Usage = c.config.Now().Sub(start), err, resp.Model, resp.Usage
	k.Usable = err == nil && (k.Form == "tools") == (len(resp.ToolCalls) > 0) && (k.Form == "tools" || resp.Text != "")
	return k
}
