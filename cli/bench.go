package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/files"
	"github.com/dialai/dialai/lab/trial"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure strategies on data whose truth is known",
		Long:    "Measure strategies on data whose truth is known. No store is read or written, and\nnobody is asked.",
		Example: "  dialai bench decisions --data ./labels",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.benchDecisionsCommand())
	return cmd
}

// benchFlags say what is measured on which data.
type benchFlags struct {
	data, gold, splits, workers, strategies, seed, without string
	eps                                                    float64
	orders                                                 int
	optionOrder                                            bool
}

func (a *app) benchDecisionsCommand() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "decisions --data <directory>",
		Short: "Compare strategies after so many human decisions",
		Long: `Compare how strategies do after so many human decisions, on questions with a known
truth: accuracy, log-loss, calibration, how often they are sure and wrong, what
asking one after the other saves, and how many humans a stream of questions
still needs under a promise.

The directory holds these files:

  answer.csv   question,worker,answer   a repeated pair counts as its later row
  truth.csv    question,truth[,state]
  workers.csv  worker,model,order,cost  optional
  splits.csv   split,question           optional: of each split the first n
                                        questions are learned from, every other
                                        question is tested

or, for a replay of promotions, correct.csv: question,state and a column of 0 and
1 for each model. The same files, flags and seed print the same numbers.`,
		Example: `  dialai bench decisions --data ./labels
  dialai bench decisions --data ./labels --gold 10,100 --strategies majority,bayes --json
  dialai bench decisions --data ./labels --workers panel.txt --orders 0`,
		Args: arguments,
		RunE: func(*cobra.Command, []string) error { return a.benchDecisions(f) },
	}
	p := cmd.Flags()
	p.StringVar(&f.data, "data", "", "`directory` of the data")
	p.StringVar(&f.gold, "gold", "10,30,100,300", "`numbers` of human decisions to learn from; too large ones are left out")
	p.StringVar(&f.splits, "splits", "20", "`number` of splits to measure, at most 1000, or a file of them")
	p.StringVar(&f.workers, "workers", "", "`file` that lists the workers to keep, one a line")
	p.StringVar(&f.strategies, "strategies", strings.Join(trial.Strategies(), ","), "`names` of the strategies to measure")
	p.StringVar(&f.seed, "seed", "1", "`text` that all draws depend on")
	p.Float64Var(&f.eps, "eps", .1, "promised `error` of the streams")
	p.IntVar(&f.orders, "orders", 40, "`number` of streams, at most 1000; 0 for none")
	p.BoolVar(&f.optionOrder, "option-order", false, "measure instead what it does to show options in two orders: how far workers err together, and how panels of a model do")
	p.StringVar(&f.without, "without", "", "`states` of correct.csv to leave out")
	return cmd
}

func (a *app) benchDecisions(f *benchFlags) error {
	if f.data == "" {
		return hinted(usage("no data to measure on"), "name a directory with --data")
	}
	if info, err := os.Stat(f.data); err != nil {
		return usage("%s: %v", f.data, underlying(err))
	} else if !info.IsDir() {
		return usage("%s is a file, not a directory of data", f.data)
	}
	dir := files.Dir(f.data, files.Data)
	if trial.HasMarks(dir) {
		return a.benchMarks(dir, f)
	}
	o, file, err := f.options()
	if err != nil {
		return err
	}
	reading := a.newMeter("reading the data", "")
	d, err := untilInterrupted(a, func() (*trial.Data, error) { return f.read(dir, file) })
	reading.stop()
	if err != nil {
		return benchError(f.data, err)
	}
	if d.Ignored > 0 {
		fmt.Fprintf(a.err, "dialai: left out %s to questions without a truth\n", plural(d.Ignored, "answer"))
	}
	if f.optionOrder {
		return a.benchOrders(d, o)
	}
	for _, n := range trial.Untested(d, o) {
		fmt.Fprintf(a.err, "dialai: left out --gold %d: not every split has as many questions, and one more to test\n", n)
	}
	m := a.newMeter("measuring", "parts")
	o.Progress = func(part string, done, of int) { m.of("measuring "+part, int64(done), int64(of)) }
	r, err := untilInterrupted(a, func() (trial.Report, error) { return trial.Measure(d, o), nil })
	m.stop()
	if err != nil {
		return err
	}
	return a.printBench(a.out, r, d)
}

// benchError says where in the data an error lies, and ends with the exit code of
// wrong input.
func benchError(data string, err error) error {
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing):
		return hinted(usage("%s: %v", filepath.Join(data, missing.Path), missing.Err), "dialai bench decisions --help says which files there are")
	case errors.Is(err, trial.ErrData):
		return usage("%s: %w", data, err)
	}
	return err
}

// options checks the flags. file is that of the splits, if one is named.
func (f *benchFlags) options() (o trial.Options, file string, err error) {
	o = trial.Options{Seed: f.seed, Orders: f.orders, MaxError: f.eps, Parallel: runtime.GOMAXPROCS(0), Splits: trial.MostRuns}
	for s := range strings.SplitSeq(f.gold, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return o, "", usage("--gold: %q is no number", s)
		}
		o.Gold = append(o.Gold, n)
	}
	if n, err := strconv.Atoi(f.splits); err == nil {
		o.Splits = n
	} else {
		file = f.splits
	}
	for s := range strings.SplitSeq(f.strategies, ",") {
		o.Strategies = append(o.Strategies, strings.TrimSpace(s))
	}
	if err := o.Check(); err != nil {
		return o, "", usage("%w", err)
	}
	return o, file, nil
}

func (f *benchFlags) read(dir fs.FS, splits string) (*trial.Data, error) {
	d, err := trial.Read(dir)
	if err != nil {
		return nil, err
	}
	if splits != "" {
		if err := d.ReadSplits(files.Dir(filepath.Dir(splits), files.Data), filepath.Base(splits)); err != nil {
			return nil, usage("%s: %w", filepath.Dir(splits), err)
		}
	}
	if f.workers == "" {
		return d, nil
	}
	text, err := files.Read(f.workers, files.Workers)
	if err != nil {
		return nil, usage("%s: %v", f.workers, underlying(err))
	}
	kept, unknown, ok := d.Restrict(strings.Fields(string(text)))
	if !ok {
		line, column := wordAt(string(text), unknown) // the word itself may be of another file than was meant
		return nil, usage("%s:%d:%d: there is no such worker in the data; expected are ids of workers", f.workers, line, column)
	}
	return kept, nil
}

// wordAt returns the line and the column, in bytes from 1, of the first word of a text
// that is word.
func wordAt(text, word string) (line, column int) {
	for s := range strings.Lines(text) {
		line++
		at := 0
		for _, w := range strings.Fields(s) {
			at += strings.Index(s[at:], w)
			if w == word {
				return line, at + 1
			}
			at += len(w)
		}
	}
	return line, 1
}

func (a *app) benchMarks(dir fs.FS, f *benchFlags) error {
	var without []string
	for s := range strings.SplitSeq(f.without, ",") {
		if s = strings.TrimSpace(s); s != "" {
			without = append(without, s)
		}
	}
	meter := a.newMeter("measuring promotions", "")
	list, err := untilInterrupted(a, func() ([]trial.Collapse, error) {
		m, err := trial.ReadMarks(dir, without)
		if err != nil {
			return nil, err
		}
		return trial.Collapses(m, f.seed, runtime.GOMAXPROCS(0)), nil
	})
	meter.stop()
	if err != nil {
		return benchError(f.data, err)
	}
	rows := [][]string{{"MODEL", "RULE", "STATES", "DESERVING", "PROMOTED", "WRONGLY", "TRAFFIC", "ERROR"}}
	for _, c := range list {
		if a.flags.json {
			if err := printJSON(a.out, c); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{c.Model, c.Rule, strconv.Itoa(c.States), strconv.Itoa(c.Deserving),
			fmt.Sprintf("%.1f", c.Promoted), fmt.Sprintf("%.2f", c.Wrongly), percent(c.Traffic), three(c.AutoError)})
	}
	if a.flags.json {
		return nil
	}
	return table(a.out, rows)
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func (a *app) printBench(out io.Writer, r trial.Report, d *trial.Data) error {
	if a.flags.json {
		return printBenchJSON(out, r)
	}
	fmt.Fprintf(out, "%d questions, %d workers, %d options, %d states\n\n", len(d.Questions), len(d.Workers), len(d.Classes), len(d.States))
	rows := [][]string{{"HUMANS", "STRATEGY", "ACCURACY", "SD", "LOG-LOSS", "ECE", "SURE", "WRONG"}}
	for _, s := range r.Accuracies {
		rows = append(rows, []string{strconv.Itoa(s.N), s.Strategy, three(s.Accuracy), three(s.SD), three(s.LogLoss), three(s.ECE), percent(s.Coverage95), three(s.Error95)})
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if len(r.Sequentials) > 0 {
		fmt.Fprintln(out, "\nAsked one after the other:")
		rows = [][]string{{"HUMANS", "UNTIL", "ACCURACY", "OF ALL", "VOTES", "OF ALL", "COST", "NOT WORTH IT"}}
		for _, s := range r.Sequentials {
			rows = append(rows, []string{strconv.Itoa(s.N), fmt.Sprint(s.Tau), three(s.Accuracy), three(s.AccuracyAll),
				fmt.Sprintf("%.1f", s.Votes), fmt.Sprintf("%.1f", s.VotesAll), percent(s.Cost / cmp.Or(s.CostAll, 1)), percent(s.Everyone)})
		}
		if err := table(out, rows); err != nil {
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
	return table(out, rows)
}

func printBenchJSON(out io.Writer, r trial.Report) error {
	for _, s := range r.Accuracies {
		if err := printJSON(out, s); err != nil {
			return err
		}
	}
	for _, s := range r.Sequentials {
		if err := printJSON(out, s); err != nil {
			return err
		}
	}
	for _, s := range r.Streams {
		if err := printJSON(out, s); err != nil {
			return err
		}
	}
	return nil
}
