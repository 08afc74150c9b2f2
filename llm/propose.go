package llm

import (
	"context"
	"fmt"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// maxRepairs is how often a model is asked again because its answer could not be
// used.
const maxRepairs = 2

// MaxContext is the longest context that a model is shown, in bytes.
const MaxContext = 256 << 10

// Proposer returns a proposer that asks the specialist's model about what context
// gathers. It returns an error if the modelId or the provider cannot be; whether
// there is a key is looked at when the model is asked. What answers cost that
// could not be used is returned along with the error.
//
// The model that an answer names is the modelId without its flags, or, if quite
// another one answered, that.
func (c *Client) Proposer(m *machine.Machine, s *machine.Specialist, context specialist.Context) (specialist.Proposer, error) {
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
		return specialist.Answer{}, fmt.Errorf("context: %w", err)
	}
	if len(text) > MaxContext {
		return specialist.Answer{}, fmt.Errorf("context: it has %d bytes, more than %d", len(text), MaxContext)
	}
	o := optionsOf(&q)
	r, err := p.request(&q, &o, text)
	if err != nil {
		return specialist.Answer{}, err
	}
	return p.ask(ctx, r, &o)
}

// request returns the first request of an ask.
func (p *proposer) request(q *specialist.Question, o *options, context string) (*Request, error) {
	m := material{context: strings.ToValidUTF8(context, "\uFFFD"), examples: examples(q.Past.Exemplars())}
	var err error
	if m.delimiter, err = p.client.delimiter(m.context, m.examples); err != nil {
		return nil, err
	}
	r := &Request{
		System: system(p.form, o, m.delimiter), User: user(q, o, p.form, m), Purpose: Ask,
		Origin: Origin{
			SessionID: q.Key.Session.String(), MachineName: p.machine, State: q.State.Name, SpecialistID: q.Self,
			RoundID: q.Key.ID(), Round: q.Key.Round, Attempt: q.Key.Attempt,
		},
	}
	switch p.form {
	case byTool:
		r.Tools = o.tools()
	case bySchema:
		r.Schema = o.schema()
	}
	return r, nil
}

// ask asks until there is an answer that can be used.
func (p *proposer) ask(ctx context.Context, r *Request, o *options) (specialist.Answer, error) {
	var spent specialist.Usage
	model, task := p.model.id.model, r.User
	for repairs := 0; ; repairs++ {
		resp, err := p.model.Ask(ctx, r)
		spent = plus(spent, resp.Usage)
		if err != nil {
			return specialist.Answer{Usage: spent, Model: model}, err
		}
		model = p.answered(resp.Model)
		a, bad := o.read(p.form, &resp)
		if bad == nil {
			a.Usage, a.Model, a.OptionOrder = spent, model, o.names()
			return a, nil
		}
		if bad.final || repairs == maxRepairs {
			return specialist.Answer{Usage: spent, Model: model}, bad.err
		}
		again := *r
		again.Purpose, again.User = Repair, task+repair(bad.why, o)
		r = &again
	}
}

// answered returns the model that an answer is charged for: the one that was asked
// for, unless the provider names one that is no version of it.
func (p *proposer) answered(resolved string) string {
	asked := p.model.id.model
	short := asked[strings.LastIndexByte(asked, '/')+1:]
	if resolved == "" || strings.Contains(strings.ToLower(resolved), strings.ToLower(strings.TrimSuffix(short, "-latest"))) {
		return asked
	}
	return resolved
}

// remoteContext is what a context of a service is expected to need, in tokens.
const remoteContext = 4096

// Estimate implements specialist.Estimator: what one ask needs at most, if it
// needs no repair.
func (p *proposer) Estimate(q specialist.Question) specialist.Estimate {
	o := options{state: q.State, order: q.State.Transitions, aliases: aliases(q.State)}
	m := material{delimiter: unknownDelimiter, examples: examples(q.Past.Exemplars())}
	r := Request{System: system(p.form, &o, unknownDelimiter), User: user(&q, &o, p.form, m)}
	switch p.form {
	case byTool:
		r.Tools = o.tools()
	case bySchema:
		r.Schema = o.schema()
	}
	e := specialist.Estimate{Model: p.model.id.model, InputTokens: guard.EstimateTokens(r.texts()...) + guard.EstimateTokens(string(q.Meta)), OutputTokens: DefaultMaxTokens}
	for _, past := range q.Past.History() {
		e.InputTokens += guard.EstimateTokens(past.TransitionName, past.Reasoning, string(past.MetaJSON))
	}
	if p.remote {
		e.InputTokens += remoteContext
	}
	return e
}
