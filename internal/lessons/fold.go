package lessons

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
)

// All that is known of the lessons of a store is a fold of them, and grows with each. So that a
// process need not learn a hundred thousand of them before its first decision, whoever folds past
// every thousandth writes down what it has come to then, and the next one goes on from there. The
// store keeps such snapshots beside its log. Nothing follows from them: whoever finds none that
// fits folds from the beginning, and comes to the same, to the bit.

// SnapshotEvery is after how many lessons of a store a snapshot is made: at the 1,000th, the
// 2,000th, and so on.
const SnapshotEvery = 1000

// Format is the number of the way in which snapshots are written. It rises with
// [trust.LedgerFormat], and with what stands beside the ledger.
const Format = trust.LedgerFormat<<8 | 1

// FormatUnruled is that of snapshots with rounds without a human's word. Those without any are
// written in Format: whoever learns from humans alone has the snapshots that there always were.
const FormatUnruled = trust.LedgerFormat<<8 | 2

// A Fold is what the lessons of a store, in their order, have come to. It must not be used
// concurrently. Use [NewFold].
type Fold struct {
	ledger *trust.Ledger
	count  int64 // lessons
	place  int64 // Lesson.Seq of the newest

	looks        map[string]*look // by machine
	calibrations map[stateKey]trust.Calibration
}

// NewFold returns the fold of no lessons.
func NewFold() *Fold {
	return &Fold{ledger: trust.New(), looks: map[string]*look{}, calibrations: map[stateKey]trust.Calibration{}}
}

// Learn adds a lesson. The error is a [session.CorruptError], and nothing is changed, if
// [trust.Lesson.Check] refuses it.
func (f *Fold) Learn(x trust.Lesson) error {
	name := ""
	if x.Outcome != nil {
		name = x.Outcome.Machine
	}
	before := f.ledger.N(name)
	if err := f.ledger.Learn(x); err != nil {
		return &session.CorruptError{What: fmt.Sprintf("lesson %d", x.Seq), Problem: err.Error()}
	}
	f.count, f.place = f.count+1, x.Seq
	if n := f.ledger.N(name); n > before && n%trust.SavingsEvery == 0 {
		f.looks[name] = newLook(n, f.ledger.Of(name))
	}
	f.calibrate(x)
	return nil
}

// calibrate enters what a lesson says of the probability that bayes had stated.
func (f *Fold) calibrate(x trust.Lesson) {
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

// Due reports whether a snapshot is to be made of f as it is.
func (f *Fold) Due() bool { return f.count > 0 && f.count%SnapshotEvery == 0 }

// frozen returns f as it is now: what is learned later does not change it.
func (f *Fold) frozen() *Fold {
	c := &Fold{f.ledger.Clone(), f.count, f.place, maps.Clone(f.looks), map[stateKey]trust.Calibration{}}
	for key, k := range f.calibrations {
		c.calibrations[key] = k.Plus(trust.Calibration{})
	}
	return c
}

// Snapshot returns what f has come to. The same lessons have the same one, to the byte.
func (f *Fold) Snapshot() session.LedgerSnapshot {
	c, format := wire.NewWriter(), Format
	f.code(c)
	if f.hasUnruled() {
		format = FormatUnruled
		f.codeUnruled(c)
	}
	return session.LedgerSnapshot{Place: f.place, Format: format, Body: c.Bytes()}
}

// errFormat is the error of a snapshot of another program.
var errFormat = errors.New("it has another format")

// read returns the fold that a snapshot was made of, or an error if it was written in another way.
func read(s session.LedgerSnapshot) (*Fold, error) {
	if s.Format != Format && s.Format != FormatUnruled {
		return nil, errFormat
	}
	f, c := NewFold(), wire.NewReader(s.Body)
	f.code(c)
	if s.Format == FormatUnruled {
		f.codeUnruled(c)
		c.Check(f.hasUnruled(), "it is written as if there were rounds without a human's word")
	}
	c.Check(f.place == s.Place && f.Due(), "it is of another place")
	return f, c.Close()
}

func (f *Fold) code(c *wire.Coder) {
	wire.Int(c, &f.place)
	wire.Int(c, &f.count)
	f.ledger.Code(c)
	wire.TextMap(c, &f.looks, func(l **look) {
		if c.Reading() {
			*l = newLook(0, trust.New())
		}
		wire.Int(c, &(*l).outcomes)
		(*l).ledger.Code(c)
	})
	wire.Map(c, &f.calibrations, func(a, b stateKey) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.state, b.state))
	}, func(key *stateKey, k *trust.Calibration) {
		wire.Text(c, &key.machine)
		wire.Text(c, &key.state)
		k.Code(c)
	})
}

// hasUnruled reports whether anything is known of rounds without a human's word.
func (f *Fold) hasUnruled() bool {
	return f.ledger.HasUnruled() // what looks know, it knew before
}

// codeUnruled codes what is known of such rounds, behind all else.
func (f *Fold) codeUnruled(c *wire.Coder) {
	f.ledger.CodeUnruled(c)
	for _, name := range slices.Sorted(maps.Keys(f.looks)) {
		f.looks[name].ledger.CodeUnruled(c)
	}
}

// resume returns the newest fold that a store keeps and that fits its lessons; that of none if
// there is no such.
func resume(ctx context.Context, s session.TrustStore) *Fold {
	keeper, ok := s.(session.LedgerKeeper)
	if !ok {
		return NewFold()
	}
	for snapshot, err := range keeper.LedgerSnapshots(ctx, "") {
		if err != nil {
			break // the lessons can be read, or tell why not
		}
		if f, err := read(snapshot); err == nil && ends(ctx, s, f.place) {
			return f
		}
	}
	return NewFold()
}

// ends reports whether a store has a lesson at a place.
func ends(ctx context.Context, s session.TrustStore, place int64) bool {
	for x, err := range s.Lessons(ctx, place-1) {
		return err == nil && x.Seq == place
	}
	return false
}

// Disprove returns one of the snapshots of a store that is not what its lessons, in their order,
// come to; nil if there is none. Those of other formats are passed over. It takes as long as
// learning all lessons, and those of states with snapshots of their own once more.
func Disprove(list []session.LedgerSnapshot, all iter.Seq2[trust.Lesson, error]) (*session.LedgerSnapshot, error) {
	fold, states := NewFold(), map[stateKey][]*proven{}
	type claim struct {
		*session.LedgerSnapshot
		state *proven // nil if it is of all lessons
	}
	claims := map[int64][]claim{} // by place
	for i := range list {
		l := &list[i]
		switch {
		case l.Format != Format && (l.Format != FormatUnruled || l.Scope != ""):
			continue
		case l.Scope == "":
			claims[l.Place] = append(claims[l.Place], claim{l, nil})
			continue
		}
		p, err := readProven(*l)
		if err != nil {
			return l, nil //nolint:nilerr // it is none that could have been made
		}
		k := slices.IndexFunc(states[p.stateKey], func(q *proven) bool { return q.after == p.after })
		if k < 0 {
			k = len(states[p.stateKey])
			states[p.stateKey] = append(states[p.stateKey], &proven{stateKey: p.stateKey, after: p.after, now: trust.New()})
		}
		claims[l.Place] = append(claims[l.Place], claim{l, states[p.stateKey][k]})
	}
	for x, err := range all {
		if err == nil {
			err = fold.Learn(x)
		}
		if o := x.Outcome; err == nil && o != nil {
			for _, p := range states[stateKey{o.Machine, o.State}] {
				if err == nil && x.Seq > p.after {
					err = p.learn(x)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		for _, c := range claims[x.Seq] {
			if p := c.state; p == nil && !fold.Due() || p != nil && x.Seq <= p.after || !same(c.LedgerSnapshot, fold.at(p, x.Seq)) {
				return c.LedgerSnapshot, nil
			}
		}
		delete(claims, x.Seq)
	}
	for _, c := range claims { // there is no lesson at their place
		return c[0].LedgerSnapshot, nil
	}
	return nil, nil
}

// same reports whether two snapshots of one place say the same.
func same(a *session.LedgerSnapshot, b session.LedgerSnapshot) bool {
	return a.Format == b.Format && bytes.Equal(a.Body, b.Body)
}

// at returns the snapshot of a state at a place; that of all lessons if p is nil.
func (f *Fold) at(p *proven, place int64) session.LedgerSnapshot {
	if p == nil {
		return f.Snapshot()
	}
	p.place = place
	return p.snapshot()
}
