package store

import (
	"context"
	"database/sql"

	"github.com/dialai/dialai/store/internal/projection"
)

// driverFrom is the migration from which on rows of sessions say who carries each on.
const driverFrom = 19

// fillDrivers writes into the rows of sessions who carries each on, where that is not any process that does so for
// its store. It is in the logs only, packed. told is told how far it is.
func fillDrivers(ctx context.Context, tx *sql.Tx, told func(part string, done, of int64)) error {
	var of int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM log`).Scan(&of); err != nil {
		return err
	}
	part := projection.NewPart("reading the log", of, told)
	drivers := projection.Drivers{}
	var row, place int64
	var events sql.RawBytes
	for err := range scan(tx.QueryContext(ctx, `SELECT session, id, events FROM log ORDER BY id`)).into(&row, &place, &events) {
		if err != nil {
			return err
		}
		drivers.Add(row, place, events)
		part.Next()
	}
	part.End()
	for row, driver := range drivers.Changed() {
		if _, err := tx.ExecContext(ctx, `UPDATE sessions SET driver=? WHERE id=?`, driver, row); err != nil {
			return err
		}
	}
	return nil
}
