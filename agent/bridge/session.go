package bridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
)

const (
	// longestClose is how long a session may take to end; its processes are killed long before.
	longestClose = time.Minute
	// longestAnswer is how long the host may take for the result of a tool.
	longestAnswer = time.Minute
	// longestProbe is how long an agent may take to say how full its context is.
	longestProbe = 10 * time.Second
	// shortestSecret is how long a value of the environment is that is not shown.
	shortestSecret = 8
)

// now is the context of what takes no time: an agent is told something, and says what it makes of
// that by events.
var now = context.Background()

// A session is one of an agent, from its spawn to its exit.
type session struct {
	id, name string
	spawning
	spawn   command
	life    context.Context // until it is to end
	endLife context.CancelFunc
	live    agent.Session // nil until it has opened
	info    agent.Opened

	opening, closing bool
	mute             bool // the host was told that there is none
	deferred         []command
	deferredSize     int

	asks  map[string]bool        // permissions that the host has not given
	calls map[string]*time.Timer // of the host's tools, until they are late
	meter meter
	turn  turn
}

// A turn is what the running one has come to.
type turn struct {
	running  bool
	failed   bool // and the host was told why
	limited  bool // it was ended for its costs
	attempt  int  // of the provider, the last that failed
	decision json.RawMessage
}

func newSession(c command, sp spawning) *session {
	s := &session{id: c.id, name: sp.agent, spawning: sp, spawn: c, opening: true, asks: map[string]bool{}, calls: map[string]*time.Timer{},
		meter: meter{base: sp.spec.Base, levels: sp.levels}}
	s.life, s.endLife = context.WithCancel(context.Background())
	return s
}

// remove forgets a session that has ended.
func (b *bridge) remove(s *session) {
	s.settle()
	s.endLife()
	if s.meter.waits != nil {
		s.meter.waits.Stop()
	}
	delete(b.sessions, s.id)
	b.spawned = slices.DeleteFunc(b.spawned, func(o *session) bool { return o == s })
	b.catchUp(s) // there is no session any more
}

// settle forgets what the host was asked: nobody waits for it.
func (s *session) settle() {
	for _, t := range s.calls {
		t.Stop()
	}
	clear(s.calls)
	clear(s.asks)
}

// masked is a text without the values that the host gave the agent to keep.
func (s *session) masked(text string) string {
	for _, e := range s.spec.Env {
		if _, value, _ := strings.Cut(e, "="); len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}

// answer answers a command by what the agent said to it.
func (b *bridge) answer(s *session, c command, err error, result any) {
	switch {
	case err == nil:
		b.ok(c, s.id, result)
	case errors.Is(err, agent.ErrStale):
		b.refuse(c, fault{stale, "it is no longer asked"})
	case errors.Is(err, agent.ErrClosed):
		b.refuse(c, fault{unknownID, "the session has ended"})
	default:
		b.refuse(c, fault{unsupported, s.masked(err.Error())})
	}
}

type messageOK struct {
	MessageID string `json:"msg_id"`
}

// send says something to the agent, with the notice that it has not been given.
func (b *bridge) send(s *session, c command, m agent.Message) {
	if s.overspent() {
		b.refuse(c, fault{limit, fmt.Sprintf("the session has cost more than its budget of $%g", s.budget)})
		return
	}
	if m.ID == "" {
		m.ID = newUUID()
	}
	notice := s.meter.notice
	if notice != "" {
		m.Content += "\n\n" + notice
	}
	err := s.live.Send(now, m)
	if err == nil && notice != "" {
		s.meter.take()
	}
	b.answer(s, c, err, messageOK{m.ID})
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (b *bridge) toolResult(s *session, c command, r agent.Reply) {
	timer := s.calls[r.To]
	if timer == nil {
		b.refuse(c, fault{stale, "no tool waits for this call"})
		return
	}
	timer.Stop()
	delete(s.calls, r.To)
	b.answer(s, c, b.reply(s, r), nil)
}

// reply answers what an agent asked by a tool's result, with the notice that it has not been
// given.
func (b *bridge) reply(s *session, r agent.Reply) error {
	r.Notice = s.meter.take()
	return s.live.Answer(now, r)
}

func (b *bridge) approve(s *session, c command, r agent.Reply) {
	if !s.asks[r.To] {
		b.refuse(c, fault{stale, "no tool waits for this ask"})
		return
	}
	delete(s.asks, r.To)
	b.answer(s, c, s.live.Answer(now, r), nil)
}

func (b *bridge) interrupt(s *session) { _ = s.live.Interrupt(now) } // what has ended needs none

// probe answers how full the context is: by the agent, if it can be asked, else as it said last.
func (b *bridge) probe(s *session, c command) {
	meter, is := s.live.(agent.Meter)
	if !is || !s.info.Capabilities.Probe {
		b.ok(c, s.id, s.meter.event(s.meter.usage))
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(s.life, longestProbe)
		defer cancel()
		u, err := meter.Usage(ctx)
		b.post(func() {
			switch {
			case b.sessions[s.id] != s:
				b.refuse(c, fault{unknownID, "the session has ended"})
			case err != nil:
				b.ok(c, s.id, s.meter.event(s.meter.usage))
			default:
				b.ok(c, s.id, s.meter.event(u))
			}
		})
	}()
}

type listed struct {
	ID         string `json:"id"`
	Agent      string `json:"agent"`
	SessionID  string `json:"session_id"`
	State      string `json:"state"`
	ContextPct int    `json:"context_pct"`
}

// state says what a session is at.
func (s *session) state() string {
	switch {
	case s.closing:
		return "closing"
	case s.opening:
		return "opening"
	case len(s.asks)+len(s.calls) > 0:
		return "waiting"
	case s.turn.running:
		return "working"
	}
	return "idle"
}

func (b *bridge) list(c command) {
	all := []listed{}
	for _, s := range b.spawned {
		if !s.mute {
			name := s.name
			if s.info.Agent != "" {
				name = s.info.Agent
			}
			all = append(all, listed{s.id, name, s.info.AgentSession, s.state(), s.meter.pct()})
		}
	}
	b.ok(c, "", struct {
		Sessions []listed `json:"sessions"`
	}{all})
}
