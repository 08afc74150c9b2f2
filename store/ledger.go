package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// Snapshots of what lessons were folded into (internal/lessons says when one is made, and what
// is in it). They are beside the log: rebuilding drops them, a check folds the lessons again and
// holds each against that, and one that damage has changed is not yielded, by its hash.

// ledgerHash is the hash of a snapshot.
func ledgerHash(s session.LedgerSnapshot) session.Hash {
	return session.Chain(session.Hash{}, fmt.Sprintf("ledger %d of %q in format %d", s.Place, s.Scope, s.Format), s.Body)
}

// KeepLedger implements [session.LedgerKeeper].
func (s *SQLite) KeepLedger(ctx context.Context, l session.LedgerSnapshot) error {
	body, hash := pack.Block(l.Body), ledgerHash(l)
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		_, err := s.stmts.keepLedger.ExecContext(ctx, l.Scope, l.Place, l.Format, body, hash[:])
		if err == nil {
			_, err = s.stmts.dropLedgers.ExecContext(ctx, l.Scope, session.LedgerSnapshots)
		}
		return err
	}})
}

// LedgerSnapshots implements [session.LedgerKeeper].
func (s *SQLite) LedgerSnapshots(ctx context.Context, scope string) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		l := session.LedgerSnapshot{Scope: scope}
		var body, hash []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT place, format, body, hash FROM ledger_snapshots WHERE scope=? ORDER BY place DESC`, scope)).into(&l.Place, &l.Format, &body, &hash) {
			if err == nil {
				var damaged error
				if l.Body, damaged = pack.Unblock(body); damaged != nil {
					continue
				}
				if want := ledgerHash(l); string(hash) != string(want[:]) {
					continue
				}
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// compareLedgers folds the lessons that the logs have, and holds snapshots against it.
func (a *audit) compareLedgers(ctx context.Context) error {
	var id int64
	var l session.LedgerSnapshot
	var body, hash []byte
	var list []session.LedgerSnapshot
	err := each(a.all(ctx, "ledger_snapshots", []string{"scope", "place", "format", "body", "hash"}, []any{&id, &l.Scope, &l.Place, &l.Format, &body, &hash}), func() (err error) {
		if l.Body, err = pack.Unblock(body); err != nil {
			return differs(inRows, "ledger_snapshots", "row %d cannot be read: %v", id, err)
		}
		if want := ledgerHash(l); string(hash) != string(want[:]) {
			return differs(inRows, "ledger_snapshots", "row %d is not what its hash says", id)
		}
		if _, decisions := stats.MachineOf(l.Scope); !decisions {
			list = append(list, l)
		}
		return nil
	})
	if err != nil || len(list) == 0 || a.damaged() { // damaged logs have other lessons
		return err
	}
	wrong, err := lessons.Disprove(list, func(yield func(trust.Lesson, error) bool) {
		for _, place := range slices.Sorted(maps.Keys(a.lessons)) {
			x, err := trust.DecodeLesson([]byte(a.lessons[place]))
			if x.Seq = place; !yield(x, err) || err != nil {
				return
			}
		}
	})
	if wrong != nil {
		return differs(inRows, "ledger_snapshots", "the snapshot at place %d of scope %q is not what the lessons up to there come to", wrong.Place, wrong.Scope)
	}
	return err
}

// KeepLedger implements [session.LedgerKeeper].
func (m *Memory) KeepLedger(_ context.Context, l session.LedgerSnapshot) error {
	l.Body = slices.Clone(l.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := slices.DeleteFunc(m.ledgers[l.Scope], func(k session.LedgerSnapshot) bool { return k.Place == l.Place })
	kept = append(kept, l)
	slices.SortFunc(kept, func(a, b session.LedgerSnapshot) int { return cmp.Compare(b.Place, a.Place) })
	m.ledgers[l.Scope] = kept[:min(len(kept), session.LedgerSnapshots)]
	return nil
}

// LedgerSnapshots implements [session.LedgerKeeper].
func (m *Memory) LedgerSnapshots(_ context.Context, scope string) iter.Seq2[session.LedgerSnapshot, error] {
	m.mu.RLock()
	kept := slices.Clone(m.ledgers[scope])
	m.mu.RUnlock()
	return func(yield func(session.LedgerSnapshot, error) bool) {
		for _, l := range kept {
			if l.Body = slices.Clone(l.Body); !yield(l, nil) {
				return
			}
		}
	}
}
