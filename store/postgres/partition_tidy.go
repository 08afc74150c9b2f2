package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// What archiving leaves of a partition of the log gives its room back to the disk. Only one is looked at in which no
// session begins any more: of all others vacuuming makes the room free for those that begin.
//
// It is vacuumed first, which locks nobody out: what was deleted is read once, and by nobody who holds a lock.
// One that is empty then is dropped. One of whose room less than a hundredth is used is written anew, by the index, so
// that the hundredth is read and not the room. It goes by room and not by how many sessions are left, for one session
// may be longer than a thousand. Whoever writes to the sessions that are left waits for it, for less time than they wait for a
// lock; the other partitions are not locked.
//
// A partition that somebody uses, or that takes longer, as when an old snapshot has kept what was deleted, is left to the
// next run.

const (
	leastRoom  = 1 << 20 // bytes of a partition that is worth it
	leastSpare = 100     // times what is used
	fewLeft    = partitionSize / leastSpare
)

// tidyPartitions drops and rewrites partitions.
func (m *archiving) tidyPartitions(ctx context.Context) error {
	rows, _ := m.conn.Query(ctx, `SELECT substring(c.relname FROM 5)::bigint FROM pg_inherits i JOIN pg_class c ON c.oid=i.inhrelid
		WHERE i.inhparent=to_regclass('log') AND c.relname ~ '^log_[0-9]+$' AND (SELECT coalesce(max(id), 0) FROM sessions)>=(substring(c.relname FROM 5)::bigint+1)*$1 ORDER BY 1`, partitionSize) // the error comes with the rows
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, n := range numbers {
		var left int64
		if err == nil {
			left, err = m.vacuumPartition(ctx, n)
		}
		if err == nil && left <= fewLeft {
			err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
				empty, err := dropPartition(ctx, tx, n)
				if err == nil && !empty {
					err = rewritePartition(ctx, tx, n)
				}
				return err
			})
		}
		switch code(err) {
		case "55P03", "40P01", "57014": // a lock, a deadlock, the time that it may take
			err = nil
		}
	}
	return err
}

// vacuumPartition counts the sessions that are left in the n-th partition, up to one more than few, and vacuums it
// where they are few.
func (m *archiving) vacuumPartition(ctx context.Context, n int64) (left int64, err error) {
	err = m.conn.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM sessions WHERE id>=$1 AND id<$2 LIMIT $3::bigint+1) s`, n*partitionSize, (n+1)*partitionSize, fewLeft).Scan(&left)
	if err != nil || left > fewLeft {
		return left, err
	}
	if _, err := m.conn.Exec(ctx, `SET statement_timeout=0`); err != nil {
		return left, err
	}
	_, err = m.conn.Exec(ctx, fmt.Sprint("VACUUM log_", n))
	_, reset := m.conn.Exec(ctx, `RESET statement_timeout`)
	return left, cmp.Or(err, reset)
}

// dropPartition drops the n-th partition if it is empty.
func dropPartition(ctx context.Context, tx pgx.Tx, n int64) (empty bool, err error) {
	table := fmt.Sprint("log_", n)
	look := func() error {
		return tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM `+table+`)`).Scan(&empty)
	}
	if err := look(); err != nil || !empty {
		return empty, err
	}
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout='1s'`); err != nil {
		return empty, err
	}
	if _, err := tx.Exec(ctx, `LOCK TABLE log IN ACCESS EXCLUSIVE MODE`); err != nil {
		return empty, err
	}
	if err := look(); err != nil || !empty { // now nobody writes
		return empty, err
	}
	_, err = tx.Exec(ctx, `DROP TABLE `+table)
	return empty, err
}

// rewritePartition writes the n-th partition anew if next to nothing of its room is used.
func rewritePartition(ctx context.Context, tx pgx.Tx, n int64) error {
	table, from, to := fmt.Sprint("log_", n), n*partitionSize, (n+1)*partitionSize
	var used, room int64
	if err := tx.QueryRow(ctx, `SELECT pg_table_size(to_regclass($1))`, table).Scan(&room); err != nil || room < leastRoom {
		return err
	}
	// A row has a header of 24 bytes, a line pointer of 4, and 68 of numbers and the hash.
	err := tx.QueryRow(ctx, `SELECT coalesce(sum(pg_column_size(events)+96), 0)::bigint FROM log WHERE session>=$1 AND session<$2`, from, to).Scan(&used)
	if err != nil || used >= room/leastSpare {
		return err
	}
	var index string
	err = tx.QueryRow(ctx, `SELECT x.indexrelid::regclass::text FROM pg_inherits i JOIN pg_index x ON x.indexrelid=i.inhrelid WHERE i.inhparent=to_regclass('log_session') AND x.indrelid=to_regclass($1)`, table).Scan(&index)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		`SET LOCAL lock_timeout='1s'; SET LOCAL statement_timeout='3s'; SET LOCAL enable_seqscan=off`, // it is read by the index
		`CLUSTER ` + table + ` USING ` + index,
		`ANALYZE ` + table,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
