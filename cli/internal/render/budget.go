package render

import (
	"bufio"
	"fmt"
	"io"

	"github.com/dialai/dialai/internal/guardlog"
)

// Budget prints what a trace of calls makes of a budget.
func (st Style) Budget(w io.Writer, r guardlog.BudgetLine) error {
	if st.JSON {
		return JSON(w, r)
	}
	out := bufio.NewWriter(w)
	if !st.Quiet {
		fmt.Fprintf(out, "Charged:  %s\n", Plural(r.Records, "record"))
		fmt.Fprintf(out, "Spent:    %d tokens read, %d written, $%s in %s\n", r.InputTokens, r.OutputTokens, r.USD, Plural(int(r.Calls), "call"))
		if r.Unpriced > 0 {
			fmt.Fprintf(out, "Unpriced: %s, whose dollars are not known\n", Plural(int(r.Unpriced), "call"))
		}
		printMark(out, "Soft:    ", r.Soft)
	}
	printMark(out, "Crossed: ", r.Crossed)
	printMark(out, "Tripped: ", r.Tripped)
	if r.Tripped == nil && r.Crossed == nil {
		fmt.Fprintln(out, "The budget was not crossed.")
	}
	return out.Flush()
}

func printMark(out io.Writer, label string, m *guardlog.BudgetMark) {
	if m == nil {
		return
	}
	fmt.Fprintf(out, "%s record %d%s: %s: %s\n", label, m.Record, When(m.ID != "", " ("+Clean(m.ID)+")"), m.Code, m.Message)
}
