package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/report"
)

// pointsShown is how many of the newest points people see.
const pointsShown = 20

// TrustHistory prints what somebody's word has counted for.
func (st Style) TrustHistory(out io.Writer, t *report.TrustSeries) error {
	now := t.Points[len(t.Points)-1]
	switch {
	case st.JSON:
		return JSON(out, t)
	case st.Quiet:
		_, err := fmt.Fprintf(out, "%s %s %s\n", Clean(t.State), Clean(t.SpecialistID), now.Trust)
		return err
	}
	fmt.Fprintf(out, "State %s, %s: trust %s\n", Clean(t.State), Clean(Who(t.SpecialistID, t.Human)), now.Trust.Text2())
	rows := [][]string{{"  NUMBER", "TIME", "TRUST", "AGREED", "RECORD OF", "AT 90 %", "SESSION"}}
	for _, p := range t.Points[max(0, len(t.Points)-pointsShown):] {
		at, of := "", ""
		if p.At != 0 {
			at = p.At.String()
		}
		if p.SessionID != "" {
			of = st.ID(p.SessionID)
		}
		rows = append(rows, []string{fmt.Sprintf("  %d", p.Index), at, p.Trust.Text2(), agreed(p.K, p.N), p.Level, interval(p.Low, p.High), of})
	}
	if err := Table(out, rows); err != nil {
		return err
	}
	for _, m := range t.Marks {
		what := m.Kind
		for _, s := range []string{m.Version, string(m.Stage), m.SpecialistID, m.Reason} {
			if s != "" {
				what += " " + s
			}
		}
		fmt.Fprintf(out, "  at %d: %s\n", m.Index, Clean(what))
	}
	_, err := fmt.Fprintln(out)
	return err
}
