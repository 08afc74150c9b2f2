package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/dialai/dialai/session"
)

// What a server remembers has the same tables in a file and in a database, with columns of the same names: so it is copied table by
// table, whatever is in them, in one transaction that puts it in the place of what was there, and then compared row by row. A file
// numbers rows that need no number in a database; those numbers are made there.
//
// For good it is frozen as its store is (transfer.go), once that is, so that it names no place of the log that the copy lacks.
//
// What tells a store, its processes and its commits from others is of the store, and is not copied.

// ControlTables are those that are copied, and not written to while it is frozen.
var ControlTables = []string{"receipts", "audit", "keys", "machines", "versions", "claims", "step_times", "bindings", "sign_ins", "webhooks", "deliveries", "jobs", "results"}

// Contents is what a server remembers, as it is at one moment. It is not for concurrent use. Close must be called.
type Contents interface {
	// Columns returns the names of the columns of a table.
	Columns(ctx context.Context, table string) ([]string, error)
	// Rows yields what stands in columns of the rows of a table, in any order: an int64, []byte, also for a text, or nil. A row
	// is valid until the next one.
	Rows(ctx context.Context, table string, columns []string) iter.Seq2[[]any, error]
	Close() error
}

// A Remembering keeps what a server remembers.
type Remembering interface {
	Contents(ctx context.Context) (Contents, error)
	// Freeze has everybody who writes refused once it returns, and told the new name of the store; with "" nobody is any more.
	Freeze(ctx context.Context, to string) error
	// Replace puts rows in the place of all that is in tables, all or nothing. It can be written to then, if it was frozen.
	Replace(ctx context.Context, tables []Remembered) error
}

// Remembered is one table.
type Remembered struct {
	Table   string
	Columns []string
	Rows    iter.Seq2[[]any, error] // as [Contents] Rows yields them
}

// CopyControl puts what a server remembers in one place in the place of what is remembered in another one.
func CopyControl(ctx context.Context, from, to Remembering) (err error) {
	source, err := from.Contents(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, source.Close()) }()
	columns, err := commonColumns(ctx, source, to)
	if err != nil {
		return err
	}
	var all []Remembered
	for _, table := range ControlTables {
		all = append(all, Remembered{table, columns[table], source.Rows(ctx, table, columns[table])})
	}
	if err := to.Replace(ctx, all); err != nil {
		return err
	}
	target, err := to.Contents(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, target.Close()) }()
	for _, table := range ControlTables {
		was, err := sum(source.Rows(ctx, table, columns[table]))
		if err != nil {
			return err
		}
		is, err := sum(target.Rows(ctx, table, columns[table]))
		if err != nil {
			return err
		}
		if was != is {
			return &session.CorruptError{What: "the copy of what a server remembers", Problem: fmt.Sprintf("table %s has %d rows that are not the %d which were copied", table, is.rows, was.rows)}
		}
	}
	return nil
}

// ControlEmpty reports whether nothing is remembered.
func ControlEmpty(ctx context.Context, of Remembering) (empty bool, err error) {
	c, err := of.Contents(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, c.Close()) }()
	for _, table := range ControlTables {
		columns, err := c.Columns(ctx, table)
		if err != nil {
			return false, err
		}
		for _, err := range c.Rows(ctx, table, columns[:min(1, len(columns))]) {
			return false, err
		}
	}
	return true, nil
}

// commonColumns returns the columns of each table, which both places have.
func commonColumns(ctx context.Context, source Contents, to Remembering) (columns map[string][]string, err error) {
	target, err := to.Contents(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, target.Close()) }()
	columns = map[string][]string{}
	for _, table := range ControlTables {
		a, err := source.Columns(ctx, table)
		if err != nil {
			return nil, err
		}
		b, err := target.Columns(ctx, table)
		if err != nil {
			return nil, err
		}
		for _, name := range a {
			if slices.Contains(b, name) {
				columns[table] = append(columns[table], name)
			}
		}
		for _, name := range append(a, b...) {
			if name != "id" && !slices.Contains(columns[table], name) {
				return nil, &Refusal{fmt.Sprintf("what a server remembers has the column %s of %s in one of the two only", name, table), "copy with the program of the newer version"}
			}
		}
	}
	return columns, nil
}

// A tableSum is of the rows of a table, in whatever order they are.
type tableSum struct {
	rows int64
	sum  [4]uint64
}

func sum(rows iter.Seq2[[]any, error]) (s tableSum, err error) {
	for row, err := range rows {
		if err != nil {
			return s, err
		}
		var text []byte
		for _, value := range row {
			switch v := value.(type) {
			case int64:
				text = binary.BigEndian.AppendUint64(append(text, 1), uint64(v))
			case []byte:
				text = append(binary.BigEndian.AppendUint64(append(text, 2), uint64(len(v))), v...)
			case nil:
				text = append(text, 0)
			default:
				return s, fmt.Errorf("a value of type %T is not known", v)
			}
		}
		hash := sha256.Sum256(text)
		for i := range s.sum {
			s.sum[i] += binary.BigEndian.Uint64(hash[8*i:])
		}
		s.rows++
	}
	return s, nil
}
