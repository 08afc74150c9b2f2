// Package lessons follows what the store of an engine has learned: ledgers of trust that
// grow with it, what is kept beside them, and what a session remembers.
package lessons

import (
	"context"
	"sync"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A Follower follows the lessons of one store: each call reads those that have come since
// the last one, the first one those after the newest snapshot (see [Fold]). What it hands out is
// never changed again. It may be used concurrently.
type Follower struct {
	mu       sync.Mutex
	replaced int64 // how often the store was when what follows began to be read
	now      *Fold // nil before the first call of Read
	proven   map[stateKey]*proven
}

// New returns a Follower that has read nothing yet.
func New() *Follower { return &Follower{proven: map[stateKey]*proven{}} }

// Read returns the ledger with every lesson whose commit returned before the call, and
// the place of the newest. Where it fails, what it has read so far need not be read again.
func (f *Follower) Read(ctx context.Context, s session.TrustStore) (*trust.Ledger, int64, error) {
	now, err := f.newest(ctx, s)
	if keeper, ok := s.(session.LedgerKeeper); ok && now.due != nil && session.Replaced(s) == now.replaced {
		_ = keeper.KeepLedger(ctx, now.due.Snapshot()) // without it the next process folds more
	}
	return now.ledger, now.place, err
}

// ReadAhead reads the lessons that have come, and makes the fits that the next judgements by them
// need (see [trust.Ledger.Prepare]), for whoever has nothing else to do: the next decision then waits for
// neither, and is none other. It does nothing before the first call of Read.
func (f *Follower) ReadAhead(ctx context.Context, s session.TrustStore) error {
	f.mu.Lock()
	begun := f.now != nil
	f.mu.Unlock()
	if !begun {
		return nil
	}
	ledger, _, err := f.Read(ctx, s)
	if err != nil {
		return err
	}
	ledger.Prepare()
	return nil
}

// A reading is what a store has taught.
type reading struct {
	ledger   *trust.Ledger
	place    int64
	due      *Fold // of which a snapshot is to be kept; nil if of none is. Nobody else waits for that
	replaced int64 // how often the store was
}

// newest reads the lessons that have come.
func (f *Follower) newest(ctx context.Context, s session.TrustStore) (reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		f.begin(s)
		now, err := f.read(ctx, s)
		if !f.outdated(s) {
			return now, err
		}
	}
}

// outdated reports whether what was read may be of what the store has not any more. f.mu is held.
func (f *Follower) outdated(s session.TrustStore) bool { return session.Replaced(s) != f.replaced }

// begin has everything read again of a store that was replaced. f.mu is held.
func (f *Follower) begin(s session.TrustStore) {
	if f.outdated(s) {
		f.now, f.proven, f.replaced = nil, map[stateKey]*proven{}, session.Replaced(s)
	}
}

// read is newest of a store that is not replaced meanwhile. f.mu is held.
func (f *Follower) read(ctx context.Context, s session.TrustStore) (now reading, err error) {
	if f.now == nil {
		f.now = resume(ctx, s)
	}
	others := f.now.ledger // may be read by others
	for lesson, err := range s.Lessons(ctx, f.now.place) {
		if err == nil {
			if f.now.ledger == others {
				f.now.ledger = others.Clone()
			}
			err = f.now.Learn(lesson)
		}
		if err != nil {
			return reading{}, err
		}
		if f.now.Due() {
			now.due = f.now.frozen()
		}
	}
	now.ledger, now.place, now.replaced = f.now.ledger, f.now.place, f.replaced
	return now, nil
}

// A stateKey names a state of a machine.
type stateKey struct{ machine, state string }

// Calibration returns the calibration of a machine, of the lessons that Read has read; of one of
// its states if state is not "".
func (f *Follower) Calibration(machineName, state string) (sum trust.Calibration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		return sum
	}
	for key, c := range f.now.calibrations {
		if key.machine == machineName && (state == "" || state == key.state) {
			sum = sum.Plus(c)
		}
	}
	return sum
}
