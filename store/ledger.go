package store

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Snapshots (store/internal/snapshots), beside the log.

// KeepLedger implements [session.LedgerKeeper].
func (s *SQLite) KeepLedger(ctx context.Context, l session.LedgerSnapshot) error {
	body, hash := snapshots.Row(l)
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		_, err := s.stmts.keepLedger.ExecContext(ctx, l.Scope, l.Place, l.Format, body, hash)
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
			if err == nil && snapshots.Read(&l, body, hash) != nil {
				continue
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// readSnapshots reads the snapshots, of which [audit.compareSnapshots] has to know before the logs are read.
func (a *audit) readSnapshots(ctx context.Context) error {
	var id int64
	var l session.LedgerSnapshot
	var body, hash []byte
	return each(a.all(ctx, "ledger_snapshots", []string{"scope", "place", "format", "body", "hash"}, []any{&id, &l.Scope, &l.Place, &l.Format, &body, &hash}), func() error {
		a.proof.Row(l, body, hash)
		return nil
	})
}

// compareSnapshots holds snapshots against the logs.
func (a *audit) compareSnapshots(context.Context) error {
	if a.damaged() { // then the logs say something else
		return nil
	}
	wrong, err := a.proof.Wrong(a.read.Texts())
	if wrong != "" {
		return differs(inRows, "ledger_snapshots", "%s", wrong)
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
