package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// What every commit runs goes to the driver itself: database/sql takes longer to hand a statement on
// than SQLite to run it.

// A hot is a statement of a connection that whoever runs it has for himself. What is not run all the
// time is a statement of database/sql.
type hot struct {
	stmt interface {
		driver.Stmt
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	args []driver.NamedValue // of the last call
	row  []driver.Value
}

// exec runs the statement. The arguments are what database/sql would take, and may be used again.
func (h *hot) exec(args ...any) (driver.Result, error) {
	if err := h.bind(args); err != nil {
		return nil, err
	}
	result, err := h.stmt.ExecContext(context.Background(), h.args)
	clear(h.args) // what they hold is the callers'
	return result, err
}

func (h *hot) bind(args []any) error {
	h.args = h.args[:0]
	for i, a := range args {
		switch a.(type) {
		case nil, int64, string, []byte: // as they are
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		h.args = append(h.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return nil
}

// numbers runs a query for the numbers of its first row, and reports whether there is one.
func (h *hot) numbers(into []int64, args ...any) (found bool, err error) {
	if err := h.bind(args); err != nil {
		return false, err
	}
	rows, err := h.stmt.QueryContext(context.Background(), h.args)
	if err != nil {
		return false, err
	}
	h.row = slices.Grow(h.row[:0], len(into))[:len(into)]
	if err = rows.Next(h.row); errors.Is(err, io.EOF) {
		return false, rows.Close()
	}
	for i := 0; err == nil && i < len(into); i++ {
		var ok bool
		if into[i], ok = h.row[i].(int64); !ok {
			err = fmt.Errorf("%v is no number", h.row[i])
		}
	}
	return true, errors.Join(err, rows.Close())
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
