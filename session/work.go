package session

import (
	"context"
	"errors"
	"time"

	"github.com/dialai/dialai/specialist"
)

// How several processes carry the sessions of one store on. The store hands each live session
// out to one process at a time, when a step would do something with it: that is a lease. It
// saves work and decides nothing. A process that has lost a lease without knowing it harms
// nobody, for its commits meet the compare-and-swap that all commits meet.

// ErrOwnerLost: the store has not heard of this process for so long that others may take it
// for dead. What it was doing under its name ends; it goes on under another.
var ErrOwnerLost = errors.New("the store has not heard of this process for too long, and others may have taken over")

// A WorkStore is a store that hands its live sessions out to processes that carry them on. A
// store without is driven by one process at a time.
type WorkStore interface {
	// Join makes this process one of those to which sessions are handed out, under a new name. It
	// returns a NewerError if this program is too old for the store.
	Join(ctx context.Context) (Worker, error)
	// Workers lists the processes that have joined and live, in the order in which they did.
	Workers(ctx context.Context) ([]WorkerInfo, error)
	// Quarantined lists the sessions that are handed out to nobody any more, for their steps
	// have failed, or ended their process, again and again; those first that were started first: at most so
	// many, 0 for all, of those that were started after a session of the store; the zero SessionID stands before all.
	Quarantined(ctx context.Context, after specialist.SessionID, limit int) ([]Quarantined, error)
	// Free hands a session out again that is quarantined, as a commit by a human does. Any other
	// session is left as it is.
	Free(ctx context.Context, id specialist.SessionID) error
}

// A Worker is this process as one to which sessions are handed out. Its methods may be called
// concurrently.
type Worker interface {
	// Claim leases sessions with which a step would do something now, of those of each machine
	// the ones that have waited longest; none is no error. It returns ErrOwnerLost once Lost is closed,
	// and a NewerError once this program is too old for the store; what it has leased it still has.
	Claim(ctx context.Context, want Wanted) ([]Lease, error)
	// Release gives leased sessions back. One that is not leased any more is left as it is. If it
	// fails, the sessions are handed out again before long, at whatever time.
	Release(ctx context.Context, releases ...Release) error
	// News has a value when there may be a session to claim that was not there before. What it
	// has missed a claim once a second finds.
	News() <-chan struct{}
	// Lost is closed when the leases may be others' already: whatever is under way with those
	// sessions ends, and whoever wants to go on joins again. It may be after Close.
	Lost() <-chan struct{}
	// Close releases whatever is leased, and leaves.
	Close(ctx context.Context) error
}

// Wanted says how many sessions a process claims.
type Wanted struct {
	Sessions int // at most; above 0
	// PerMachine is how many of one machine it may have at most; 0 for any number. Held is how
	// many it has of each; nil for none.
	PerMachine int
	Held       map[string]int
}

// A Lease is a session that this process alone carries on, until it is released.
type Lease struct {
	Session     specialist.SessionID
	MachineName string
	Sequence    int64 // of the last event that is stored
	Failures    int   // how often in a row a step has failed
	Crashes     int   // how often in a row a process has ended that had leased it
}

// A Release says how a leased session is given back.
type Release struct {
	Session  specialist.SessionID
	Sequence int64 // of the last event that was looked at: if it has gone on since, it is ready at once
	// After is how long it takes until a step does something; below 0 for ever, unless somebody
	// commits.
	After time.Duration
	// Failed is why its step has failed; "" if it has not. Then it is handed out later each time,
	// in place of After, and to nobody any more after the eighth time in a row.
	Failed string
	// Undriven says that it is for another driver, or for none: it is not handed out again until that changes.
	Undriven bool
	// Elsewhere is for how long it is not handed out to this process, which lacks something that
	// others may have; 0 for not at all. Where there are many, the process may be handed out none of their
	// machine so long.
	Elsewhere time.Duration
}

// A Clock is a store that has a clock, by which several processes go: what is due to one is due to all.
type Clock interface {
	// Now returns what time it is by that clock, from what this process knows of it, whatever happens to its own.
	// It asks nobody.
	Now() time.Time
	// Skew returns how far the clock of this process is ahead of it; below 0 if it is behind.
	Skew() time.Duration
}

// MaxSkew is how far the clock of a process may be off before its operator is told.
const MaxSkew = 2 * time.Second

// A WorkerInfo is a process to which sessions are handed out.
type WorkerInfo struct {
	Name   string          `json:"name"`
	About  string          `json:"about"`  // where it runs
	Until  specialist.Time `json:"until"`  // when it is dead unless it is heard of again
	Leases int             `json:"leases"` // sessions that it carries on
	// SkewMsec is how far its clock is ahead of the store's, in ms; below 0 if it is behind. It goes by the store's.
	SkewMsec int64 `json:"skewMsec"`
}

// A Quarantined session is one that is handed out to nobody.
type Quarantined struct {
	Session     specialist.SessionID `json:"sessionId"`
	MachineName string               `json:"machineName"`
	Reason      string               `json:"reason"`
	Failures    int                  `json:"failures,omitempty"` // of steps in a row
	Crashes     int                  `json:"crashes,omitempty"`  // of processes in a row that carried it on
}

// A Watcher is a store that knows when a session has changed.
type Watcher interface {
	// Watch returns once the session has an event after the one with that sequence number,
	// committed by whomever, or ctx is done, whose error it returns then. It may return before.
	// It returns ErrNotFound for an unknown session.
	Watch(ctx context.Context, id specialist.SessionID, after int64) error
}
