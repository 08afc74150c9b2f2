package render

import (
	"slices"
	"unicode/utf8"
)

// A table on a narrow terminal. What a row is about (its id, its status) is never cut: first
// the widest of the other columns are cut, then columns are left out from the last one on,
// as far as it takes. Where there is no terminal nothing is cut.

// narrowest is to how many characters a column is cut before one is left out.
const narrowest = 8

// gap stands between columns.
const gap = 2

// fit returns rows, the first of which is the head, so that they take no more than width
// characters, but for the columns of kept, which stay as they are; 0 is any width.
func fit(rows [][]string, width int, kept ...string) [][]string {
	if width <= 0 || len(rows) == 0 {
		return rows
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(Clean(cell)))
		}
	}
	keeps := func(i int) bool { return slices.Contains(kept, rows[0][i]) }
	over := func() (n int) {
		for _, w := range widths {
			if w >= 0 {
				n += w + gap
			}
		}
		return n - gap - width
	}
	for over() > 0 {
		widest := -1
		for i, w := range widths {
			if !keeps(i) && w > narrowest && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for i := len(widths) - 1; i >= 0 && over() > 0; i-- {
		if !keeps(i) {
			widths[i] = -1 // left out
		}
	}
	return cut(rows, widths)
}

// cut returns rows with each column cut to its width, and without those below 0.
func cut(rows [][]string, widths []int) [][]string {
	fitted := make([][]string, len(rows))
	for r, row := range rows {
		for i, cell := range row {
			if widths[i] < 0 {
				continue
			}
			if runes := []rune(Clean(cell)); len(runes) > widths[i] {
				cell = string(runes[:widths[i]-1]) + "…"
			}
			fitted[r] = append(fitted[r], cell)
		}
	}
	return fitted
}
