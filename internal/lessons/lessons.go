// Package lessons follows what the store of an engine has learned: ledgers of trust that
// grow with it, what is kept beside them, and what a session remembers.
package lessons

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A Follower follows the lessons of one store: each call reads those that have come since
// the last one. What it hands out is never changed again. It may be used concurrently.
type Follower struct {
	mu    sync.Mutex
	now   *trust.Ledger
	place int64 // Lesson.Seq of the newest lesson in now

	proven map[stateKey]*proven
	marks  map[stateKey][]Mark // in the order of the lessons; only ever appended to, so that readers keep what they have
	looks  map[string]*look    // by machine

	calibrations map[stateKey]trust.Calibration
}

// New returns a Follower that has read nothing yet.
func New() *Follower {
	return &Follower{now: trust.New(), proven: map[stateKey]*proven{}, marks: map[stateKey][]Mark{}, looks: map[string]*look{}, calibrations: map[stateKey]trust.Calibration{}}
}

// learn adds a lesson to next, and to all that is kept beside it.
func (f *Follower) learn(next *trust.Ledger, x trust.Lesson) error {
	name := ""
	if x.Outcome != nil {
		name = x.Outcome.Machine
	}
	before := next.N(name)
	if err := next.Learn(x); err != nil {
		return err
	}
	if n := next.N(name); n > before && n%trust.SavingsEvery == 0 {
		f.looks[name] = &look{outcomes: n, ledger: next.Clone(), known: map[lookKey]trust.Savings{}}
	}
	f.note(x)
	f.calibrate(x)
	return nil
}

// Read returns the ledger with every lesson whose commit returned before the call, and
// the place of the newest.
func (f *Follower) Read(ctx context.Context, s session.TrustStore) (*trust.Ledger, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, place := f.now, f.place
	for lesson, err := range s.Lessons(ctx, place) {
		if err != nil {
			return nil, 0, err
		}
		if next == f.now {
			next = next.Clone() // others may be reading
		}
		if err := f.learn(next, lesson); err != nil {
			return nil, 0, &session.CorruptError{What: fmt.Sprintf("lesson %d", lesson.Seq), Problem: err.Error()}
		}
		place = lesson.Seq
	}
	f.now, f.place = next, place
	return next, place, nil
}

// A stateKey names a state of a machine.
type stateKey struct{ machine, state string }

// proven is the evidence for champions of one state.
type proven struct {
	after, place int64
	now          *trust.Ledger
}

// Since returns a ledger of the outcomes of one state after a place, up to another.
func (f *Follower) Since(ctx context.Context, s session.TrustStore, machineName, state string, after, upTo int64) (*trust.Ledger, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := stateKey{machineName, state}
	p := f.proven[key]
	if p == nil || p.after != after || p.place > upTo {
		p = &proven{after: after, place: after, now: trust.New()}
	}
	next := &proven{after, p.place, p.now}
	for x, err := range s.Lessons(ctx, p.place) {
		if err != nil {
			return nil, err
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
			return nil, &session.CorruptError{What: "a lesson of state " + state, Problem: err.Error()}
		}
	}
	f.proven[key] = next
	return next.now, nil
}

// A Mark is what a human thought of one automatic decision.
type Mark struct {
	seq            int64
	Round          string
	Right, Unasked bool
	Prob           exact.Billionths // with which it was looked at
}

// note enters what a lesson says of an automatic decision.
func (f *Follower) note(x trust.Lesson) {
	o := x.Outcome
	if o == nil || !o.Automatic {
		return
	}
	key := stateKey{o.Machine, o.State}
	f.marks[key] = append(f.marks[key], Mark{x.Seq, o.Round, o.Pick == o.Truth, o.Unasked, cmp.Or(o.SamplingProb, exact.One)})
}

// calibrate enters what a lesson says of the probability that bayes had stated.
func (f *Follower) calibrate(x trust.Lesson) {
	if o := cmp.Or(x.Outcome, x.Retracts); o != nil {
		key := stateKey{o.Machine, o.State}
		c := f.calibrations[key]
		if x.Retracts != nil {
			c.Retract(o)
		} else {
			c.Add(o)
		}
		f.calibrations[key] = c
	}
}

// Calibration returns the calibration of a machine, of the lessons that Read has read; of one of
// its states if state is not "".
func (f *Follower) Calibration(machineName, state string) (sum trust.Calibration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, c := range f.calibrations {
		if key.machine == machineName && (state == "" || state == key.state) {
			sum = sum.Plus(c)
		}
	}
	return sum
}

// Marks returns the marks of a state after a place, of the lessons that Read has read.
func (f *Follower) Marks(machineName, state string, after int64) []Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.marks[stateKey{machineName, state}]
	i, _ := slices.BinarySearchFunc(all, after+1, func(m Mark, seq int64) int { return cmp.Compare(m.seq, seq) })
	return slices.Clip(all[i:]) // what comes later is appended behind it
}
