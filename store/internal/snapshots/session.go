package snapshots

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
)

// Of a long session a store keeps what its log was folded into, so that a load reads that and the records
// behind it. A commit that is durable says whether it is time for one; it is then encoded and written in the
// background, and nobody waits for it. One that is lost costs time and nothing else.
//
// A snapshot is of a session that begins a round ([session.Change.Begins]), the newest of which is remembered
// beside the session. It is written once Every events have come since the one before, of a log with many
// events after one in 64 of them, so that what is written in all stays a multiple of the log; and where a
// session begins to wait for a human, who will load it, already after a quarter of that.

// Every is after how many events there is another snapshot.
const Every = 256

// A Session is a snapshot of a session.
type Session struct {
	ID       specialist.SessionID
	Sequence int64        // of the last event that is in it
	Head     session.Hash // of the record of that event
	Format   int          // of Body
	Body     []byte
}

// Row returns what is stored of s beside its sequence number, head and format.
func (s *Session) Row() (body, hash []byte) {
	h := s.hash()
	return pack.Block(s.Body), h[:]
}

func (s *Session) hash() session.Hash {
	return session.Chain(s.Head, fmt.Sprintf("session %s at %d in format %d", s.ID, s.Sequence, s.Format), s.Body)
}

// Read fills in the body from the row, or says what is wrong with it.
func (s *Session) Read(head, body, hash []byte) (err error) {
	if copy(s.Head[:], head); len(head) != len(s.Head) {
		return fmt.Errorf("its head is no hash")
	}
	if s.Body, err = pack.Unblock(body); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	if want := s.hash(); string(hash) != string(want[:]) {
		return fmt.Errorf("it is not what its hash says")
	}
	return nil
}

// Wrong says what is wrong with s if that is the session after the record with its last event; "" if
// nothing is, or s has a form that this program does not know.
func (s *Session) Wrong(is *session.Session, head session.Hash) string {
	switch {
	case s.Format != session.SnapshotFormat:
	case s.Head != head:
		return "it is of another log"
	case string(is.Snapshot()) != string(s.Body):
		return "it is not what the log up to there comes to"
	}
	return ""
}

// A Progress says how far the snapshots of a session are. The zero Progress is of one without.
type Progress struct {
	Kept  int64            // the sequence number of the newest; 0 if none is known
	begun *session.Session // the newest of which one may be made, since; nil if there is none
}

// After returns how far they are after a commit, and of what a snapshot is to be made now; nil for nothing.
func (p Progress) After(c *session.Change) (Progress, *session.Session) {
	if c.Begins() {
		p.begun = c.After
	}
	if p.begun == nil {
		return p, nil
	}
	since, every := p.begun.Sequence-p.Kept, max(Every, p.begun.Sequence/64)
	waits := c.After.Status == session.NeedsHuman && c.Before != nil && c.Before.Status != session.NeedsHuman
	if since < every && !(waits && since >= every/4) {
		return p, nil
	}
	return Progress{Kept: p.begun.Sequence}, p.begun
}

// A Keeper makes snapshots in the background, one after the other.
type Keeper struct {
	// Write writes one, unless the session is gone, or has ended: then payloads may have been erased.
	Write func(ctx context.Context, s *Session) error

	mu      sync.Mutex
	waiting []*session.Session
	running bool
	closed  bool
	idle    sync.WaitGroup
}

// patience is how long one may take to be written.
const patience = 5 * time.Second

// most is how many sessions wait for a snapshot at most: more are left out.
const most = 64

// Offer has a snapshot made of a committed session, unless s is nil or too many wait.
func (k *Keeper) Offer(s *session.Session) {
	if s == nil || s.Head == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || len(k.waiting) >= most {
		return
	}
	k.waiting = append(k.waiting, s)
	if !k.running {
		k.running = true
		k.idle.Go(k.run)
	}
}

func (k *Keeper) run() {
	for s := k.next(); s != nil; s = k.next() {
		body := s.Snapshot()
		if body == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := k.Write(ctx, &Session{ID: s.ID, Sequence: s.Sequence, Head: *s.Head, Format: session.SnapshotFormat, Body: body})
		if cancel(); err != nil { // nothing follows from it, but others would fail as it did
			k.mu.Lock()
			k.waiting = nil
			k.mu.Unlock()
		}
	}
}

func (k *Keeper) next() (s *session.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running = len(k.waiting) > 0; k.running {
		s, k.waiting = k.waiting[0], k.waiting[1:]
	}
	return s
}

// Close takes nothing any more, and waits until all is written.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.Wait()
}

// Wait waits until nothing waits any more.
func (k *Keeper) Wait() { k.idle.Wait() }
