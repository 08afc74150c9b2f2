package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/files"
	"github.com/dialai/dialai/verdict"
)

// Exit codes of analyze and replay beside 0 and that of wrong usage.
const (
	analyzeMalformed = 1
	replayDiffers    = 1
)

func (a *app) analyzeCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "analyze <log>",
		Short: "Sum up an event log of guards: verdicts, reasons, scores, tokens",
		Long: `Read an event log of guards, a line at a time, and sum it up: how often each
verdict and each reason was given, how the scores of probes are spread, and what
was spent on the way to each verdict. "-" reads stdin. Logs come from dialai log
--guard, from a truth gate's events, or from dialai check --stateful.

Lines that cannot be read are counted, and the first ones are named; a file with no
others is the wrong one.

Exit codes: 0 fine, 1 malformed lines under --strict, 3 wrong usage or file.`,
		Example: `  dialai analyze guard.jsonl
  dialai log 0b9c1d3e-… --guard | dialai analyze - --strict --json`,
		Args: arguments,
		RunE: func(_ *cobra.Command, args []string) error { return a.analyze(args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let malformed lines fail")
	return a.guardUsage(cmd)
}

// openLog opens a log of any length; "-" is stdin. An interrupt ends the wait for it,
// whatever it is.
func (a *app) openLog(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := untilInterrupted(a, func() (*os.File, error) { return files.Open(path) })
	if errors.Is(err, fs.ErrNotExist) {
		//lint:ignore ST1005 these are the words for every file
		err = fmt.Errorf("Cannot find file: %s", path)
		return nil, &exitError{checkInvalid, hinted(err, "%s", cmp.Or(a.suggestFile(path), "dialai log SESSION --guard prints a log of guards; - reads stdin"))}
	}
	if err != nil {
		return nil, &exitError{checkInvalid, fmt.Errorf("%s: %w", path, underlying(err))}
	}
	return struct {
		io.Reader
		io.Closer
	}{newInput(a.ctx, f), f}, nil
}

// underlying returns why a file cannot be opened, without its name.
func underlying(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func (a *app) analyze(path string, strict bool) error {
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	an := newAnalysis()
	if err := eachLine(in, an.line); err != nil {
		return &exitError{checkInvalid, err}
	}
	report := an.report()
	switch err := a.printAnalysis(a.out, report); {
	case err != nil:
		return err
	case report.Lines > 0 && report.Records == 0:
		return notALog(path)
	case strict && report.Malformed > 0:
		return exit(analyzeMalformed)
	}
	return nil
}

// notALog is the error about a file of which no line is a record.
func notALog(path string) error {
	return &exitError{checkInvalid, hinted(fmt.Errorf("%s: no line is a record of a log of guards", path), "dialai log SESSION --guard prints one")}
}

// Bounds of what an analysis remembers, however long the log is.
const (
	shownMalformed = 10      // lines that are named
	mostNames      = 1000    // distinct reasons or stages; the rest is "other"
	mostOpen       = 100_000 // candidates without a verdict yet
	scoreSteps     = 10_000  // scores are counted by their first four decimals
)

// analysisLine is what analyze finds as --json shows it.
type analysisLine struct {
	Lines     int            `json:"lines"`
	Records   int            `json:"records"`
	Malformed int            `json:"malformed"`
	Problems  []lineProblem  `json:"problems"`
	Types     []typeCount    `json:"types"`
	Verdicts  []verdictCount `json:"verdicts"`
	Reasons   []reasonCount  `json:"reasons"`
	Scores    []scoreSpread  `json:"scores"`
	Open      spentCount     `json:"open"`
}

// A checkResult is a line that dialai check prints.
type checkResult struct {
	Status  string `json:"status"`
	Reasons []struct {
		Code string `json:"code"`
	} `json:"reasons"`
}

// resultLineOf returns what dialai check printed; ok is false if the line is
// something else.
func resultLineOf(line []byte) (r checkResult, ok bool) {
	var probe struct {
		Type   json.RawMessage `json:"type"`
		Status json.RawMessage `json:"status"`
	}
	if json.Unmarshal(line, &probe) != nil || probe.Type != nil || probe.Status == nil || json.Unmarshal(line, &r) != nil {
		return r, false
	}
	_, known := verdict.StatusNamed(r.Status)
	return r, known || r.Status == "done" || r.Status == "error"
}

func (an *analysis) result(r checkResult) {
	an.records++
	if _, known := verdict.StatusNamed(r.Status); !known {
		an.types[r.Status]++
		return
	}
	an.types["result"]++
	var codes []string
	for _, reason := range r.Reasons {
		codes = append(codes, reason.Code)
	}
	an.verdict(candidate{}, r.Status, codes)
}

// report returns what was found, in an order that does not depend on chance.
func (an *analysis) report() analysisLine {
	r := analysisLine{
		Lines: an.lines, Records: an.records, Malformed: an.malformed, Problems: append([]lineProblem{}, an.problems...),
		Types: []typeCount{}, Verdicts: []verdictCount{}, Reasons: []reasonCount{}, Scores: []scoreSpread{}, Open: an.rest,
	}
	for name, n := range an.types {
		r.Types = append(r.Types, typeCount{name, n})
	}
	for _, v := range an.verdicts {
		v.TokensEach = exact.AddSat(v.InputTokens, v.OutputTokens) / int64(v.Count)
		r.Verdicts = append(r.Verdicts, *v)
	}
	for code, n := range an.reasons {
		r.Reasons = append(r.Reasons, reasonCount{code, n})
	}
	for stage, h := range an.scores {
		r.Scores = append(r.Scores, scoreSpread{stage, h.n, h.min, h.quantile(0.1), h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.max})
	}
	for _, s := range an.open {
		r.Open.add(s.InputTokens, s.OutputTokens, s.USD)
	}
	slices.SortFunc(r.Types, func(a, b typeCount) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Type, b.Type)) })
	slices.SortFunc(r.Verdicts, func(a, b verdictCount) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Verdict, b.Verdict))
	})
	slices.SortFunc(r.Reasons, func(a, b reasonCount) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Code, b.Code)) })
	slices.SortFunc(r.Scores, func(a, b scoreSpread) int { return cmp.Compare(a.Stage, b.Stage) })
	return r
}

func (st style) printAnalysis(w io.Writer, r analysisLine) error {
	if st.json {
		return printJSON(w, r)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Lines:     %d (%d malformed)\n", r.Lines, r.Malformed)
	if !st.quiet {
		for _, p := range r.Problems {
			fmt.Fprintf(out, "  line %d: %s\n", p.Line, clean(p.Problem))
		}
		for i, t := range r.Types {
			label := "Records:  "
			if i > 0 {
				label = "          "
			}
			fmt.Fprintf(out, "%s %d %s\n", label, t.Count, clean(t.Type))
		}
		if r.Open != (spentCount{}) {
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
		if err := table(out, rows); err != nil {
			return err
		}
	}
	return out.Flush()
}
