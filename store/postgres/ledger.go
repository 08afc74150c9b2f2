package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Snapshots (store/internal/snapshots), beside the log.

// KeepLedger implements [session.LedgerKeeper].
func (s *Store) KeepLedger(ctx context.Context, l session.LedgerSnapshot) error {
	body, hash := snapshots.Row(l)
	_, err := query(ctx, s, pgx.RowTo[int64], `INSERT INTO ledger_snapshots (scope, place, format, body, hash) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope, place) DO UPDATE SET format=excluded.format, body=excluded.body, hash=excluded.hash`, []byte(l.Scope), l.Place, l.Format, body, hash)
	if err == nil {
		_, err = query(ctx, s, pgx.RowTo[int64], `DELETE FROM ledger_snapshots WHERE scope=$1 AND place NOT IN (SELECT place FROM ledger_snapshots WHERE scope=$1 ORDER BY place DESC LIMIT $2)`,
			[]byte(l.Scope), session.LedgerSnapshots)
	}
	return err
}

// LedgerSnapshots implements [session.LedgerKeeper].
func (s *Store) LedgerSnapshots(ctx context.Context, scope string) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		list, err := query(ctx, s, scanSnapshot, `SELECT scope, place, format, body, hash FROM ledger_snapshots WHERE scope=$1 ORDER BY place DESC`, []byte(scope))
		if err != nil {
			yield(session.LedgerSnapshot{}, err)
			return
		}
		for _, r := range list {
			if snapshots.Read(&r.LedgerSnapshot, r.body, r.hash) == nil && !yield(r.LedgerSnapshot, nil) {
				return
			}
		}
	}
}

// A storedSnapshot is a snapshot that was not read yet.
type storedSnapshot struct {
	session.LedgerSnapshot
	body, hash []byte
}

func scanSnapshot(row pgx.CollectableRow) (r storedSnapshot, err error) {
	var scope []byte
	err = row.Scan(&scope, &r.Place, &r.Format, &r.body, &r.hash)
	r.Scope = string(scope)
	return r, err
}

// readSnapshots reads the snapshots, of which [audit.checkSnapshots] has to know before the logs are read.
func (a *audit) readSnapshots(ctx context.Context) error {
	rows, _ := a.tx.Query(ctx, `SELECT scope, place, format, body, hash FROM ledger_snapshots`) // the error comes with the rows
	list, err := pgx.CollectRows(rows, scanSnapshot)
	for _, r := range list {
		a.proof.Row(r.LedgerSnapshot, r.body, r.hash)
	}
	return err
}

// checkSnapshots holds snapshots against the logs.
func (a *audit) checkSnapshots(context.Context) error {
	if a.broken {
		return nil
	}
	wrong, err := a.proof.Wrong(a.read.Texts())
	if wrong != "" {
		a.differs(inRows, "ledger_snapshots", 0, "%s", wrong)
	}
	return err
}
