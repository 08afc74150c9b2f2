package llm

import (
	"context"
	"fmt"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A model as a proposer. The context is gathered, the prompt built with data fenced by
// a delimiter drawn for this ask, and the model asked; an answer that cannot be used is
// told to the model with the reason, and it is asked again, at most twice and only if
// the limit of calls has room. Each question begins anew with the first task, so what
// the model said wrong is not repeated to it.
//
// All attempts are paid for: their usage is summed and returned, with an error too.
// Estimate says before what one call needs at most, how many repairs may follow, and
// how many refused calls, so that a budget can hold all of it.

// maxRepairs is how often a model is asked again because its answer could not be
// used.
const maxRepairs = 2

// maxContext is the longest context that a model is shown, in bytes.
const maxContext = 256 << 10

// Proposer returns a proposer that asks the specialist's model about what context
// gathers, nil if the specialist names none. It returns an error if the modelId or the provider cannot be; whether
// there is a key is looked at when the model is asked. What answers cost that
// could not be used is returned along with the error.
//
// The model that an answer names is the modelId without its flags, or, if quite
// another one answered, that.
func (c *Client) Proposer(m *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error) {
	if s.ModelID == "" {
		return nil, nil
	}
	id, err := parseModelID(s.ModelID, s.Provider)
	if err != nil {
		return nil, err
	}
	p := &proposer{client: c, model: &model{c, id}, machine: m.Name(), context: context, remote: s.ContextWebhookURL != ""}
	switch {
	case id.noTools && id.noSchema:
		p.form = byPrompt
	case id.noTools:
		p.form = bySchema
	}
	return p, nil
}

// Arbiter knows nobody: a model proposes only.
func (c *Client) Arbiter(*machine.Machine, *machine.Specialist) (arbiter.Arbiter, error) {
	return nil, nil
}

// Context knows nobody: what a model is shown comes from elsewhere.
func (c *Client) Context(*machine.Machine, *machine.Specialist) (specialist.Context, error) {
	return nil, nil
}

// A proposer is a model that proposes.
type proposer struct {
	client  *Client
	model   *model
	machine string
	context specialist.Context
	remote  bool // the context comes over the network
	form    form
}

// Propose implements specialist.Proposer.
func (p *proposer) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	text, err := p.context.Gather(ctx, q)
	if err != nil {
		return specialist.Answer{Usage: noCall}, fmt.Errorf("context: %w", err)
	}
	if len(text) > maxContext {
		return specialist.Answer{Usage: noCall}, fmt.Errorf("context: it has %d bytes, more than %d", len(text), maxContext)
	}
	o := optionsOf(&q)
	r, err := p.request(&q, &o, text)
	if err != nil {
		return specialist.Answer{Usage: noCall}, err
	}
	return p.ask(ctx, r, &o)
}

// request returns the first request of an ask.
func (p *proposer) request(q *specialist.Question, o *options, context string) (*Request, error) {
	m := material{context: strings.ToValidUTF8(context, "\uFFFD"), notices: notices(q.Notices), examples: examples(q.Past.Exemplars())}
	var err error
	if m.delimiter, err = p.client.delimiter(m.context, m.notices, m.examples); err != nil {
		return nil, err
	}
	r := p.made(q, o, m)
	r.Purpose = Ask
	r.Origin = Origin{
		SessionID: q.Key.Session.String(), MachineName: p.machine, State: q.State.Name, SpecialistID: q.Self,
		RoundID: q.Key.ID(), Round: q.Key.Round, Attempt: q.Key.Attempt,
	}
	if q.Ask != nil {
		r.Origin.Nth = q.Ask.Nth
	}
	return r, nil
}

// made is what the model is sent, in the form in which this one answers.
func (p *proposer) made(q *specialist.Question, o *options, m material) *Request {
	r := &Request{System: system(p.form, o, m.delimiter), User: user(q, o, p.form, m)}
	switch p.form {
	case byTool:
		r.Tools = o.tools()
	case bySchema:
		r.Schema = o.schema()
	}
	return r
}

// ask asks until there is an answer that can be used, or no room to ask again.
func (p *proposer) ask(ctx context.Context, r *Request, o *options) (specialist.Answer, error) {
	var a specialist.Answer
	left, task := callLimitOf(ctx), r.User
	called := spend.Called{Model: p.model.id.model}
	failed := func(err error) (specialist.Answer, error) {
		return specialist.Answer{Usage: a.Usage, Model: called.Model, Asked: called.Asked, Answered: called.Answered}, err
	}
	for repairs := 0; ; repairs++ {
		resp, err := p.model.ask(ctx, r, left)
		a.Usage, left = a.Usage.Plus(resp.Usage), left.after(resp.Usage)
		if err != nil {
			return failed(err)
		}
		called = spend.CalledOf(p.model.id.model, resp.Model)
		said, bad := o.read(p.form, &resp)
		switch {
		case bad == nil:
			said.Usage, said.OptionOrder = a.Usage, o.names()
			said.Model, said.Asked, said.Answered = called.Model, called.Asked, called.Answered
			return said, nil
		case bad.final || repairs == maxRepairs:
			return failed(bad.err)
		case !left.left():
			return failed(fmt.Errorf("%w (the model is not asked again: the budget has no room for that)", bad.err))
		}
		if unwanted := specialist.CallerOf(ctx).StillWanted(ctx); unwanted != nil {
			return failed(fmt.Errorf("%w (the model is not asked again: %w)", bad.err, unwanted))
		}
		again := *r
		again.Purpose, again.User = Repair, task+repair(webhook.Clip(bad.why, maxWhy), o)
		r = &again
	}
}

// maxWhy is the longest text, in bytes, that tells a model what was wrong.
const maxWhy = 1 << 10

// retries returns how often one call is repeated at most.
func (c *Client) retries() int64 {
	if n := c.config.Retry.Attempts; n > 0 {
		return int64(n) - 1
	}
	return int64(webhook.DefaultRetry().Attempts) - 1
}

// remoteContext is what a context of a service is expected to need, in tokens.
const remoteContext = 4096

// Estimate implements specialist.Estimator: what one call needs at most, and how many
// more there may be.
func (p *proposer) Estimate(q specialist.Question) specialist.Estimate {
	o := options{state: q.State, order: q.State.Transitions, aliases: aliases(q.State)}
	m := material{delimiter: unknownDelimiter, notices: notices(q.Notices), examples: examples(q.Past.Exemplars())}
	r := p.made(&q, &o, m)
	e := specialist.Estimate{Model: p.model.id.model, InputTokens: spend.EstimateTokens(r.texts()...) + spend.EstimateTokens(string(q.Meta)), OutputTokens: DefaultMaxTokens,
		Repairs: maxRepairs, RepairInput: maxWhy + spend.EstimateTokens(repair("", &o)), Retries: (1 + maxRepairs) * p.client.retries()}
	for _, past := range q.Past.History() {
		e.InputTokens += spend.EstimateTokens(past.TransitionName, past.Reasoning, string(past.MetaJSON))
	}
	if p.remote {
		e.InputTokens += remoteContext
	}
	return e
}
