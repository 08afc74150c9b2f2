package render

import (
	"cmp"
	"fmt"
	"io"

	"github.com/dialai/dialai/report"
)

// Spent prints what the sessions of a machine have spent.
func (st Style) Spent(out io.Writer, spent []report.Spent) error {
	head := []string{"DAY", "SPECIALIST", "MODEL", "CALLS", "TOKENS IN", "TOKENS OUT", "COST", "ESTIMATED", "NO PRICE", "BY GUARDS"}
	return list(st, out, spent, "Nothing was spent.", head, func(s report.Spent) []string {
		guards := "-"
		if s.Guards != nil {
			guards = "$" + s.Guards.CostUSD.String()
		}
		return []string{cmp.Or(s.Day, "-"), cmp.Or(s.SpecialistID, "-"), cmp.Or(s.Model, "-"), fmt.Sprint(s.Calls), fmt.Sprint(s.NumInputTokens), fmt.Sprint(s.NumOutputTokens), "$" + s.CostUSD.String(), fmt.Sprint(s.Estimated), fmt.Sprint(s.Unpriced), guards}
	})
}
