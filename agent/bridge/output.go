package bridge

import (
	"context"
	"io"
	"sync"
	"time"
)

// An output writes lines in their order, in a goroutine of its own, so that nobody who has
// something to say waits for the host. It may be used concurrently.
type output struct {
	w    io.Writer
	gone chan struct{} // closed once nothing can be written any more
	done chan struct{} // closed once nothing more is written

	mu       sync.Mutex
	change   *sync.Cond
	lines    [][]byte
	size     int // bytes that were not written yet
	written  int // bytes that were
	released bool
	closed   bool
	err      error
}

const (
	crowded = 8 << 20   // bytes that wait to be read when agents begin to wait, too
	unread  = 128 << 20 // and when the host is taken for gone
	piece   = 64 << 10  // of a line, that is written at once
	// patience is how long a host may read nothing at the end.
	patience = 10 * time.Second
)

func newOutput(w io.Writer) *output {
	o := &output{w: w, gone: make(chan struct{}), done: make(chan struct{})}
	o.change = sync.NewCond(&o.mu)
	go o.run()
	return o
}

// put adds a line, and does not wait.
func (o *output) put(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.lines = append(o.lines, line)
		o.size += len(line)
		o.change.Broadcast()
	}
}

// room waits while much has not been read, until stop is done.
func (o *output) room(stop context.Context) {
	o.mu.Lock()
	full := o.full()
	o.mu.Unlock()
	if !full {
		return
	}
	defer context.AfterFunc(stop, func() { // under mu, so that it is not missed
		o.mu.Lock()
		defer o.mu.Unlock()
		o.change.Broadcast()
	})()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.full() && stop.Err() == nil {
		o.change.Wait()
	}
}

// full reports whether agents are to wait. mu is held.
func (o *output) full() bool { return o.size > crowded && !o.released && o.err == nil }

// release ends that anybody waits for room.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = true
	o.change.Broadcast()
}

// check gives the host up that has not read what is by far too much.
func (o *output) check() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > unread {
		o.fail(errUnread)
	}
}

// fail gives the rest up. mu is held.
func (o *output) fail(err error) {
	if o.err == nil {
		o.err, o.lines, o.size = err, nil, 0
		close(o.gone)
		o.change.Broadcast()
	}
}

func (o *output) problem() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *output) run() {
	defer close(o.done)
	for {
		line := o.next()
		for len(line) > 0 {
			n, err := o.w.Write(line[:min(len(line), piece)])
			if !o.wrote(n, err) {
				return
			}
			line = line[n:]
		}
		if line == nil {
			return
		}
	}
}

// next returns the next line; nil if there is none any more.
func (o *output) next() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && !o.closed && o.err == nil {
		o.change.Wait()
	}
	if len(o.lines) == 0 {
		return nil
	}
	line := o.lines[0]
	o.lines[0] = nil
	o.lines = o.lines[1:]
	return line
}

func (o *output) wrote(n int, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return false
	}
	o.size -= n
	o.written += n
	o.change.Broadcast()
	if err != nil {
		o.fail(err)
	}
	return err == nil
}

// finish returns when all lines were written, or the host has read nothing for some time.
func (o *output) finish() error {
	o.mu.Lock()
	o.closed = true
	before, err := o.written, o.err
	o.mu.Unlock()
	o.change.Broadcast()
	if err != nil {
		return err // a write may still wait
	}
	for {
		timer := time.NewTimer(patience)
		select {
		case <-o.done:
			timer.Stop()
			return o.problem()
		case <-timer.C:
		}
		o.mu.Lock()
		now := o.written
		o.mu.Unlock()
		if now == before {
			return errUnread
		}
		before = now
	}
}
