package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dialai/dialai/internal/lab/trial"
)

// Promotions prints what came of promoting models by each rule.
func (st Style) Promotions(out io.Writer, promotions []trial.Collapse) error {
	return list(st, out, promotions, "", []string{"MODEL", "RULE", "STATES", "DESERVING", "PROMOTED", "WRONGLY", "TRAFFIC", "ERROR"}, func(c trial.Collapse) []string {
		return []string{c.Model, c.Rule, strconv.Itoa(c.States), strconv.Itoa(c.Deserving),
			fmt.Sprintf("%.1f", c.Promoted), fmt.Sprintf("%.2f", c.Wrongly), percent(c.Traffic), three(c.AutoError)}
	})
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// Bench prints how strategies do on data whose truth is known.
func (st Style) Bench(out io.Writer, r trial.Report, d *trial.Data) error {
	if st.JSON {
		return errors.Join(Lines(out, r.Accuracies), Lines(out, r.Sequentials), Lines(out, r.Streams))
	}
	if st.Quiet {
		return bestOf(out, r)
	}
	fmt.Fprintf(out, "%d questions, %d workers, %d options, %d states\n\n", len(d.Questions), len(d.Workers), len(d.Classes), len(d.States))
	err := table(out, []string{"HUMANS", "STRATEGY", "ACCURACY", "SD", "LOG-LOSS", "ECE", "BY CHANCE", "SURE", "WRONG"}, r.Accuracies, func(s trial.Accuracy) []string {
		return []string{strconv.Itoa(s.N), s.Strategy, three(s.Accuracy), three(s.SD), three(s.LogLoss), three(s.ECE), three(s.ECEByChance), percent(s.Coverage95), three(s.Error95)}
	})
	if err == nil && len(r.Sequentials) > 0 {
		fmt.Fprintln(out, "\nAsked one after the other"+sampled(r.Sequentials, d)+":")
		err = table(out, []string{"HUMANS", "UNTIL", "ACCURACY", "OF ALL", "VOTES", "OF ALL", "COST", "NOT WORTH IT"}, r.Sequentials, func(s trial.Sequential) []string {
			return []string{strconv.Itoa(s.N), fmt.Sprint(s.Tau), three(s.Accuracy), three(s.AccuracyAll),
				fmt.Sprintf("%.1f", s.Votes), fmt.Sprintf("%.1f", s.VotesAll), percent(s.Cost / cmp.Or(s.CostAll, 1)), ifKnown(s.Everyone)}
		})
		fmt.Fprintln(out, "OF ALL is bayes with all votes at once, without stacking, which asking in turn cannot use: the\nrows above have it. In the splits that are NOT WORTH IT everyone is asked, as an engine would; that is\nnot known below 50 human decisions (-).")
	}
	if err == nil && len(r.Streams) > 0 {
		fmt.Fprintf(out, "\nIn a stream, errors of automatic decisions at most %v:\n", r.Streams[0].Eps)
		err = table(out, []string{"STRATEGY", "HUMANS ASKED", "SECOND HALF", "ERROR", "RUNS ABOVE"}, r.Streams, func(s trial.Stream) []string {
			return []string{s.Strategy, percent(s.HumansAsked), percent(s.HumansAskedSecondHalf), three(s.AutoError), fmt.Sprintf("%d of %d", s.RunsAboveEps, s.Runs)}
		})
		fmt.Fprintf(out, "RUNS ABOVE counts the runs, each in an order of its own, in which more than %v of the\nautomatic decisions were wrong, and by more than chance (95 %% lower bound of the error).\n", r.Streams[0].Eps)
	}
	return err
}

// ifKnown is percent, "-" for nil.
func ifKnown(v *float64) string {
	if v == nil {
		return "-"
	}
	return percent(*v)
}

// sampled says that what was asked in turn is a sample of the questions, "" if it is not.
func sampled(list []trial.Sequential, d *trial.Data) string {
	if s := list[0]; s.Questions < len(d.Questions)-s.N {
		return fmt.Sprintf(" (on %d questions of each split)", s.Questions)
	}
	return ""
}

// bestOf prints for each number of human decisions the most accurate strategy, of equals the
// first.
func bestOf(out io.Writer, r trial.Report) (err error) {
	best := []trial.Accuracy{}
	for _, a := range r.Accuracies {
		i := slices.IndexFunc(best, func(b trial.Accuracy) bool { return b.N == a.N })
		if i < 0 {
			best = append(best, a)
		} else if a.Accuracy > best[i].Accuracy {
			best[i] = a
		}
	}
	for _, a := range best {
		_, err = fmt.Fprintf(out, "%d %s %s\n", a.N, a.Strategy, three(a.Accuracy))
	}
	return err
}

// Orders prints how far workers err together, and how panels of a model do.
func (st Style) Orders(out io.Writer, correlations []trial.Correlation, orders []trial.Order) error {
	if st.JSON {
		return errors.Join(Lines(out, correlations), Lines(out, orders))
	}
	same := map[bool]string{true: "same", false: "other"}
	err := table(out, []string{"MODEL", "ORDER", "PAIRS", "CORRELATION OF ERRORS"}, correlations, func(c trial.Correlation) []string {
		return []string{same[c.SameModel], same[c.SameOrder], strconv.Itoa(c.Pairs), fmt.Sprintf("%.2f", c.Phi)}
	})
	if err != nil || len(orders) == 0 {
		return err
	}
	fmt.Fprintln(out)
	return table(out, []string{"HUMANS", "STRATEGY", "VOTES", "MODELS", "ONE ORDER", "ALTERNATING"}, orders, func(r trial.Order) []string {
		return []string{strconv.Itoa(r.N), r.Strategy, strconv.Itoa(r.Votes), strconv.Itoa(r.Models), three(r.One), three(r.Alternating)}
	})
}
