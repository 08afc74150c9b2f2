package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// Rebuild writes everything that follows from the logs anew, in one transaction, and returns what a check
// finds after it. It refuses, with the difference in the report, if a log or a definition is damaged. It
// returns [store.ErrDriven] while any process carries sessions on, and none begins to meanwhile. Whoever else
// writes waits, as long as the database lets it. told is told what it does, and how many of how many
// records were read; nil is told nothing.
func (s *Store) Rebuild(ctx context.Context, programs *session.Programs, told func(step string, done, of int64)) (store.Report, error) {
	if told == nil {
		told = func(string, int64, int64) {}
	}
	if err := s.reading(ctx, func(tx pgx.Tx) error { return s.owned(ctx, tx) }); err != nil {
		return store.Report{}, err
	}
	report, err := s.Verify(ctx, programs, func(done, of int64) { told("verifying", done, of) })
	if d := report.Difference; err != nil || d != nil && (d.InLog || d.Kind == inArchived || d.Kind == inNewer) {
		return report, err
	}
	c := &copied{s: s}
	b := &rebuild{copied: c, programs: programs, told: func(done, of int64) { told("rebuilding", done, of) }, again: true}
	if err := b.run(ctx); err != nil {
		return report, err
	}
	if err := c.Close(); err != nil {
		return report, err
	}
	s.mu.Lock()
	s.forget()
	s.mu.Unlock()
	return s.Verify(ctx, programs, func(done, of int64) { told("verifying", done, of) })
}

// lock keeps everybody else from writing until the end of the transaction. Whoever reads goes on.
func (b *rebuild) lock(ctx context.Context) error {
	_, err := b.tx.Exec(ctx, `LOCK TABLE owners, machines, definitions, sessions, log, roster_log, lessons, exemplars, alignment, ledger_snapshots, snapshots, `+strings.Join(quotaTables, ", ")+` IN SHARE ROW EXCLUSIVE MODE`)
	if err != nil {
		return err
	}
	var driven bool
	if err = b.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM owners WHERE until>now())`).Scan(&driven); err == nil && driven {
		err = store.ErrDriven
	}
	return err
}

// spread moves records to the partitions that were made too late for them.
func (b *rebuild) spread(ctx context.Context) error {
	rows, _ := b.tx.Query(ctx, `SELECT DISTINCT session/$1 FROM log_default ORDER BY 1`, partitionSize) // the error comes with the rows
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, n := range numbers {
		table, from, to := fmt.Sprint("log_", n), n*partitionSize, (n+1)*partitionSize
		for _, statement := range []string{
			`CREATE TABLE ` + table + ` (LIKE log INCLUDING DEFAULTS INCLUDING STORAGE)`,
			fmt.Sprintf(`WITH moved AS (DELETE FROM log_default WHERE session>=%d AND session<%d RETURNING *) INSERT INTO %s SELECT * FROM moved`, from, to, table),
			fmt.Sprintf(`ALTER TABLE log ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`, table, from, to),
		} {
			if err == nil {
				_, err = b.tx.Exec(ctx, statement)
			}
		}
	}
	return err
}
