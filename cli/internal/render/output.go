package render

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dialai/dialai/internal/text"
)

// JSON prints v as one line.
func JSON(w io.Writer, v any) error { return text.WriteJSON(w, v) }

// Table prints rows in columns.
func Table(w io.Writer, rows [][]string) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, Clean(cell))
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

// list prints values: as JSON, one a line, or as a table. none is said where there are
// none; "" prints the head of the table all the same.
func list[T any](st Style, w io.Writer, values []T, none string, head []string, row func(T) []string) error {
	switch {
	case st.JSON:
		return Lines(w, values)
	case len(values) == 0 && none != "":
		_, err := fmt.Fprintln(w, none)
		return err
	}
	return table(w, head, values, row)
}

// table prints a head, and a row for each value.
func table[T any](w io.Writer, head []string, values []T, row func(T) []string) error {
	rows := [][]string{head}
	for _, v := range values {
		rows = append(rows, row(v))
	}
	return Table(w, rows)
}

// Lines prints each value as one line of JSON.
func Lines[T any](w io.Writer, values []T) error {
	for _, v := range values {
		if err := JSON(w, v); err != nil {
			return err
		}
	}
	return nil
}
