package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
)

// Calibration prints how stated probabilities compare with what humans chose.
func (st Style) Calibration(out io.Writer, c *report.Calibration) error {
	switch {
	case st.JSON:
		return JSON(out, c)
	case c.Looks == 0:
		_, err := fmt.Fprintln(out, "No human has looked at a round in which bayes had stated a probability.")
		return err
	}
	err := table(out, []string{"STATED", "LOOKS", "ON AVERAGE", "RIGHT", "AT 90 %"}, c.Bins, func(b trust.CalibrationBin) []string {
		row := []string{interval(b.From, b.To), fmt.Sprint(b.N), "-", "-", "-"}
		if b.N > 0 {
			row[2], row[3], row[4] = b.P.Text2(), b.Right.Text2(), interval(*b.Low, *b.High)
		}
		return row
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, calibration error %.3f\n", Plural(int(c.Looks), "look"), c.ECE.Float())
	if !c.Enough {
		_, err = fmt.Fprintf(out, "That is not enough: below %d looks these figures say nothing.\n", trust.EnoughLooks)
	}
	return err
}

func interval(from, to exact.Billionths) string { return from.Text2() + " to " + to.Text2() }
