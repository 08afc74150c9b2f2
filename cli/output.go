package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// with runs f with an engine that is closed afterwards.
func (a *app) with(ctx context.Context, does access, f func(e *engine, out *bufio.Writer) error) error {
	e, err := a.engine(ctx, does, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	out := bufio.NewWriter(a.out)
	return errors.Join(f(e, out), out.Flush())
}

// printJSON prints v as one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, clean(cell))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(b.Bytes()) { // empty cells at the end leave blanks
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printLines prints each value as one line of JSON.
func printLines[T any](w io.Writer, values []T) error {
	for _, v := range values {
		if err := printJSON(w, v); err != nil {
			return err
		}
	}
	return nil
}
