package store

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// What every commit runs goes to the driver itself: database/sql takes longer to hand a statement on
// than SQLite to run it.

// A hot is a statement of the connection that writes, for whoever leads and nobody else. Its other
// statements, and queries of more than a number, are those of database/sql.
type hot struct {
	stmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	args []driver.NamedValue // of the last call
}

// exec runs the statement. The arguments are what database/sql would take, and may be used again.
func (h *hot) exec(args ...any) (driver.Result, error) {
	h.args = h.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case nil, int64, string, []byte: // as they are
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		h.args = append(h.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	result, err := h.stmt.ExecContext(context.Background(), h.args)
	clear(h.args) // what they hold is the callers'
	return result, err
}

// number runs a query without arguments for the one number that it returns.
func (h *hot) number() (n int64, err error) {
	rows, err := h.stmt.QueryContext(context.Background(), nil)
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		rows.Close()
		return 0, err
	}
	n, ok := row[0].(int64)
	if !ok {
		rows.Close()
		return 0, fmt.Errorf("%v is no number", row[0])
	}
	return n, rows.Close()
}

// hot prepares a statement that every commit runs.
func (p *preparer) hot(into *hot, query string) {
	if p.err != nil {
		return
	}
	p.err = p.conn.Raw(func(conn any) error {
		stmt, err := conn.(driver.ConnPrepareContext).PrepareContext(p.ctx, query)
		if err != nil {
			return err
		}
		p.all = append(p.all, stmt)
		into.stmt = stmt.(interface {
			driver.Stmt
			driver.StmtExecContext
			driver.StmtQueryContext
		})
		return nil
	})
}
