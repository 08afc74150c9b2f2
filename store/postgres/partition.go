package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A partition of the log has the records of as many sessions, by their numbers. The next is made once
// four fifths of one are used. If that fails, records go to log_default, where they are as safe, and
// verify says so.
const partitionSize = 1 << 20

// partition makes the partition that comes after that of a session, if it is time.
func (s *Store) partition(ctx context.Context, row int64) {
	next := (row + partitionSize/5) / partitionSize
	s.mu.Lock()
	made := next < s.fresh
	s.mu.Unlock()
	if made {
		return
	}
	err := s.makePartition(context.WithoutCancel(ctx), next)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.fresh = next + 1
	}
}

// makePartition makes the n-th partition unless it is there. It is made apart and then attached, for which
// who commits waits a moment at most.
func (s *Store) makePartition(ctx context.Context, n int64) error {
	return pgx.BeginFunc(ctx, s.readers, func(tx pgx.Tx) error {
		table := fmt.Sprint("log_", n)
		var made bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&made); err != nil || made {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, s.lock+1); err != nil { // others make it, too
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&made); err != nil || made {
			return err
		}
		if _, err := tx.Exec(ctx, `CREATE TABLE `+table+` (LIKE log INCLUDING DEFAULTS INCLUDING STORAGE)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE log ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`, table, n*partitionSize, (n+1)*partitionSize))
		return err
	})
}
