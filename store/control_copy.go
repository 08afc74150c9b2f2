package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/dialai/dialai/store/internal/transfer"
)

// How what a server remembers is copied to and from a file (store/internal/transfer says what).

// A Remembering keeps what a server remembers, in a file or a database.
type Remembering = transfer.Remembering

// CopyControl puts what a server remembers in one place in the place of what is remembered in another one, all or nothing,
// and compares the two. Both may be in use; what is written to the former meanwhile is not copied.
func CopyControl(ctx context.Context, from, to Remembering) error {
	return transfer.CopyControl(ctx, from, to)
}

// ControlEmpty reports whether nothing is remembered in a place.
func ControlEmpty(ctx context.Context, of Remembering) (bool, error) {
	return transfer.ControlEmpty(ctx, of)
}

// Contents implements [Remembering].
func (c *Control) Contents(ctx context.Context) (transfer.Contents, error) {
	conn, err := c.read.Conn(ctx)
	if err != nil {
		return nil, translate(err)
	}
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return nil, errors.Join(translate(err), conn.Close())
	}
	return &contents{conn}, nil
}

// contents is a control file in one transaction that reads.
type contents struct{ conn *sql.Conn }

// Close implements [transfer.Contents].
func (c *contents) Close() error {
	_, err := c.conn.ExecContext(context.Background(), `ROLLBACK`)
	return translate(errors.Join(err, c.conn.Close()))
}

// Columns implements [transfer.Contents].
func (c *contents) Columns(ctx context.Context, table string) (names []string, err error) {
	types, err := columnTypes(ctx, c.conn, table)
	for _, t := range types {
		names = append(names, t.name)
	}
	return names, err
}

type columnType struct{ name, is string }

// columnTypes returns the columns of a table.
func columnTypes(ctx context.Context, conn *sql.Conn, table string) (list []columnType, err error) {
	var t columnType
	err = each(scan(conn.QueryContext(ctx, `SELECT name, type FROM pragma_table_info(?) ORDER BY cid`, table)).into(&t.name, &t.is), func() error { list = append(list, t); return nil })
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("there is no table %s", table)
	}
	return list, err
}

// Rows implements [transfer.Contents].
func (c *contents) Rows(ctx context.Context, table string, columns []string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		types, err := columnTypes(ctx, c.conn, table)
		if err != nil {
			yield(nil, err)
			return
		}
		var reads []string
		for _, name := range columns {
			for _, t := range types {
				switch {
				case t.name == name && t.is == "TEXT":
					reads = append(reads, `CAST(`+name+` AS BLOB)`)
				case t.name == name:
					reads = append(reads, name)
				}
			}
		}
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		for err := range scan(c.conn.QueryContext(ctx, `SELECT `+strings.Join(reads, ", ")+` FROM `+table)).into(into...) {
			for i, v := range row {
				if b, ok := v.([]byte); ok && len(b) == 0 {
					row[i] = []byte{} // which a driver may tell from NULL by its type alone
				}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Replace implements [Remembering].
func (c *Control) Replace(ctx context.Context, tables []transfer.Remembered) error {
	return c.anyway(ctx, func(conn *sql.Conn) error {
		for i := range tables {
			if err := replaceTable(ctx, conn, &tables[i]); err != nil {
				return err
			}
		}
		return freeze(ctx, conn, "")
	})
}

// Freeze implements [Remembering].
func (c *Control) Freeze(ctx context.Context, to string) error {
	return c.anyway(ctx, func(conn *sql.Conn) error { return freeze(ctx, conn, to) })
}

func replaceTable(ctx context.Context, conn *sql.Conn, t *transfer.Remembered) error {
	types, err := columnTypes(ctx, conn, t.Table)
	if err != nil {
		return err
	}
	text := map[string]bool{}
	for _, t := range types {
		text[t.name] = t.is == "TEXT"
	}
	if _, err := conn.ExecContext(ctx, `DELETE FROM `+t.Table); err != nil {
		return err
	}
	put, err := conn.PrepareContext(ctx, insert(t.Table, t.Columns))
	if err != nil {
		return err
	}
	defer put.Close()
	values := make([]any, len(t.Columns))
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		for i, v := range row {
			if is, ok := v.([]byte); ok && text[t.Columns[i]] {
				v = string(is)
			}
			values[i] = v
		}
		if _, err := put.ExecContext(ctx, values...); err != nil {
			return err
		}
	}
	return nil
}
