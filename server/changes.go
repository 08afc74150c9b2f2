package server

import (
	"sync"

	"github.com/dialai/dialai/specialist"
)

// changes tells who waits for a session that something was committed to it. A waiter is no
// queue: it is told that there is something new, and reads what from the store, so that one
// who is slow holds nobody up and costs nothing.
type changes struct {
	follow func() (leave func()) // the store, while anybody waits; nil if only this process writes it

	mu      sync.Mutex
	waiters map[specialist.SessionID]map[chan struct{}]bool
}

// watch returns a channel that has an element whenever the session has changed since the
// last one was taken, and what ends that.
func (c *changes) watch(id specialist.SessionID) (changed <-chan struct{}, end func()) {
	ch, leave := make(chan struct{}, 1), func() {}
	if c.follow != nil {
		leave = c.follow()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiters == nil {
		c.waiters = map[specialist.SessionID]map[chan struct{}]bool{}
	}
	if c.waiters[id] == nil {
		c.waiters[id] = map[chan struct{}]bool{}
	}
	c.waiters[id][ch] = true
	return ch, func() {
		leave()
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.waiters[id], ch); len(c.waiters[id]) == 0 {
			delete(c.waiters, id)
		}
	}
}

// anySession is watched by whoever is to be told of all.
var anySession specialist.SessionID

func (c *changes) tell(id specialist.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wake(c.waiters[id])
	wake(c.waiters[anySession])
}

func (c *changes) tellAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiters := range c.waiters {
		wake(waiters)
	}
}

func wake(waiters map[chan struct{}]bool) {
	for ch := range waiters {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
