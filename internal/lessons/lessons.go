// Package lessons follows what the store of an engine has learned: ledgers of trust that
// grow with it, what is kept beside them, and what a session remembers.
package lessons

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A Follower follows the lessons of one store: each call reads those that have come since
// the last one, the first one those after the newest snapshot (see [Fold]). What it hands out is
// never changed again. It may be used concurrently.
type Follower struct {
	mu     sync.Mutex
	now    *Fold // nil before the first call of Read
	proven map[stateKey]*proven
}

// New returns a Follower that has read nothing yet.
func New() *Follower { return &Follower{proven: map[stateKey]*proven{}} }

// Read returns the ledger with every lesson whose commit returned before the call, and
// the place of the newest. Where it fails, what it has read so far need not be read again.
func (f *Follower) Read(ctx context.Context, s session.TrustStore) (*trust.Ledger, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		f.now = resume(ctx, s)
	}
	var due *Fold
	others := f.now.ledger // may be read by others
	for lesson, err := range s.Lessons(ctx, f.now.place) {
		if err == nil {
			if f.now.ledger == others {
				f.now.ledger = others.Clone()
			}
			err = f.now.Learn(lesson)
		}
		if err != nil {
			return nil, 0, err
		}
		if f.now.Due() {
			due = f.now.frozen()
		}
	}
	if keeper, ok := s.(session.LedgerKeeper); ok && due != nil {
		_ = keeper.KeepLedger(ctx, due.Snapshot()) // without it the next process folds more
	}
	return f.now.ledger, f.now.place, nil
}

// A stateKey names a state of a machine.
type stateKey struct{ machine, state string }

// proven is the evidence for champions of one state.
type proven struct {
	after, place int64
	now          *trust.Ledger
	marks        Marks // only ever appended to, so that readers keep what they have
}

// Since returns a ledger of the outcomes of one state after a place, up to another, and the marks
// of its automatic decisions.
func (f *Follower) Since(ctx context.Context, s session.TrustStore, machineName, state string, after, upTo int64) (*trust.Ledger, Marks, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := stateKey{machineName, state}
	p := f.proven[key]
	if p == nil || p.after != after || p.place > upTo {
		p = &proven{after: after, place: after, now: trust.New()}
	}
	next := *p
	for x, err := range s.Lessons(ctx, p.place) {
		if err != nil {
			return nil, nil, err
		}
		if x.Seq > upTo {
			break
		}
		next.place = x.Seq
		if o := x.Outcome; o == nil || o.Machine != machineName || o.State != state {
			continue
		}
		if next.now == p.now {
			next.now = p.now.Clone() // others may be reading
		}
		if err := next.now.Learn(x); err != nil {
			return nil, nil, &session.CorruptError{What: "a lesson of state " + state, Problem: err.Error()}
		}
		next.note(x)
	}
	f.proven[key] = &next
	return next.now, slices.Clip(next.marks), nil // what comes later is appended behind them
}

// A Mark is what a human thought of one automatic decision.
type Mark struct {
	seq            int64
	Round          string
	Right, Unasked bool
	Prob           exact.Billionths // with which it was looked at
}

// Marks are those of one state, in the order of the lessons.
type Marks []Mark

// After returns the marks after a place.
func (m Marks) After(place int64) Marks {
	i, _ := slices.BinarySearchFunc(m, place+1, func(m Mark, seq int64) int { return cmp.Compare(m.seq, seq) })
	return m[i:]
}

// note enters what a lesson says of an automatic decision.
func (p *proven) note(x trust.Lesson) {
	if o := x.Outcome; o.Automatic {
		p.marks = append(p.marks, Mark{x.Seq, o.Round, o.Pick == o.Truth, o.Unasked, cmp.Or(o.SamplingProb, exact.One)})
	}
}

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
