package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// Snapshots of what lessons were folded into (internal/lessons says when one is made, and what
// is in it). They are beside the log: rebuilding drops them, a check folds the lessons again and
// holds each against that, and one that damage has changed is not yielded, by its hash.

// ledgerHash is the hash of a snapshot.
func ledgerHash(s session.LedgerSnapshot) session.Hash {
	return session.Chain(session.Hash{}, fmt.Sprintf("ledger %d in format %d", s.Place, s.Format), s.Body)
}

// KeepLedger implements [session.LedgerKeeper].
func (s *SQLite) KeepLedger(ctx context.Context, l session.LedgerSnapshot) error {
	body, hash := pack.Block(l.Body), ledgerHash(l)
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		_, err := s.stmts.keepLedger.ExecContext(ctx, l.Place, l.Format, body, hash[:])
		if err == nil {
			_, err = s.stmts.dropLedgers.ExecContext(ctx, session.LedgerSnapshots)
		}
		return err
	}})
}

// LedgerSnapshots implements [session.LedgerKeeper].
func (s *SQLite) LedgerSnapshots(ctx context.Context) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		var l session.LedgerSnapshot
		var body, hash []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT id, format, body, hash FROM ledger_snapshots ORDER BY id DESC`)).into(&l.Place, &l.Format, &body, &hash) {
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
	var l session.LedgerSnapshot
	var body, hash []byte
	stored := map[int64]session.LedgerSnapshot{}
	err := each(a.all(ctx, "ledger_snapshots", []string{"format", "body", "hash"}, []any{&l.Place, &l.Format, &body, &hash}), func() (err error) {
		if l.Body, err = pack.Unblock(body); err != nil {
			return differs(inRows, "ledger_snapshots", "row %d cannot be read: %v", l.Place, err)
		}
		if want := ledgerHash(l); string(hash) != string(want[:]) {
			return differs(inRows, "ledger_snapshots", "row %d is not what its hash says", l.Place)
		}
		stored[l.Place] = l
		return nil
	})
	if err != nil || len(stored) == 0 || a.damaged() { // damaged logs have other lessons
		return err
	}
	fold := lessons.NewFold()
	for _, place := range slices.Sorted(maps.Keys(a.lessons)) {
		x, err := trust.DecodeLesson([]byte(a.lessons[place]))
		if err != nil {
			return &session.CorruptError{What: fmt.Sprintf("lesson %d", place), Problem: err.Error()}
		}
		x.Seq = place
		if err := fold.Learn(x); err != nil {
			return err
		}
		if l, kept := stored[place]; kept && fold.Due() {
			delete(stored, place)
			if want := fold.Snapshot(); l.Format == want.Format && string(l.Body) != string(want.Body) {
				return differs(inRows, "ledger_snapshots", "row %d is not what the lessons up to there come to", place)
			}
		}
	}
	for place := range stored {
		return differs(inRows, "ledger_snapshots", "row %d is of a place at which no snapshot is made", place)
	}
	return nil
}

// KeepLedger implements [session.LedgerKeeper].
func (m *Memory) KeepLedger(_ context.Context, l session.LedgerSnapshot) error {
	l.Body = slices.Clone(l.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledgers = slices.DeleteFunc(m.ledgers, func(k session.LedgerSnapshot) bool { return k.Place == l.Place })
	m.ledgers = append(m.ledgers, l)
	slices.SortFunc(m.ledgers, func(a, b session.LedgerSnapshot) int { return cmp.Compare(b.Place, a.Place) })
	m.ledgers = m.ledgers[:min(len(m.ledgers), session.LedgerSnapshots)]
	return nil
}

// LedgerSnapshots implements [session.LedgerKeeper].
func (m *Memory) LedgerSnapshots(context.Context) iter.Seq2[session.LedgerSnapshot, error] {
	m.mu.RLock()
	kept := slices.Clone(m.ledgers)
	m.mu.RUnlock()
	return func(yield func(session.LedgerSnapshot, error) bool) {
		for _, l := range kept {
			if l.Body = slices.Clone(l.Body); !yield(l, nil) {
				return
			}
		}
	}
}
