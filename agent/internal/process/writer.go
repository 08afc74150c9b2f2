package process

import (
	"io"
	"sync"

	"github.com/dialai/dialai/agent"
)

// A writer writes lines to a program that may be slow to read them, in a goroutine of its own.
type writer struct {
	to   io.WriteCloser
	done chan struct{}

	mu     sync.Mutex
	more   *sync.Cond
	lines  [][]byte
	closed bool
}

func newWriter(to io.WriteCloser) *writer {
	w := &writer{to: to, done: make(chan struct{})}
	w.more = sync.NewCond(&w.mu)
	go w.run()
	return w
}

// write takes a line, which must not be changed any more.
func (w *writer) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return agent.ErrClosed
	}
	w.lines = append(w.lines, line)
	w.more.Signal()
	return nil
}

// close ends the program's input, after what was written.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.more.Signal()
}

// abandon gives up what was not written yet, and waits for the goroutine.
func (w *writer) abandon() {
	w.close()
	_ = w.to.Close() // a write that waits returns
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer func() { _ = w.to.Close() }()
	for {
		line, ok := w.next()
		if !ok {
			return
		}
		if _, err := w.to.Write(append(line[:len(line):len(line)], '\n')); err != nil {
			w.close() // the program has ended, or reads no more
			return
		}
	}
}

func (w *writer) next() (line []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lines) == 0 && !w.closed {
		w.more.Wait()
	}
	if len(w.lines) == 0 {
		return nil, false
	}
	line, w.lines = w.lines[0], w.lines[1:]
	return line, true
}
