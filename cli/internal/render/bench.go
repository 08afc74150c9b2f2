package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/dialai/dialai/internal/lab/trial"
)

// Promotions prints what came of promoting models by each rule.
func (st Style) Promotions(out io.Writer, list []trial.Collapse) error {
	if st.JSON {
		return Lines(out, list)
	}
	rows := [][]string{{"MODEL", "RULE", "STATES", "DESERVING", "PROMOTED", "WRONGLY", "TRAFFIC", "ERROR"}}
	for _, c := range list {
		rows = append(rows, []string{c.Model, c.Rule, strconv.Itoa(c.States), strconv.Itoa(c.Deserving),
			fmt.Sprintf("%.1f", c.Promoted), fmt.Sprintf("%.2f", c.Wrongly), percent(c.Traffic), three(c.AutoError)})
	}
	return Table(out, rows)
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// Bench prints how strategies do on data whose truth is known.
func (st Style) Bench(out io.Writer, r trial.Report, d *trial.Data) error {
	if st.JSON {
		return printBenchJSON(out, r)
	}
	fmt.Fprintf(out, "%d questions, %d workers, %d options, %d states\n\n", len(d.Questions), len(d.Workers), len(d.Classes), len(d.States))
	rows := [][]string{{"HUMANS", "STRATEGY", "ACCURACY", "SD", "LOG-LOSS", "ECE", "SURE", "WRONG"}}
	for _, s := range r.Accuracies {
		rows = append(rows, []string{strconv.Itoa(s.N), s.Strategy, three(s.Accuracy), three(s.SD), three(s.LogLoss), three(s.ECE), percent(s.Coverage95), three(s.Error95)})
	}
	if err := Table(out, rows); err != nil {
		return err
	}
	if len(r.Sequentials) > 0 {
		fmt.Fprintln(out, "\nAsked one after the other:")
		rows = [][]string{{"HUMANS", "UNTIL", "ACCURACY", "OF ALL", "VOTES", "OF ALL", "COST", "NOT WORTH IT"}}
		for _, s := range r.Sequentials {
			rows = append(rows, []string{strconv.Itoa(s.N), fmt.Sprint(s.Tau), three(s.Accuracy), three(s.AccuracyAll),
				fmt.Sprintf("%.1f", s.Votes), fmt.Sprintf("%.1f", s.VotesAll), percent(s.Cost / cmp.Or(s.CostAll, 1)), percent(s.Everyone)})
		}
		if err := Table(out, rows); err != nil {
			return err
		}
	}
	return printStreams(out, r.Streams)
}

func printStreams(out io.Writer, list []trial.Stream) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nIn a stream, errors of automatic decisions at most %v:\n", list[0].Eps)
	rows := [][]string{{"STRATEGY", "HUMANS ASKED", "SECOND HALF", "ERROR", "RUNS ABOVE"}}
	for _, s := range list {
		rows = append(rows, []string{s.Strategy, percent(s.HumansAsked), percent(s.HumansAskedSecondHalf), three(s.AutoError), fmt.Sprintf("%d of %d", s.RunsAboveEps, s.Runs)})
	}
	return Table(out, rows)
}

func printBenchJSON(out io.Writer, r trial.Report) error {
	if err := Lines(out, r.Accuracies); err != nil {
		return err
	}
	if err := Lines(out, r.Sequentials); err != nil {
		return err
	}
	return Lines(out, r.Streams)
}

// Orders prints how far workers err together, and how panels of a model do.
func (st Style) Orders(out io.Writer, correlations []trial.Correlation, orders []trial.Order) error {
	if st.JSON {
		if err := Lines(out, correlations); err != nil {
			return err
		}
		return Lines(out, orders)
	}
	same := map[bool]string{true: "same", false: "other"}
	rows := [][]string{{"MODEL", "ORDER", "PAIRS", "CORRELATION OF ERRORS"}}
	for _, c := range correlations {
		rows = append(rows, []string{same[c.SameModel], same[c.SameOrder], strconv.Itoa(c.Pairs), fmt.Sprintf("%.2f", c.Phi)})
	}
	if err := Table(out, rows); err != nil || len(orders) == 0 {
		return err
	}
	fmt.Fprintln(out)
	rows = [][]string{{"HUMANS", "STRATEGY", "VOTES", "MODELS", "ONE ORDER", "ALTERNATING"}}
	for _, r := range orders {
		rows = append(rows, []string{strconv.Itoa(r.N), r.Strategy, strconv.Itoa(r.Votes), strconv.Itoa(r.Models), three(r.One), three(r.Alternating)})
	}
	return Table(out, rows)
}
