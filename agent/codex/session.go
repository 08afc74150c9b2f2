package codex

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
	"github.com/dialai/dialai/agent/internal/rpc"
)

// A session is one process with one thread.
type session struct {
	spec    agent.Spec
	info    agent.Info
	thread  string // the program's id of the session
	process *process.Process
	peer    rpc.Peer      // of the process
	started chan struct{} // closed once both are set
	queue   *process.Queue
	gone    chan struct{} // closed once the last event was read

	mu       sync.Mutex
	open     map[string]question // that the host has not answered, by the id of the event
	turn     string              // that runs; "" is none
	starting bool                // one was asked for, and has no id yet
	inside   []string            // messages that the turn has taken
	early    []agent.Message     // that steer a turn which has no id yet
	later    []agent.Message     // that have turns of their own, afterwards
	quiet    chan struct{}       // closed when the turn has ended; nil: none runs
	closing  bool

	// Of the reading goroutine:
	text  string
	items map[string]item
}

func newSession(spec agent.Spec, events chan<- agent.Event) *session {
	return &session{spec: spec, started: make(chan struct{}), queue: process.NewQueue(spec.ID, events), gone: make(chan struct{}),
		open: map[string]question{}, items: map[string]item{}}
}

// Send says something: in the running turn, or in one of its own.
func (s *session) Send(_ context.Context, m agent.Message) error {
	switch {
	case m.Content == "":
		return errors.New("send: the message is empty")
	case m.Deliver == agent.Now:
		return errors.New("send: codex ends no turn for a message: interrupt it, or use steer or after")
	case m.Deliver != "" && m.Deliver != agent.Steer && m.Deliver != agent.After:
		return fmt.Errorf("send: no delivery %q: use steer or after", m.Deliver)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	s.queue.Add(agent.Receipt{MessageID: m.ID, State: agent.Queued})
	switch idle := s.turn == "" && !s.starting; {
	case idle:
		s.begin(m)
	case m.Deliver == agent.After:
		s.later = append(s.later, m)
	case s.turn == "":
		s.early = append(s.early, m)
	default:
		s.steer(m)
	}
	return nil
}

func (s *session) alive() error {
	select {
	case <-s.process.Gone():
		return agent.ErrClosed
	default:
		return nil
	}
}

// begin asks for a turn. mu is held.
func (s *session) begin(m agent.Message) {
	s.starting, s.inside = true, []string{m.ID}
	s.quiet = make(chan struct{})
	s.peer.Ask("turn/start", map[string]any{"threadId": s.thread, "input": input(m.Content)}, func(r rpc.Reply) {
		if r.Error == nil {
			return // turn/started follows
		}
		s.mu.Lock()
		quiet := s.quiet
		s.starting, s.quiet = false, nil
		s.mu.Unlock()
		s.queue.Tell(agent.TurnStarted{})
		s.queue.Tell(agent.Failed{Code: string(agent.Provider), Message: r.Error.Message})
		s.queue.Tell(agent.Done{Outcome: agent.Provider, Problem: r.Error.Message, AgentSession: s.thread})
		close(quiet)
	})
}

// steer puts a message into the running turn; if that has just ended, the message gets its own.
// mu is held.
func (s *session) steer(m agent.Message) {
	s.peer.Ask("turn/steer", map[string]any{"threadId": s.thread, "expectedTurnId": s.turn, "input": input(m.Content)}, func(r rpc.Reply) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case r.Error == nil:
			s.inside = append(s.inside, m.ID)
			s.queue.Add(agent.Receipt{MessageID: m.ID, State: agent.Started})
		case s.turn == "" && !s.starting:
			s.begin(m)
		default:
			s.later = append(s.later, m)
		}
	})
}

// tellLater puts words of the host's into the running turn, which are no message of a user.
func (s *session) tellLater(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != "" {
		s.peer.Ask("turn/steer", map[string]any{"threadId": s.thread, "expectedTurnId": s.turn, "input": input(text)}, func(rpc.Reply) {})
	}
}

func input(text string) any { return []any{map[string]any{"type": "text", "text": text}} }

// Interrupt ends the running turn.
func (s *session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	if s.turn != "" {
		s.peer.Ask("turn/interrupt", map[string]any{"threadId": s.thread, "turnId": s.turn}, func(rpc.Reply) {})
	}
	return nil
}

// Close ends the process.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	quiet, asked := s.quiet, false
	for _, q := range s.open {
		asked = asked || q.permission
	}
	s.mu.Unlock()
	if quiet != nil && !asked {
		_ = s.Interrupt(ctx) // an error says that it has ended
	}
	if err := s.process.Close(ctx, quiet, asked); err != nil {
		return fmt.Errorf("codex: %w", err)
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("codex: close %s: %w", s.spec.ID, ctx.Err())
	}
}

// watch tells how the session ended, once its process has.
func (s *session) watch() {
	defer close(s.gone)
	<-s.process.Gone()
	exit := s.process.Exit()
	s.withdraw()
	if errors.Is(exit.Err, process.ErrLineTooLong) {
		s.queue.Add(agent.Failed{Code: "line_too_long", Message: exit.Err.Error()})
	}
	s.mu.Lock()
	running, closing := s.turn != "", s.closing
	s.mu.Unlock()
	if running {
		done := agent.Done{Outcome: agent.Crashed, Text: s.text, Problem: fmt.Sprintf("the program ended (%d %s)", exit.Code, exit.Signal), AgentSession: s.thread}
		if closing {
			done.Outcome = agent.Cancelled
		}
		s.queue.Add(done)
	}
	s.queue.End(agent.Exited{Code: exit.Code, Signal: exit.Signal, Left: exit.Left})
}

// withdraw takes back what was asked: the turn that did has ended.
func (s *session) withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, q := range s.open {
		if q.permission {
			s.queue.Add(agent.Withdrawn{ID: id})
		}
	}
	clear(s.open)
}
