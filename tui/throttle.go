package tui

import (
	"sync"
	"time"

	"github.com/dialai/dialai/undertaking"
)

// frame is the shortest time between two states that are shown.
const frame = time.Second / 60

// A throttle hands on, at most once a frame, what is newest of the states that came meanwhile, and
// all lines, in their order.
type throttle struct {
	give    func(news)
	mu      sync.Mutex
	next    news
	waiting bool
	stopped bool
}

// A news is what came since the frame before.
type news struct {
	now   *Now // nil if nothing is new
	lines []undertaking.Line
}

func newThrottle(give func(news)) *throttle { return &throttle{give: give} }

func (t *throttle) put(add func(*news)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if add(&t.next); t.waiting || t.stopped {
		return
	}
	t.waiting = true
	time.AfterFunc(frame, t.flush)
}

func (t *throttle) flush() {
	t.mu.Lock()
	n, stopped := t.next, t.stopped
	t.next, t.waiting = news{}, false
	t.mu.Unlock()
	if !stopped {
		t.give(n)
	}
}

// stop hands on nothing more, and returns what was not.
func (t *throttle) stop() news {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.next
	t.next, t.stopped = news{}, true
	return n
}
