package lessons

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
)

// Who may decide a state alone has to show it in outcomes of that state since evidence was last
// archived, and keeps showing it in what humans think of its automatic decisions. Both are a fold
// of lessons that begins at a place which no lesson tells: so it is none of [Fold], and has
// snapshots of its own, one scope for each state. They are made of whatever place the state was
// looked at when a thousand lessons had come since the last.

// proven is the evidence for champions of one state.
type proven struct {
	stateKey
	after, place int64 // from where on, and Lesson.Seq of the newest lesson that was looked at
	now          *trust.Ledger
	marks        Marks // only ever appended to, so that readers keep what they have
	unkept       int   // lessons since the newest snapshot
}

// A Mark is what a human thought of one automatic decision.
type Mark struct {
	seq            int64
	Round          string // if it was overruled unasked; "" else
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

// Since returns a ledger of the outcomes of one state after a place, up to another, and the marks
// of its automatic decisions.
func (f *Follower) Since(ctx context.Context, s session.TrustStore, machineName, state string, after, upTo int64) (*trust.Ledger, Marks, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		f.begin(s)
		ledger, marks, err := f.since(ctx, s, stateKey{machineName, state}, after, upTo)
		if !f.outdated(s) {
			return ledger, marks, err
		}
	}
}

// since is Since of a store that is not replaced meanwhile. f.mu is held.
func (f *Follower) since(ctx context.Context, s session.TrustStore, key stateKey, after, upTo int64) (*trust.Ledger, Marks, error) {
	p := f.proven[key]
	if p == nil || p.after != after || p.place > upTo {
		p = resumeProven(ctx, s, key, after, upTo)
	}
	next := *p
	next.now = p.now.Clone() // others may be reading
	for x, err := range s.Lessons(ctx, p.place) {
		if err != nil {
			return nil, nil, err
		}
		if x.Seq > upTo {
			break
		}
		if err := next.learn(x); err != nil {
			return nil, nil, err
		}
	}
	if keeper, ok := s.(session.LedgerKeeper); ok && next.unkept >= SnapshotEvery && !f.outdated(s) {
		_ = keeper.KeepLedger(ctx, next.snapshot()) // without it the next process folds more
		next.unkept = 0
	}
	f.proven[key] = &next
	return next.now, slices.Clip(next.marks), nil // what comes later is appended behind them
}

// learn looks at the next lesson of the store.
func (p *proven) learn(x trust.Lesson) error {
	p.place, p.unkept = x.Seq, p.unkept+1
	o := x.Outcome
	if o == nil || o.Machine != p.machine || o.State != p.state {
		return nil
	}
	if err := p.now.Learn(x); err != nil {
		return &session.CorruptError{What: "a lesson of state " + p.state, Problem: err.Error()}
	}
	p.note(x.Seq, o)
	return nil
}

// note enters what a human thought of a decision, if it was automatic.
func (p *proven) note(seq int64, o *trust.Outcome) {
	if !o.Automatic {
		return
	}
	m := Mark{seq: seq, Right: o.Pick == o.Truth, Unasked: o.Unasked, Prob: cmp.Or(o.SamplingProb, exact.One)}
	if m.Unasked && !m.Right {
		m.Round = o.Round
	}
	p.marks = append(p.marks, m)
}

// scope is that of the snapshots of a state.
func (k stateKey) scope() string { return fmt.Sprintf("%q %q", k.machine, k.state) }

// snapshot returns what p has come to. The same lessons have the same one, to the byte.
func (p *proven) snapshot() session.LedgerSnapshot {
	c := wire.NewWriter()
	p.code(c)
	return session.LedgerSnapshot{Scope: p.scope(), Place: p.place, Format: Format, Body: c.Bytes()}
}

// readProven returns the evidence that a snapshot was made of, or an error if it was written in
// another way.
func readProven(s session.LedgerSnapshot) (*proven, error) {
	if s.Format != Format {
		return nil, errFormat
	}
	p, c := &proven{now: trust.New()}, wire.NewReader(s.Body)
	p.code(c)
	c.Check(p.place == s.Place && p.scope() == s.Scope, "it is of another place or state")
	return p, c.Close()
}

func (p *proven) code(c *wire.Coder) {
	wire.Text(c, &p.machine)
	wire.Text(c, &p.state)
	wire.Int(c, &p.after)
	wire.Int(c, &p.place)
	p.now.Code(c)
	wire.Slice(c, (*[]Mark)(&p.marks), func(m *Mark) {
		wire.Int(c, &m.seq)
		wire.Text(c, &m.Round)
		c.Bool(&m.Right)
		c.Bool(&m.Unasked)
		wire.Int(c, &m.Prob)
		c.Check(m.Prob > 0, "a decision is looked at with no probability")
	})
}

// resumeProven returns the newest evidence after a place and up to another that a store keeps and
// that fits its lessons; that of no lessons if there is no such.
func resumeProven(ctx context.Context, s session.TrustStore, key stateKey, after, upTo int64) *proven {
	if keeper, ok := s.(session.LedgerKeeper); ok {
		for snapshot, err := range keeper.LedgerSnapshots(ctx, key.scope()) {
			if err != nil {
				break // the lessons can be read, or tell why not
			}
			if p, err := readProven(snapshot); err == nil && p.after == after && p.place <= upTo && ends(ctx, s, p.place) {
				return p
			}
		}
	}
	return &proven{stateKey: key, after: after, place: after, now: trust.New()}
}
