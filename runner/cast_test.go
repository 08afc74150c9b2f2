package runner_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A part is what a specialist does when it is asked.
type part func(context.Context, specialist.Question) (specialist.Answer, error)

// A cast says what specialists do, by id. Its registry has them as the function
// "fn"; as a [strategies.Resolver] it has them behind webhooks.
type cast struct {
	strategies.Registry // of nobody
	mu                  sync.Mutex
	parts               map[string]part
	arbiters            map[string]arbiter.Arbiter // functions by name, remote ones by id
	asked               []string                   // who was asked, in that order
	asks                []specialist.Ask           // of those behind webhooks
	calls               []string                   // round and id of everybody who was asked
}

func newCast() *cast {
	return &cast{parts: map[string]part{}, arbiters: map[string]arbiter.Arbiter{}}
}

// play gives somebody a part.
func (c *cast) play(id string, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[id] = p
}

// say has somebody always propose one transition.
func (c *cast) say(id, transition string) { c.play(id, saying(transition)) }

func saying(transition string) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: transition, Reasoning: "it is " + transition}, nil
	}
}

// failing is the part of somebody who cannot answer.
func failing(err error) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) { return specialist.Answer{}, err }
}

// hanging is the part of somebody who answers only to ctx.
func hanging(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
	<-ctx.Done()
	return specialist.Answer{}, ctx.Err()
}

// who returns who was asked since the last call.
func (c *cast) who() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// askIDs returns the ids of asks behind webhooks so far, sorted.
func (c *cast) askIDs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, a := range c.asks {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

// lastAsk returns the newest ask behind a webhook.
func (c *cast) lastAsk() specialist.Ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asks[len(c.asks)-1]
}

func (c *cast) ask(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	c.mu.Lock()
	c.asked = append(c.asked, q.Self)
	c.calls = append(c.calls, q.Key.ID()+" "+q.Self)
	if q.Ask != nil {
		c.asks = append(c.asks, *q.Ask)
	}
	p := c.parts[q.Self]
	c.mu.Unlock()
	if p == nil {
		return specialist.Answer{}, fmt.Errorf("%s has no part", q.Self)
	}
	return p(ctx, q)
}

func (c *cast) registry() strategies.Registry {
	r := strategies.Registry{}.WithProposer("fn", specialist.ProposerFunc(c.ask))
	for _, name := range []string{"judge", "other"} {
		r = r.WithArbiter(name, role{c, name})
	}
	return r
}

// Proposer implements [strategies.Resolver].
func (c *cast) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	return specialist.ProposerFunc(c.ask), nil
}

// Arbiter implements [strategies.Resolver].
func (c *cast) Arbiter(_ *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	return role{c, s.SpecialistID}, nil
}

// Context implements [strategies.Resolver].
func (c *cast) Context(_ *machine.Machine, s *machine.Specialist) (specialist.Context, error) {
	if s.ContextWebhookURL == "" {
		return nil, nil
	}
	return strategies.SessionContext, nil
}

// A role is an arbiter of the cast.
type role struct {
	*cast
	name string
}

// judge gives an arbiter its part.
func (c *cast) judge(name string, a arbiter.Arbiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arbiters[name] = a
}

// Decide implements arbiter.Arbiter.
func (r role) Decide(ctx context.Context, round *arbiter.Round) (arbiter.Decision, error) {
	r.mu.Lock()
	r.asked = append(r.asked, r.name)
	r.calls = append(r.calls, round.Key.ID()+" "+r.name)
	if round.Ask != nil {
		r.asks = append(r.asks, *round.Ask)
	}
	a := r.arbiters[r.name]
	r.mu.Unlock()
	if a == nil {
		return arbiter.Decision{}, fmt.Errorf("%s has no part", r.name)
	}
	return a.Decide(ctx, round)
}

// electFirst elects the proposal that stands first.
var electFirst = arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	return arbiter.Elect(0, "the first will do"), nil
})

// electNone never elects.
var electNone = arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
	return arbiter.None("not sure"), nil
})

// A contested store lets somebody act just before a commit.
type contested struct {
	session.Store
	mu     sync.Mutex
	before func(*session.Change) error
}

// Commit implements session.SessionStore.
func (c *contested) Commit(ctx context.Context, change *session.Change) error {
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if before != nil {
		if err := before(change); err != nil {
			return err
		}
	}
	return c.Store.Commit(ctx, change)
}

func (c *contested) on(before func(*session.Change) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

// once has f called before the next commit that holds an event of that kind, and
// before no other.
func (c *contested) once(kind string, f func()) {
	c.on(func(change *session.Change) error {
		if !holds(change, kind) {
			return nil
		}
		c.on(nil)
		f()
		return nil
	})
}

func holds(c *session.Change, kind string) bool {
	return slices.ContainsFunc(c.Events, func(e session.Event) bool { return e.Data.Kind() == kind })
}
