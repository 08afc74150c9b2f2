package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
	"github.com/dialai/dialai/agent/internal/rpc"
)

// A session is one process with one session of the protocol.
type session struct {
	spec           agent.Spec
	info           agent.Info
	resumes, loads bool
	process        *process.Process
	peer           rpc.Peer      // of the process
	started        chan struct{} // closed once both are set
	queue          *process.Queue
	gone           chan struct{} // closed once the last event was read
	served         *server       // of the host's tools; nil if there are none

	mu      sync.Mutex
	session string              // the program's id
	persona string              // that the first prompt has yet to say
	reasons []string            // of refusals that the next prompt says
	open    map[string]question // that the host has not answered, by the id of the event
	turn    *agent.Message      // whose turn runs; nil is none
	later   []agent.Message
	quiet   chan struct{} // closed when the turn has ended; nil: none runs
	closing bool
	replays bool // the program tells what was before
	uses    map[string]use

	cancelled bool // the running turn was interrupted
	puts      int  // questions to the host, for their ids

	// Of the reading goroutine:
	usage   agent.Usage // as it was told last
	counted bool        // the agent counts its tokens itself
	before  float64     // what the session had cost before this process
	text    string      // of the message that is being said
	last    string      // the last one of the turn
	spoken  int         // messages, for their ids
}

func newSession(spec agent.Spec, events chan<- agent.Event) *session {
	return &session{spec: spec, peer: rpc.Peer{Version: "2.0"}, started: make(chan struct{}), queue: process.NewQueue(spec.ID, events), gone: make(chan struct{}),
		open: map[string]question{}, uses: map[string]use{}}
}

// Send says something, in a turn of its own.
func (s *session) Send(_ context.Context, m agent.Message) error {
	switch {
	case m.Content == "":
		return errors.New("send: the message is empty")
	case m.Deliver == agent.Now:
		return errors.New("send: the protocol ends no turn for a message: interrupt it, or use after")
	case m.Deliver != "" && m.Deliver != agent.Steer && m.Deliver != agent.After:
		return fmt.Errorf("send: no delivery %q: use after", m.Deliver)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	s.queue.Add(agent.Receipt{MessageID: m.ID, State: agent.Queued})
	if s.turn != nil {
		s.later = append(s.later, m)
		return nil
	}
	s.begin(m)
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

// begin prompts. mu is held.
func (s *session) begin(m agent.Message) {
	s.turn, s.quiet, s.cancelled = &m, make(chan struct{}), false
	text := m.Content
	if len(s.reasons) > 0 {
		text = "What was refused in the last turn, and why:\n- " + strings.Join(s.reasons, "\n- ") + "\n\n" + text
		s.reasons = nil
	}
	if s.persona != "" {
		text = s.persona + "\n\n" + text
		s.persona = ""
	}
	s.queue.Add(agent.TurnStarted{})
	s.queue.Add(agent.Receipt{MessageID: m.ID, State: agent.Started})
	s.peer.Ask("session/prompt", map[string]any{"sessionId": s.session, "prompt": []any{map[string]any{"type": "text", "text": text}}}, s.finish)
}

// finish ends the turn.
func (s *session) finish(r rpc.Reply) {
	s.endText()
	done := agent.Done{Outcome: agent.Finished, Text: s.last, AgentSession: s.session}
	s.last = ""
	if r.Error != nil {
		done.Outcome, done.Problem = agent.Provider, r.Error.Message
		if r.Error.Code == authRequired {
			done.Outcome = agent.Auth
		}
		s.queue.Tell(agent.Failed{Code: string(done.Outcome), Message: done.Problem, Retryable: done.Outcome == agent.Provider})
	} else {
		var end struct {
			StopReason string `json:"stopReason"`
			Usage      *bill  `json:"usage"`
		}
		_ = json.Unmarshal(r.Result, &end) // what cannot be read is no reason that is known
		s.count(end.Usage)
		done.Outcome = outcome(end.StopReason)
		if done.Outcome == agent.Provider {
			done.Problem = "the turn ended: " + end.StopReason
		}
	}
	s.withdraw()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		s.queue.Add(agent.Receipt{MessageID: s.turn.ID, State: agent.Completed})
	}
	s.queue.Add(done)
	quiet := s.quiet
	s.turn, s.quiet = nil, nil
	if len(s.later) > 0 && !s.closing {
		m := s.later[0]
		s.later = s.later[1:]
		s.begin(m)
	}
	if quiet != nil {
		close(quiet)
	}
}

// authRequired is the protocol's code of an agent that has no credentials.
const authRequired = -32000

// outcome says how a turn ended.
func outcome(stopReason string) agent.Outcome {
	switch {
	case stopReason == "end_turn":
		return agent.Finished
	case stopReason == "cancelled":
		return agent.Cancelled
	case strings.HasPrefix(stopReason, "max_"):
		return agent.Limit
	}
	return agent.Provider // refusal, and what is not known
}

// Interrupt ends the running turn: what it asks is not answered any more.
func (s *session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	if s.turn == nil {
		return nil
	}
	s.cancelled = true
	for id, q := range s.open {
		if q.permission {
			q.cancel()
			delete(s.open, id)
			s.queue.Add(agent.Withdrawn{ID: id})
		}
	}
	return s.peer.Notify("session/cancel", map[string]any{"sessionId": s.session})
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
	err := s.process.Close(ctx, quiet, asked)
	s.served.close()
	if err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("acp: close %s: %w", s.spec.ID, ctx.Err())
	}
}

// watch tells how the session ended, once its process has.
func (s *session) watch() {
	defer close(s.gone)
	<-s.process.Gone()
	s.served.close()
	exit := s.process.Exit()
	s.endText()
	s.withdraw()
	if errors.Is(exit.Err, process.ErrLineTooLong) {
		s.queue.Add(agent.Failed{Code: "line_too_long", Message: exit.Err.Error()})
	}
	s.mu.Lock()
	running, closing := s.turn != nil, s.closing
	s.mu.Unlock()
	if running {
		done := agent.Done{Outcome: agent.Crashed, Text: s.last, Problem: fmt.Sprintf("the program ended (%d %s)", exit.Code, exit.Signal), AgentSession: s.session}
		if closing {
			done.Outcome = agent.Cancelled
		}
		s.queue.Add(done)
	}
	s.queue.End(agent.Exited{Code: exit.Code, Signal: exit.Signal, Left: exit.Left})
}

// withdraw takes back what was asked: the turn that did has ended. Whoever asked is answered.
func (s *session) withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, q := range s.open {
		q.cancel()
		if q.permission {
			s.queue.Add(agent.Withdrawn{ID: id})
		}
	}
	clear(s.open)
}
