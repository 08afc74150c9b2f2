package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON prints v as one line.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(Visible(b.Bytes()))
	return err
}

// Visible returns JSON with escapes for what clean would replace: JSON asks for those of
// C0 only, and a terminal obeys others too. What it says is the same.
func Visible(text []byte) []byte {
	if !bytes.ContainsFunc(text, unseen) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case !unseen(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// unseen reports whether r stands inside a string of JSON and must not reach a terminal;
// outside of strings there are only blanks of its kind.
func unseen(r rune) bool { return r >= 0x7F && printable(r) != r }

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
