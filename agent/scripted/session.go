package scripted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/agent"
)

// A session is one goroutine (run), which alone sends events, and a mailbox, into which
// everybody else puts what is for it. So nobody who says something waits for an event to be
// read.
type session struct {
	agent  *Agent
	spec   agent.Spec
	id     string // for Spec.Resume
	events chan<- agent.Event
	gone   chan struct{} // closed after Exited was read

	life context.Context // until Close or a crash
	end  context.CancelFunc

	mu      sync.Mutex
	mail    []*letter // that no turn has ended with, in the order of arrival
	woken   chan struct{}
	stop    context.CancelCauseFunc // of the running turn; nil: none runs
	replies map[string]chan agent.Reply
	usage   agent.Usage

	asked int  // events that waited for an answer, and tools used, which have ids
	spent bool // the context is full: no further turn does anything
}

// A letter is a message and what its receipts have told.
type letter struct {
	agent.Message
	told agent.ReceiptState
}

// errStopped is why a turn was cut off by Interrupt, or by a message that came first.
var errStopped = errors.New("the turn was interrupted")

func newSession(a *Agent, spec agent.Spec, id string, events chan<- agent.Event) *session {
	s := &session{agent: a, spec: spec, id: id, events: events, gone: make(chan struct{}),
		woken: make(chan struct{}, 1), replies: map[string]chan agent.Reply{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Send puts a message into the mailbox.
func (s *session) Send(_ context.Context, m agent.Message) error {
	if m.Content == "" {
		return errors.New("send: the message is empty")
	}
	if m.Deliver == "" {
		m.Deliver = agent.Steer
	}
	if !slices.Contains([]agent.Delivery{agent.Steer, agent.After, agent.Now}, m.Deliver) {
		return fmt.Errorf("send: no delivery %q: use steer, after or now", m.Deliver)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	s.mail = append(s.mail, &letter{Message: m})
	if m.Deliver == agent.Now {
		s.interrupt()
	}
	s.wake()
	return nil
}

func (s *session) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Answer answers what the turn waits for.
func (s *session) Answer(_ context.Context, r agent.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, asked := s.replies[r.To]
	if !asked {
		if s.life.Err() != nil {
			return agent.ErrClosed
		}
		return fmt.Errorf("answer %s: %w", r.To, agent.ErrStale)
	}
	delete(s.replies, r.To)
	reply <- r // has room for one
	return nil
}

// Interrupt cuts off the running turn.
func (s *session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	s.interrupt()
	return nil
}

func (s *session) interrupt() {
	if s.stop != nil {
		s.stop(errStopped)
	}
}

// Close ends the session.
func (s *session) Close(ctx context.Context) error {
	s.shut()
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w", s.spec.ID, ctx.Err())
	}
}

func (s *session) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// Usage tells what the newest turn said of the context.
func (s *session) Usage(context.Context) (agent.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.Usage{}, agent.ErrClosed
	}
	return s.usage, nil
}

// run is the session.
func (s *session) run() {
	defer close(s.gone)
	defer s.end()
	s.tell(agent.Opened{Info: s.agent.info(), AgentSession: s.id, Resumed: s.spec.Resume != ""})
	for {
		s.sort()
		if first := s.first(); first != nil {
			if s.turn(first) == crash {
				s.shut()
				s.tell(agent.Exited{Code: 1})
				return
			}
			continue
		}
		select {
		case <-s.woken:
		case <-s.life.Done():
			s.tell(agent.Exited{})
			return
		}
	}
}

func (s *session) tell(b agent.Body) {
	s.events <- agent.Event{Session: s.spec.ID, At: time.Now(), Body: b}
}

// first returns the message that begins the next turn: one that is to be first, else the
// oldest; nil if there is none or the session is to end.
func (s *session) first() *letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil || len(s.mail) == 0 {
		return nil
	}
	if i := slices.IndexFunc(s.mail, func(l *letter) bool { return l.Deliver == agent.Now }); i >= 0 {
		return s.mail[i]
	}
	return s.mail[0]
}

// sort tells of messages that have arrived.
func (s *session) sort() {
	for _, l := range s.letters(func(l *letter) bool { return l.told == "" }) {
		s.receipt(l, agent.Queued)
	}
}

// fold has the running turn take what is to go into it: the safe point of steering. One that
// was cut off takes nothing more: what was said then is for the next.
func (t *turn) fold() {
	t.sort()
	if t.ctx.Err() != nil {
		return
	}
	for _, l := range t.letters(func(l *letter) bool { return l.Deliver == agent.Steer && l.told == agent.Queued }) {
		t.receipt(l, agent.Started)
	}
}

// finish completes what the turn has taken.
func (s *session) finish() {
	s.sort()
	for _, l := range s.letters(func(l *letter) bool { return l.told == agent.Started }) {
		s.receipt(l, agent.Completed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mail = slices.DeleteFunc(s.mail, func(l *letter) bool { return l.told == agent.Completed })
}

func (s *session) letters(which func(*letter) bool) (found []*letter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.mail {
		if which(l) {
			found = append(found, l)
		}
	}
	return found
}

// receipt is called by run's goroutine only, which alone knows what was told.
func (s *session) receipt(l *letter, state agent.ReceiptState) {
	l.told = state
	s.tell(agent.Receipt{MessageID: l.ID, State: state})
}
