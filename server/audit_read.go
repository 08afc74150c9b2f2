package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// What the audit log says of requests that change nothing. A read that shows payload is in it
// before it is answered, once a minute for each subject and target; the operation that asked
// for the permission is what notes it, so that none can be left out. Requests without a
// credential that is known are counted, by address and minute.

// notes are what was noted in the present minute, and what is to be written of it.
type notes struct {
	mu      sync.Mutex
	tenant  string // whose entries those are of whom nobody knows
	minute  specialist.Time
	reads   map[[3]string]bool // by tenant, subject and target
	refused map[string]int64   // by address
}

const (
	minute       = specialist.Time(60 * 1000)
	maxAddresses = 10_000 // counted by themselves in a minute
	otherAddress = "other"
)

// turn begins the minute of a moment, and returns the entries about the one before. The caller
// holds mu.
func (n *notes) turn(now specialist.Time) (over []control.Entry) {
	if begin := now - now%minute; begin != n.minute {
		for address, count := range n.refused {
			over = append(over, control.Entry{At: n.minute, Tenant: n.tenant, Address: address, Operation: "unauthenticated", Count: count, Result: http.StatusText(http.StatusUnauthorized)})
		}
		n.minute, n.reads, n.refused = begin, map[[3]string]bool{}, map[string]int64{}
	}
	return over
}

// read notes that somebody reads payload, and reports whether that is new.
func (n *notes) read(e *control.Entry) (fresh bool, over []control.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	over = n.turn(e.At)
	key := [3]string{e.Tenant, e.Subject, e.Target}
	fresh = !n.reads[key]
	n.reads[key] = true
	return fresh, over
}

// refuse counts a request without a credential that is known.
func (n *notes) refuse(address string, now specialist.Time) (over []control.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	over = n.turn(now)
	if n.refused[address] == 0 && len(n.refused) >= maxAddresses {
		address = otherAddress
	}
	n.refused[address]++
	return over
}

// forget has a read noted again, of which nothing was written.
func (n *notes) forget(e *control.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.reads, [3]string{e.Tenant, e.Subject, e.Target})
}

// noteRead writes that payload is read.
func (s *Server) noteRead(ctx context.Context, e control.Entry) error {
	fresh, entries := s.notes.read(&e)
	if fresh {
		e.Result = http.StatusText(http.StatusOK)
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil
	}
	err := s.config.Control.Commit(ctx, control.Changes{Entries: entries})
	if err != nil && fresh {
		s.notes.forget(&e)
	}
	return err
}

// noteRefused counts a request without a credential that is known.
func (s *Server) noteRefused(r *http.Request) {
	s.writeCounts(r.Context(), s.notes.refuse(addressOf(r), s.now()))
}

// writeCounts writes how many requests of a minute had no credential that is known.
func (s *Server) writeCounts(ctx context.Context, over []control.Entry) {
	if len(over) == 0 {
		return
	}
	if err := s.config.Control.Commit(context.WithoutCancel(ctx), control.Changes{Entries: over}); err != nil {
		s.config.Log.Error("requests without a credential are not recorded", "error", err)
	}
}

// count writes the counts of each minute until ctx ends, and then those of the last one.
func (s *Server) count(ctx context.Context) {
	ticks := time.NewTicker(time.Minute)
	defer ticks.Stop()
	for over := false; !over; {
		at := s.now()
		select {
		case <-ctx.Done():
			over, at = true, at+minute
		case <-ticks.C:
			at = s.now()
		}
		s.notes.mu.Lock()
		entries := s.notes.turn(at)
		s.notes.mu.Unlock()
		s.writeCounts(ctx, entries)
	}
}
