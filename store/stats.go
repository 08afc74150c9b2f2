package store

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// Snapshots of what decisions come to (internal/stats) are kept beside those of lessons, in the same
// table. Each record of an archived session leaves in archived what it adds, so that they can still be
// proven, and counted anew.

// ArchivedTallies implements [stats.Archiver].
func (s *SQLite) ArchivedTallies(ctx context.Context, machineName string) iter.Seq2[stats.Added, error] {
	return func(yield func(stats.Added, error) bool) {
		var packed []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT a.taught FROM archived a JOIN machines m ON m.id=a.machine WHERE m.machine_name=?`, machineName)).into(&packed) {
			var list []projection.Taught
			if err == nil {
				list, err = unpackTaught(packed)
			}
			for i := range list {
				if list[i].Stats == nil || err != nil {
					continue
				}
				added := stats.Added{Place: list[i].Place}
				if err = decodeAdded(list[i].Stats, &added.Tally); err == nil && !yield(added, nil) {
					return
				}
			}
			if err != nil {
				yield(stats.Added{}, err)
				return
			}
		}
	}
}

// encodeAdded encodes what a record adds.
func encodeAdded(place int64, r stats.Record) []byte {
	var t stats.Tally
	t.Add(place, r)
	c := wire.NewWriter()
	t.Code(c)
	return c.Bytes()
}

func decodeAdded(text []byte, t *stats.Tally) error {
	c := wire.NewReader(text)
	if t.Code(c); c.Close() != nil {
		return &session.CorruptError{What: "what an archived decision adds", Problem: c.Close().Error()}
	}
	return nil
}

// A tallied is a snapshot of decisions, and what the logs say that it should be.
type tallied struct {
	session.LedgerSnapshot
	machine string
	should  stats.Tally
}

// readTallies reads the snapshots of decisions that can be proven; what else there is in their table
// compareLedgers looks at.
func (a *audit) readTallies(ctx context.Context) error {
	var id int64
	var l session.LedgerSnapshot
	var body, hash []byte
	return each(a.all(ctx, "ledger_snapshots", []string{"scope", "place", "format", "body", "hash"}, []any{&id, &l.Scope, &l.Place, &l.Format, &body, &hash}), func() error {
		machineName, ok := stats.MachineOf(l.Scope)
		if !ok || l.Format != stats.Format {
			return nil
		}
		var err error
		if l.Body, err = pack.Unblock(body); err == nil {
			a.talliesOf[machineName] = append(a.talliesOf[machineName], &tallied{LedgerSnapshot: l, machine: machineName})
		}
		return nil
	})
}

// counted adds what a record adds to the tallies that should have it.
func (a *audit) counted(machineName string, place int64, human, taught bool, add func(*stats.Tally)) {
	list := a.talliesOf[machineName]
	for _, t := range list {
		if place <= t.Place {
			add(&t.should)
		}
	}
	if len(list) > 0 && human && taught {
		a.humans[place] = true
	}
}

// compareTallies holds snapshots of decisions against the logs.
func (a *audit) compareTallies(context.Context) error {
	if len(a.talliesOf) == 0 || a.damaged() {
		return nil
	}
	for _, place := range slices.Sorted(maps.Keys(a.lessons)) {
		x, err := trust.DecodeLesson([]byte(a.lessons[place]))
		if err != nil {
			return err
		}
		name := ""
		switch {
		case x.Outcome != nil:
			name = x.Outcome.Machine
		case x.Second != nil:
			name = x.Second.Machine
		}
		for _, t := range a.talliesOf[name] {
			if place <= t.Place {
				t.should.Learn(&x, a.humans[place])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.talliesOf)) {
		for _, t := range a.talliesOf[name] {
			if !bytes.Equal(stats.Snapshot(name, t.Place, &t.should).Body, t.Body) {
				return differs(inRows, "ledger_snapshots", "the snapshot at place %d of scope %q is not what the decisions up to there come to", t.Place, t.Scope)
			}
		}
	}
	return nil
}
