package cli

import (
	"fmt"
	"strconv"

	"github.com/dialai/dialai/lab/trial"
)

// benchOrders prints what showing options in two orders does.
func (a *app) benchOrders(d *trial.Data, o trial.Options) error {
	var correlations []trial.Correlation
	m := a.newMeter("measuring orders of options", "")
	orders, err := untilInterrupted(a, func() ([]trial.Order, error) {
		correlations = trial.Correlations(d)
		return trial.Orders(d, o), nil
	})
	m.stop()
	if err != nil {
		return err
	}
	if len(correlations) == 0 {
		return hinted(usage("no two workers have a model and an order of options"), "workers.csv says them: worker,model,order,cost")
	}
	if a.flags.json {
		if err := printLines(a.out, correlations); err != nil {
			return err
		}
		return printLines(a.out, orders)
	}
	same := map[bool]string{true: "same", false: "other"}
	rows := [][]string{{"MODEL", "ORDER", "PAIRS", "CORRELATION OF ERRORS"}}
	for _, c := range correlations {
		rows = append(rows, []string{same[c.SameModel], same[c.SameOrder], strconv.Itoa(c.Pairs), fmt.Sprintf("%.2f", c.Phi)})
	}
	if err := table(a.out, rows); err != nil || len(orders) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	rows = [][]string{{"HUMANS", "STRATEGY", "VOTES", "MODELS", "ONE ORDER", "ALTERNATING"}}
	for _, r := range orders {
		rows = append(rows, []string{strconv.Itoa(r.N), r.Strategy, strconv.Itoa(r.Votes), strconv.Itoa(r.Models), three(r.One), three(r.Alternating)})
	}
	return table(a.out, rows)
}
