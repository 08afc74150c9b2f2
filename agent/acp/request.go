package acp

import (
	"context"
	"fmt"
	"time"

	"github.com/dialai/dialai/agent"
)

// A question is what the host is to answer.
type question struct {
	permission bool
	reply      func(agent.Reply)
	cancel     func() // mu is held
}

// An option is how a permission may be answered.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// Answer answers what was asked.
func (s *session) Answer(_ context.Context, r agent.Reply) error {
	s.mu.Lock()
	q, open := s.open[r.To]
	delete(s.open, r.To)
	s.mu.Unlock()
	if !open {
		if err := s.alive(); err != nil {
			return err
		}
		return fmt.Errorf("answer %s: %w", r.To, agent.ErrStale)
	}
	q.reply(r)
	return nil
}

// request is what the program asks; id is its own, as JSON. The client has neither files nor
// terminals to offer.
func (s *session) request(id, method string, p params) {
	switch {
	case method != "session/request_permission":
		s.peer.Unsupported(id, method)
	case !s.mine(p.Session) || !s.working():
		s.decide(id, "")
	default:
		s.permission(id, p)
	}
}

// working reports whether a turn runs that was not interrupted.
func (s *session) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil && !s.cancelled
}

// put keeps a question until the host answers it, and returns its id. Those of the program may come
// twice. mu is held.
func (s *session) put(kind string, q question) string {
	s.puts++
	id := fmt.Sprintf("%s-%d", kind, s.puts)
	s.open[id] = q
	return id
}

// decide answers a permission with one of its options; "" is cancelled.
func (s *session) decide(id, option string) {
	outcome := map[string]any{"outcome": "cancelled"}
	if option != "" {
		outcome = map[string]any{"outcome": "selected", "optionId": option}
	}
	s.peer.Respond(id, map[string]any{"outcome": outcome})
}

// permission has the host say whether a tool may be used, once. Where the agent offers no way to
// allow it once, it is not allowed.
func (s *session) permission(id string, p params) {
	s.endText()
	c := p.ToolCall
	s.mu.Lock()
	u, known := s.uses[c.ID]
	if known {
		u.merge(c)
		c = u.toolCall
	} else { // it is told later
		u = use{toolCall: c, began: time.Now()}
	}
	u.asked = true
	tell := known && !u.told && !c.own(s.spec.Tools)
	if u.told = u.told || tell; c.ID != "" {
		s.uses[c.ID] = u
	}
	s.mu.Unlock()
	if tell { // whoever is asked hears first what is used
		tool, input := c.what()
		s.queue.Tell(agent.ToolUse{ID: c.ID, Tool: tool, Input: input})
	}
	once, never := pick(p.Options, "allow_once"), pick(p.Options, "reject_once")
	if c.own(s.spec.Tools) {
		s.decide(id, once)
		return
	}
	tool, input := c.what()
	if !s.may(tool) {
		s.mu.Lock()
		s.reasons = append(s.reasons, tool+": you have no such tool")
		s.mu.Unlock()
		s.decide(id, never)
		return
	}
	q := question{permission: true, cancel: func() { s.decide(id, "") }, reply: func(a agent.Reply) {
		if a.Allow && once != "" {
			s.decide(id, once)
			return
		}
		s.mu.Lock()
		if a.Reason != "" {
			s.reasons = append(s.reasons, tool+": "+a.Reason)
		}
		s.mu.Unlock()
		s.decide(id, never)
	}}
	s.mu.Lock()
	ask := s.put("ask", q)
	s.mu.Unlock()
	s.queue.Tell(agent.Permission{ID: ask, Tool: tool, Input: input, ToolUseID: c.ID})
}

func pick(options []option, kind string) string {
	for _, o := range options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}
