package backtest

import (
	"context"
	"iter"

	"github.com/dialai/dialai/session"
)

// batch is how many records are read before they are handed on.
const batch = 256

// A stretch is some records of a log, in order.
type stretch struct {
	entries []session.LogEntry
	text    []byte // of their events
	err     error  // that ended the log
}

// ahead yields a log that is read on by a goroutine of its own while what was
// yielded is worked on: reading and deciding take about as long. The goroutine has
// ended when the sequence is left.
func ahead(ctx context.Context, log iter.Seq2[session.LogEntry, error]) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		read := make(chan *stretch, 2)
		go func() {
			defer close(read)
			fetch(ctx, log, read)
		}()
		defer func() {
			cancel()
			for range read {
				continue // until the goroutine has ended
			}
		}()
		for s := range read {
			for _, e := range s.entries {
				if !yield(e, nil) {
					return
				}
			}
			if s.err != nil {
				yield(session.LogEntry{}, s.err)
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(session.LogEntry{}, err)
		}
	}
}

// fetch reads a log in stretches.
func fetch(ctx context.Context, log iter.Seq2[session.LogEntry, error], read chan<- *stretch) {
	s := &stretch{}
	send := func() bool {
		select {
		case read <- s:
		case <-ctx.Done():
			return false
		}
		s = &stretch{entries: make([]session.LogEntry, 0, batch), text: make([]byte, 0, cap(s.text))}
		return true
	}
	for e, err := range log {
		if s.err = err; err == nil {
			start := len(s.text)
			s.text = append(s.text, e.Events...)
			e.Events = s.text[start:len(s.text):len(s.text)]
			s.entries = append(s.entries, e)
		}
		if (err != nil || len(s.entries) == batch) && !send() {
			return
		}
	}
	send()
}
