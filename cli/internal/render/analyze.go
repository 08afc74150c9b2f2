package render

import (
	"bufio"
	"fmt"
	"io"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/guardlog"
)

// Analysis prints what an event log of guards comes to.
func (st Style) Analysis(w io.Writer, r guardlog.AnalysisLine) error {
	if st.JSON {
		return JSON(w, r)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Lines:     %d (%d malformed)\n", r.Lines, r.Malformed)
	if !st.Quiet {
		for _, p := range r.Problems {
			fmt.Fprintf(out, "  line %d: %s\n", p.Line, Clean(p.Problem))
		}
		for i, t := range r.Types {
			label := "Records:  "
			if i > 0 {
				label = "          "
			}
			fmt.Fprintf(out, "%s %d %s\n", label, t.Count, Clean(t.Type))
		}
		if r.Open != (guardlog.SpentCount{}) {
			fmt.Fprintf(out, "Open:      %d tokens, $%s, without a verdict\n", exact.AddSat(r.Open.InputTokens, r.Open.OutputTokens), r.Open.USD)
		}
	}
	rows := [][]string{{"VERDICT", "COUNT", "INPUT", "OUTPUT", "TOKENS EACH", "USD"}}
	for _, v := range r.Verdicts {
		rows = append(rows, []string{v.Verdict, fmt.Sprint(v.Count), fmt.Sprint(v.InputTokens), fmt.Sprint(v.OutputTokens), fmt.Sprint(v.TokensEach), v.USD.String()})
	}
	sections := [][][]string{rows}
	rows = [][]string{{"REASON", "COUNT"}}
	for _, reason := range r.Reasons {
		rows = append(rows, []string{reason.Code, fmt.Sprint(reason.Count)})
	}
	sections = append(sections, rows)
	rows = [][]string{{"SCORE", "COUNT", "MIN", "P10", "P50", "P90", "P99", "MAX"}}
	for _, s := range r.Scores {
		row := []string{s.Stage, fmt.Sprint(s.Count)}
		for _, q := range []float64{s.Min, s.P10, s.P50, s.P90, s.P99, s.Max} {
			row = append(row, fmt.Sprintf("%.4g", q))
		}
		rows = append(rows, row)
	}
	for _, rows := range append(sections, rows) {
		if len(rows) == 1 {
			continue
		}
		fmt.Fprintln(out)
		if err := Table(out, rows); err != nil {
			return err
		}
	}
	return out.Flush()
}
