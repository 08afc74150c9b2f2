package claude

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// A session is one process. One goroutine reads what it says (line) and alone keeps what the
// turn has come to; what others ask of it is under mu.
type session struct {
	spec    agent.Spec
	id      string // the program's own
	process *process.Process
	send    func(line []byte) error // to the process
	started chan struct{}           // closed once both are set
	queue   *process.Queue
	gone    chan struct{} // closed once the last event was read

	mu       sync.Mutex
	version  string
	model    string
	refused  string // what a program that would not open said
	requests map[string]chan response
	open     map[string]question // that the host has not answered, by the id of its request
	quiet    chan struct{}       // closed when the running turn has ended; nil: none runs
	closing  bool
	meter    meter

	// Of the reading goroutine:
	turn turn
	uses map[string]use    // of tools, by their ids
	subs map[string]string // the use that started a subagent, by the id of that
}

// A turn is what the running one has come to.
type turn struct {
	prompted bool // a message has led to it
	text     string
	fatal    agent.Outcome // why it was interrupted by us, if it was
	problem  string
}

// A use is that of a tool.
type use struct {
	parent string // the use that started the subagent that it is of
	began  time.Time
}

func newSession(spec agent.Spec, events chan<- agent.Event) *session {
	s := &session{spec: spec, id: spec.Resume, started: make(chan struct{}), queue: process.NewQueue(spec.ID, events), gone: make(chan struct{}),
		requests: map[string]chan response{}, open: map[string]question{}, uses: map[string]use{}, subs: map[string]string{}}
	if s.id == "" {
		s.id = newUUID()
	}
	return s
}

// Send writes a message to the program.
func (s *session) Send(_ context.Context, m agent.Message) error {
	if m.Content == "" {
		return errors.New("send: the message is empty")
	}
	priority, ok := map[agent.Delivery]string{"": "next", agent.Steer: "next", agent.After: "later", agent.Now: "now"}[m.Deliver]
	if !ok {
		return fmt.Errorf("send: no delivery %q: use steer, after or now", m.Deliver)
	}
	if m.ID == "" {
		m.ID = newUUID()
	}
	return s.write(map[string]any{"type": "user", "uuid": m.ID, "priority": priority, "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": m.Content}})
}

func (s *session) write(line any) error { return s.send(encode(line)) }

// Interrupt ends the running turn.
func (s *session) Interrupt(context.Context) error {
	s.mu.Lock()
	running := s.quiet != nil
	s.mu.Unlock()
	if !running {
		return s.alive()
	}
	return s.interrupt()
}

func (s *session) interrupt() error {
	return s.write(map[string]any{"type": "control_request", "request_id": newUUID(), "request": map[string]any{"subtype": "interrupt"}})
}

func (s *session) alive() error {
	select {
	case <-s.process.Gone():
		return agent.ErrClosed
	default:
		return nil
	}
}

// Close ends the process. With a permission open it is killed at once: a program that finds its
// host gone would ask the model once more.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	quiet, asked := s.quiet, false
	for _, q := range s.open {
		asked = asked || q.permission
	}
	s.mu.Unlock()
	if quiet != nil && !asked {
		_ = s.interrupt() // an error says that it has ended
	}
	if err := s.process.Close(ctx, quiet, asked); err != nil {
		return fmt.Errorf("claude: %w", err)
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("claude: close %s: %w", s.spec.ID, ctx.Err())
	}
}

// watch tells how the session ended, once its process has.
func (s *session) watch() {
	defer close(s.gone)
	<-s.process.Gone()
	exit := s.process.Exit()
	s.mu.Lock()
	running, closing := s.quiet != nil, s.closing
	for id, q := range s.open {
		if q.permission {
			s.queue.Add(agent.Withdrawn{ID: id})
		}
	}
	clear(s.open)
	s.mu.Unlock()
	if errors.Is(exit.Err, process.ErrLineTooLong) {
		s.queue.Add(agent.Failed{Code: "line_too_long", Message: exit.Err.Error()})
	}
	if running {
		done := agent.Done{Outcome: agent.Crashed, Text: s.turn.text, Problem: fmt.Sprintf("the program ended (%d %s)", exit.Code, exit.Signal), AgentSession: s.id, Unprompted: !s.turn.prompted}
		if closing {
			done.Outcome = agent.Cancelled
		}
		s.queue.Add(done)
	}
	s.queue.End(agent.Exited{Code: exit.Code, Signal: exit.Signal, Left: exit.Left})
}

// log tells what the program says that is no part of its protocol.
func (s *session) log(stream, text string) {
	s.mu.Lock()
	if s.version == "" && s.refused == "" { // it has not opened
		s.refused = text
	}
	s.mu.Unlock()
	if s.process != nil {
		text = s.process.Masked(text)
	}
	s.queue.Tell(agent.Log{Stream: stream, Text: text})
}
