package postgres

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/store/internal/transfer"
)

// How what a server remembers is copied to and from a database (store/internal/transfer says what).

// Contents implements [store.Remembering].
func (c *Control) Contents(ctx context.Context) (transfer.Contents, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, c.translate(err)
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, errors.Join(c.translate(err), conn.Close(context.WithoutCancel(ctx)))
	}
	return &contents{c, conn, tx}, nil
}

// contents is a schema in one transaction that reads.
type contents struct {
	c    *Control
	conn *pgx.Conn
	tx   pgx.Tx
}

// Close implements [transfer.Contents].
func (c *contents) Close() error { return c.c.translate(c.conn.Close(context.Background())) }

// Columns implements [transfer.Contents].
func (c *contents) Columns(ctx context.Context, table string) (names []string, err error) {
	types, err := columnTypes(ctx, c.tx, table)
	for _, t := range types {
		names = append(names, t.name)
	}
	return names, c.c.translate(err)
}

type columnType struct{ name, is string }

// columnTypes returns the columns of a table.
func columnTypes(ctx context.Context, tx pgx.Tx, table string) ([]columnType, error) {
	rows, _ := tx.Query(ctx, `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid=to_regclass($1) AND attnum>0 AND NOT attisdropped ORDER BY attnum`, table) // the error comes with the rows
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t columnType, err error) { return t, row.Scan(&t.name, &t.is) })
}

// Rows implements [transfer.Contents].
func (c *contents) Rows(ctx context.Context, table string, columns []string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		types, err := columnTypes(ctx, c.tx, table)
		if err != nil {
			yield(nil, c.c.translate(err))
			return
		}
		var reads []string
		for _, name := range columns {
			i := slices.IndexFunc(types, func(t columnType) bool { return t.name == name })
			switch types[i].is {
			case "bytea":
				reads = append(reads, name)
			case "text":
				reads = append(reads, `convert_to(`+name+`, 'UTF8')`)
			case "boolean":
				reads = append(reads, name+`::int::bigint`)
			default:
				reads = append(reads, name+`::bigint`)
			}
		}
		rows, err := c.tx.Query(ctx, `SELECT `+strings.Join(reads, ", ")+` FROM `+table)
		if err != nil {
			yield(nil, c.c.translate(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := rows.Values()
			if !yield(row, c.c.translate(err)) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, c.c.translate(err))
		}
	}
}

// Replace implements [store.Remembering]. It takes its turn with all others that write.
func (c *Control) Replace(ctx context.Context, tables []transfer.Remembered) error {
	return c.inTurn(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL dialai.copies='on'`); err != nil {
			return err
		}
		for i := range tables {
			if err := replaceTable(ctx, tx, &tables[i]); err != nil {
				return err
			}
		}
		return c.freeze(ctx, tx, "")
	})
}

// Freeze implements [store.Remembering], as [copied] does. It takes the role that owns the tables.
func (c *Control) Freeze(ctx context.Context, to string) error {
	return c.inTurn(ctx, func(tx pgx.Tx) error { return c.freeze(ctx, tx, to) })
}

func (c *Control) freeze(ctx context.Context, tx pgx.Tx, to string) error {
	if _, err := tx.Exec(ctx, `UPDATE meta SET frozen=nullif($1, '')`, to); err != nil {
		return err
	}
	return setTriggers(ctx, tx, transfer.ControlTables, to != "")
}

// inTurn has something written by a connection of its own in turn with all others that write, all of it or nothing.
func (c *Control) inTurn(ctx context.Context, do func(tx pgx.Tx) error) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return c.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return c.failed(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, inTurn, c.lock); err != nil {
			return err
		}
		return do(tx)
	}))
}

func replaceTable(ctx context.Context, tx pgx.Tx, t *transfer.Remembered) error {
	types, err := columnTypes(ctx, tx, t.Table)
	if err != nil {
		return err
	}
	is := map[string]string{}
	for _, t := range types {
		is[t.name] = t.is
	}
	if _, err := tx.Exec(ctx, `DELETE FROM `+t.Table); err != nil {
		return err
	}
	next, stop := iter.Pull2(t.Rows)
	defer stop()
	_, err = tx.CopyFrom(ctx, pgx.Identifier{t.Table}, t.Columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, ok := next()
		if err != nil || !ok {
			return nil, err
		}
		row = slices.Clone(row)
		for i, name := range t.Columns {
			switch v := row[i].(type) {
			case []byte:
				if is[name] == "text" {
					row[i] = string(v)
				}
			case int64:
				if is[name] == "boolean" {
					row[i] = v != 0
				}
			}
		}
		return row, nil
	}))
	if err != nil || !slices.Contains(t.Columns, "id") || t.Table == "audit" { // which numbers its rows itself
		return err
	}
	_, err = tx.Exec(ctx, `SELECT setval(pg_get_serial_sequence('`+t.Table+`', 'id'), max(id)) FROM `+t.Table+` HAVING max(id)>0`)
	return err
}
