package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/lab/trial"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure strategies on data whose truth is known",
		Long:    "Measure strategies on data whose truth is known. No store is read or written, and\nnobody is asked.",
		Example: "  dialai bench decisions --data ./labels",
	}
	cmd.AddCommand(a.benchDecisionsCommand())
	return cmd
}

// benchFlags say what is measured on which data.
type benchFlags struct {
	data, gold, splits, workers, strategies, seed, without, svg string
	eps                                                         float64
	orders                                                      int
	ordersNamed, optionOrder                                    bool
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
1 for each model. The same files, flags and seed print the same numbers.

ECE is how far probabilities are from how often they are right, in the mean of the
splits; BY CHANCE is what it would be on as many questions if each were exactly as often
right as it says. SURE are questions with a probability of .95 or more, WRONG the
error among these.

Of --strategies, semi is Dawid and Skene's with the known truths held. Two more are
measured where they are named: oneCoin, with one reliability for each worker, and
bayesRounds, which is bayes with "learnFrom": "humansAndRounds".

--svg draws how each strategy learns, whether its probabilities mean what they say,
and how often it is wrong on the questions that it is surest of. Draw several sets
into one directory, and its index.html shows them side by side. Sets are named by their
directory, and by the one above it where another set has that name.`,
		Example: `  dialai bench decisions --data ./labels
  dialai bench decisions --data ./labels --gold 10,100 --strategies majority,bayes --json
  dialai bench decisions --data ./labels --workers panel.txt --orders 0
  dialai bench decisions --data ./labels --svg charts && open charts/index.html`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.ordersNamed = cmd.Flags().Changed("orders")
			return a.benchDecisions(f)
		},
	}
	p := cmd.Flags()
	p.StringVar(&f.data, "data", "", "`directory` of the data")
	p.StringVar(&f.gold, "gold", "10,30,100,300", "`numbers` of human decisions to learn from; too large ones are left out")
	p.StringVar(&f.splits, "splits", "20", "`number` of splits to measure, at most 1000, or a file of them")
	p.StringVar(&f.workers, "workers", "", "`file` that lists the workers to keep, one a line")
	p.StringVar(&f.strategies, "strategies", strings.Join(trial.Strategies(), ","), "`names` of the strategies to measure")
	p.StringVar(&f.seed, "seed", "1", "`text` that all draws depend on")
	p.Float64Var(&f.eps, "eps", .1, "promised `error` of the streams")
	p.IntVar(&f.orders, "orders", trial.UsualOrders, "`number` of streams, at most 1000; 0 for none. Where it is left out there are fewer of more than 60,000 answers")
	p.StringVar(&f.svg, "svg", "", "draw into this `directory`, with a page of all sets that were drawn there")
	p.BoolVar(&f.optionOrder, "option-order", false, "measure instead what it does to show options in two orders: how far workers err together, and how panels of a model do")
	p.StringVar(&f.without, "without", "", "`states` of correct.csv to leave out")
	return cmd
}

func (a *app) benchDecisions(f *benchFlags) error {
	if f.data == "" {
		return command.Hinted(command.Usage("no data to measure on"), "name a directory with --data")
	}
	if info, err := os.Stat(f.data); err != nil {
		return command.Usage("%s: %v", f.data, command.Underlying(err))
	} else if !info.IsDir() {
		return command.Usage("%s is a file, not a directory of data", f.data)
	}
	dir := files.Dir(f.data, files.Data)
	if f.svg != "" && (f.optionOrder || trial.HasMarks(dir)) {
		return command.Usage("--svg draws strategies on answer.csv and truth.csv, not promotions nor orders of options: leave it out")
	}
	if info, err := os.Stat(f.svg); err == nil && !info.IsDir() {
		return command.Usage("--svg %s is a file: name a directory", f.svg)
	}
	if trial.HasMarks(dir) {
		return a.benchMarks(dir, f)
	}
	o, file, err := f.options()
	if err != nil {
		return err
	}
	reading := render.NewMeter(a.Screen(), "reading the data", "")
	d, err := command.UntilInterrupted(a.App, func() (*trial.Data, error) { return f.read(dir, file) })
	reading.Stop()
	if err != nil {
		return benchError(f.data, err)
	}
	a.benchWarnings(f.data, d)
	if !f.ordersNamed {
		o.Orders = d.Orders()
	}
	if f.optionOrder {
		return a.benchOrders(d, o)
	}
	if err := a.benchGold(d, o); err != nil {
		return err
	}
	m := render.NewMeter(a.Screen(), "measuring", "parts")
	o.Progress = func(part string, done, of, follow int) {
		m.Part("measuring "+part, int64(done), int64(of), follow > 0)
	}
	r, err := command.UntilInterrupted(a.App, func() (trial.Report, error) { return trial.Measure(d, o), nil })
	m.Stop()
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := writeCharts(f.svg, f.data, r, d); err != nil {
			return err
		}
	}
	return a.Bench(a.Out, r, d)
}

// benchWarnings says what is probably not meant in the files of a directory.
func (a *app) benchWarnings(data string, d *trial.Data) {
	for _, w := range d.Warnings {
		if !a.Flags.Quiet {
			fmt.Fprintf(a.Err, "dialai: %s\n", render.Clean(filepath.Join(data, w)))
		}
	}
}

// benchGold says which numbers of human decisions are more than the data have, which is an
// error if nothing is left to measure.
func (a *app) benchGold(d *trial.Data, o trial.Options) error {
	out, most := trial.Untested(d, o), trial.Most(d, o)
	why := fmt.Sprintf("there %s %s and one has to be left to test", render.Either(len(d.Questions) == 1, "is", "are"), render.Plural(len(d.Questions), "question"))
	if most < len(d.Questions)-1 {
		why = fmt.Sprintf("the shortest split has %s", render.Plural(most, "question"))
	}
	if len(out) == len(o.Gold) {
		return command.Hinted(command.Usage("--gold %d: %s", slices.Min(o.Gold), why), "%s", benchMost(most))
	}
	for _, n := range out {
		if !a.Flags.Quiet {
			fmt.Fprintf(a.Err, "dialai: left out --gold %d: %s; %s\n", n, why, benchMost(most))
		}
	}
	return nil
}

// benchMost says what --gold may be at most.
func benchMost(most int) string {
	if most == 0 {
		return "only --gold 0, which learns from no human decision, can be measured of so few questions"
	}
	return fmt.Sprintf("--gold may be at most %d", most)
}

// benchError says where in the data an error lies, and ends with the exit code of
// wrong input.
func benchError(data string, err error) error {
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing):
		return command.Hinted(command.Usage("%s: %v", filepath.Join(data, missing.Path), missing.Err), "dialai bench decisions --help says which files there are")
	case errors.Is(err, trial.ErrData):
		return command.Usage("%s: %w", data, err)
	}
	return err
}

// options checks the flags. file is that of the splits, if one is named.
func (f *benchFlags) options() (o trial.Options, file string, err error) {
	o = trial.Options{Seed: f.seed, Orders: f.orders, MaxError: f.eps, Parallel: runtime.GOMAXPROCS(0), Splits: trial.MostRuns}
	for s := range strings.SplitSeq(f.gold, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return o, "", command.Usage("--gold: %q is no number", s)
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
		return o, "", command.Usage("%w", err)
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
			return nil, command.Usage("%s: %w", filepath.Dir(splits), err)
		}
	}
	if f.workers == "" {
		return d, nil
	}
	text, err := files.Read(f.workers, files.Workers)
	if err != nil {
		return nil, command.Usage("%s: %v", f.workers, command.Underlying(err))
	}
	ids := strings.Fields(string(text))
	if len(ids) == 0 {
		return nil, command.Usage("%s:1:1: there is no worker in it; expected are ids of workers, one a line", f.workers)
	}
	kept, unknown, ok := d.Restrict(ids)
	if !ok {
		line, column := wordAt(string(text), unknown) // the word itself may be of another file than was meant
		return nil, command.Usage("%s:%d:%d: there is no such worker in the data; expected are ids of workers", f.workers, line, column)
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
	m := render.NewMeter(a.Screen(), "measuring promotions", "")
	list, err := command.UntilInterrupted(a.App, func() ([]trial.Collapse, error) {
		marks, err := trial.ReadMarks(dir, without)
		if err != nil {
			return nil, err
		}
		return trial.Collapses(marks, f.seed, runtime.GOMAXPROCS(0)), nil
	})
	m.Stop()
	if err != nil {
		return benchError(f.data, err)
	}
	return a.Promotions(a.Out, list)
}

// benchOrders prints what showing options in two orders does.
func (a *app) benchOrders(d *trial.Data, o trial.Options) error {
	var correlations []trial.Correlation
	m := render.NewMeter(a.Screen(), "measuring orders of options", "")
	orders, err := command.UntilInterrupted(a.App, func() ([]trial.Order, error) {
		correlations = trial.Correlations(d)
		return trial.Orders(d, o), nil
	})
	m.Stop()
	if err != nil {
		return err
	}
	if len(correlations) == 0 {
		return command.Hinted(command.Usage("no two workers have a model and an order of options"), "workers.csv says them: worker,model,order,cost")
	}
	return a.Orders(a.Out, correlations, orders)
}
