package store

import (
	"context"
	"database/sql"

	"github.com/dialai/dialai/store/internal/pack"
)

// How a file of before the eleventh migration gets its packed log. That one has put the old
// table aside; here its rows are copied, packed, some thousand in a transaction, in which they
// go from the old one; the twelfth drops it. So a store of millions of records is migrated
// without a second one beside it and without a transaction as large, and if the process ends
// meanwhile, the next one that opens the file goes on from there. Nobody reads or writes the
// file in between: its schema is that of neither version. Every record keeps its place and
// its hash.

// copiedAtOnce is how many rows are copied in a transaction; a variable for tests.
var copiedAtOnce = 10_000

// bytesAtOnce bounds a transaction of large records.
const bytesAtOnce = 64 << 20

// copyLog copies what log_unpacked holds to log. told is told how far it is.
func copyLog(ctx context.Context, db *sql.DB, told func(part string, done, of int64)) error {
	const part = "packing the log"
	var done, of int64
	if err := db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM log_unpacked)`).Scan(&done, &of); err != nil {
		return err
	}
	for of += done; done < of; {
		told(part, done, of)
		n, err := copySome(ctx, db)
		if err != nil {
			return err
		}
		if done += n; done == of {
			told(part, done, of)
		}
	}
	return nil
}

// copySome copies the next rows in one transaction, and returns how many.
func copySome(ctx context.Context, db *sql.DB) (n int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // it was committed, or err says why not
	rows, err := tx.QueryContext(ctx, `SELECT id, session, first, decides, at, events, hash FROM log_unpacked ORDER BY id LIMIT ?`, copiedAtOnce)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	insert, err := tx.PrepareContext(ctx, `INSERT INTO log (id, session, first, decides, at, events, hash) VALUES (?,?,?,?,?,?,?)`)
	if err != nil {
		return 0, err
	}
	defer insert.Close()
	var id, session, first, at, size int64
	var decides *int64
	var events, hash sql.RawBytes
	var packed []byte
	for size < bytesAtOnce && rows.Next() {
		if err := rows.Scan(&id, &session, &first, &decides, &at, &events, &hash); err != nil {
			return 0, err
		}
		packed = pack.Append(packed[:0], events)
		if _, err := insert.ExecContext(ctx, id, session, first, decides, at, packed, []byte(hash)); err != nil {
			return 0, err
		}
		n, size = n+1, size+int64(len(events))
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	rows.Close()
	if _, err := tx.ExecContext(ctx, `DELETE FROM log_unpacked WHERE id<=?`, id); err != nil {
		return 0, err
	}
	return n, tx.Commit()
}
