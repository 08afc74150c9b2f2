package process

import (
	"sync"
	"time"

	"github.com/dialai/dialai/agent"
)

// A Queue takes the events of a session and sends them in their order, in a goroutine of its
// own: so whoever answers an event can cause another while the first is still being read.
// It may be used concurrently.
type Queue struct {
	session string
	to      chan<- agent.Event
	done    chan struct{}

	mu     sync.Mutex
	change *sync.Cond
	events []agent.Event
	ended  bool
}

// crowded is how many events wait to be read when Tell begins to wait, too.
const crowded = 1000

// NewQueue returns a queue of the events of a session, which are sent once Start is called.
func NewQueue(session string, to chan<- agent.Event) *Queue {
	q := &Queue{session: session, to: to, done: make(chan struct{})}
	q.change = sync.NewCond(&q.mu)
	return q
}

// Start has the queue send its events, first before all that it has been told.
func (q *Queue) Start(first agent.Body) {
	q.mu.Lock()
	q.events = append([]agent.Event{q.event(first)}, q.events...)
	q.mu.Unlock()
	go q.run()
}

// Add adds an event and does not wait.
func (q *Queue) Add(b agent.Body) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(b)
}

// Tell adds an event, and waits while many have not been read: so a program is read no faster
// than its host can follow. It must not be called by whoever reads the events.
func (q *Queue) Tell(b agent.Body) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) > crowded && !q.ended {
		q.change.Wait()
	}
	q.add(b)
}

// End adds the last event, and returns when it was read.
func (q *Queue) End(last agent.Body) {
	q.mu.Lock()
	q.add(last)
	q.ended = true
	q.mu.Unlock()
	q.change.Broadcast()
	<-q.done
}

// Drop gives the events up: the session has not opened, and nobody reads them.
func (q *Queue) Drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.ended = nil, true
	q.change.Broadcast()
}

func (q *Queue) add(b agent.Body) {
	if q.ended {
		return
	}
	q.events = append(q.events, q.event(b))
	q.change.Broadcast()
}

func (q *Queue) event(b agent.Body) agent.Event {
	return agent.Event{Session: q.session, At: time.Now(), Body: b}
}

func (q *Queue) run() {
	defer close(q.done)
	for {
		e, ok := q.next()
		if !ok {
			return
		}
		q.to <- e
	}
}

func (q *Queue) next() (e agent.Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) == 0 {
		if q.ended {
			return e, false
		}
		q.change.Wait()
	}
	e, q.events = q.events[0], q.events[1:]
	q.change.Broadcast()
	return e, true
}
