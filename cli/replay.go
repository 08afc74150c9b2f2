package cli

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/guard"
)

func (a *app) replayCommand() *cobra.Command {
	var guards string
	cmd := &cobra.Command{
		Use:   "replay <log>",
		Short: "Judge the steps of an event log again, by other guards",
		Long: `Read an event log of guards, judge every step in it again by another
configuration, and show where the verdicts differ. No model is asked. "-" reads
stdin; the configuration is a guards file, or a machine file with guards.

The course of events stays as it was: a step that was executed counts as executed,
whatever the new guards say of it. So each verdict is the one the new guards would
have given at that point. Steps of which the log holds too little, such as digests
of texts that the new guards want to read, are undecidable and are counted.

Lines that cannot be read are counted too; a file with no others is the wrong one.
Exit codes: 0 equal, 1 a verdict differs, 3 wrong usage or file.`,
		Example: `  dialai replay guard.jsonl --guards stricter.json
  dialai log 0b9c1d3e-… --guard | dialai replay - --guards review.yaml --json`,
		Args: arguments,
		RunE: func(_ *cobra.Command, args []string) error { return a.replay(args[0], guards) },
	}
	guardsFlag(cmd, &guards, "the guards or machine `file` to judge by", "config")
	return a.guardUsage(cmd)
}

// replayDifference is one verdict that differs.
type replayDifference struct {
	Kind     string   `json:"kind"` // difference
	Line     int      `json:"line"`
	Seq      int64    `json:"seq,omitempty"`
	Task     string   `json:"task"`
	Recorded string   `json:"recorded"`
	Codes    []string `json:"codes"` // of the recorded reasons
	Now      string   `json:"now"`
	NowCodes []string `json:"nowCodes"`
	Message  string   `json:"message,omitempty"` // of the first new reason
}

// replayLine sums a replay up, as --json shows it last.
type replayLine struct {
	Kind        string          `json:"kind"` // summary
	Lines       int             `json:"lines"`
	Malformed   int             `json:"malformed"`
	Tasks       int             `json:"tasks"`
	Checks      int             `json:"checks"`
	Equal       int             `json:"equal"`
	Different   int             `json:"different"`
	Undecidable int             `json:"undecidable"`
	Why         []undecidable   `json:"why"`
	First       *divergence     `json:"firstDivergence,omitempty"`
	Verdicts    []verdictChange `json:"verdicts"`
	Calls       int64           `json:"calls"`
	spentCount
}

// undecidable says why steps could not be judged again.
type undecidable struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// A divergence is where a verdict first differs.
type divergence struct {
	Line int    `json:"line"`
	Seq  int64  `json:"seq,omitempty"`
	Task string `json:"task"`
}

// verdictChange counts the steps of one verdict then and now.
type verdictChange struct {
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
	Count    int    `json:"count"`
}

func (a *app) replay(path, guards string) error {
	switch {
	case guards == "":
		return &exitError{checkInvalid, hinted(errors.New("--guards is missing"), "dialai replay guard.jsonl --guards guards.json")}
	case guards == "-" && path == "-":
		return &exitError{checkInvalid, errors.New("the log and the guards cannot both be read from stdin")}
	}
	c, states, err := a.loadAnyGuards(guards)
	if err != nil {
		return &exitError{checkInvalid, err}
	}
	in, err := a.openLog(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out := bufio.NewWriter(a.out)
	r := &replayRun{replayer: guard.NewReplayer(c, states), sum: replayLine{Kind: "summary", Why: []undecidable{}, Verdicts: []verdictChange{}}}
	r.differs = func(d replayDifference) error { return a.printDifference(out, d) }
	if err := eachLine(in, r.line); err != nil {
		return &exitError{checkInvalid, errors.Join(err, out.Flush())}
	}
	if err := errors.Join(a.printReplay(out, r.summary()), out.Flush()); err != nil {
		return err
	}
	switch {
	case r.sum.Different > 0:
		return exit(replayDiffers)
	case r.sum.Malformed > 0 && r.sum.Malformed == r.sum.Lines: // nothing was compared, so nothing is equal
		return notALog(path)
	}
	return nil
}

// A replayRun reads a log and compares.
type replayRun struct {
	replayer *guard.Replayer
	differs  func(replayDifference) error
	sum      replayLine
}

func (r *replayRun) line(n int, line []byte, err error) error {
	r.sum.Lines++
	var rec guard.LogRecord
	if err == nil {
		rec, err = guard.ParseLog(line)
	}
	if err != nil {
		r.sum.Malformed++
		return nil
	}
	result, isCheck := r.replayer.Next(rec)
	if !isCheck {
		return nil
	}
	r.sum.Checks++
	if result.Undecidable != "" {
		r.sum.Undecidable++
		r.undecidable(result.Undecidable)
		return nil
	}
	r.change(result.Recorded.String(), result.Verdict.Status.String())
	if !result.Differs {
		r.sum.Equal++
		return nil
	}
	r.sum.Different++
	if r.sum.First == nil {
		r.sum.First = &divergence{n, rec.Seq, result.Task}
	}
	d := replayDifference{
		Kind: "difference", Line: n, Seq: rec.Seq, Task: result.Task, Recorded: result.Recorded.String(), Codes: append([]string{}, result.Codes...),
		Now: result.Verdict.Status.String(), NowCodes: result.Verdict.Codes(),
	}
	if len(result.Verdict.Reasons) > 0 {
		d.Message = result.Verdict.Reasons[0].Message
	}
	return r.differs(d)
}

func (r *replayRun) undecidable(why string) {
	for i := range r.sum.Why {
		if r.sum.Why[i].Reason == why {
			r.sum.Why[i].Count++
			return
		}
	}
	if len(r.sum.Why) < mostNames {
		r.sum.Why = append(r.sum.Why, undecidable{why, 1})
	}
}

func (r *replayRun) change(recorded, now string) {
	for i := range r.sum.Verdicts {
		if v := &r.sum.Verdicts[i]; v.Recorded == recorded && v.Now == now {
			v.Count++
			return
		}
	}
	r.sum.Verdicts = append(r.sum.Verdicts, verdictChange{recorded, now, 1})
}

func (r *replayRun) summary() replayLine {
	spent := r.replayer.Spent()
	r.sum.Tasks, r.sum.Calls = r.replayer.Tasks(), spent.Calls
	r.sum.spentCount = spentCount{spent.TokensIn, spent.TokensOut, spent.Money}
	return r.sum
}

func (st style) printDifference(out *bufio.Writer, d replayDifference) error {
	switch {
	case st.json:
		return printJSON(out, d)
	case st.quiet:
		return nil
	}
	_, err := fmt.Fprintf(out, "line %d, %s: %s %v, now %s %v\n", d.Line, clean(d.Task), d.Recorded, cleanAll(d.Codes), d.Now, d.NowCodes)
	return err
}

func cleanAll(texts []string) []string {
	cleaned := make([]string, len(texts))
	for i, t := range texts {
		cleaned[i] = clean(t)
	}
	return cleaned
}

func (st style) printReplay(out *bufio.Writer, r replayLine) error {
	if st.json {
		return printJSON(out, r)
	}
	if r.Different > 0 && !st.quiet {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%s judged again: %d equal, %d different, %d undecidable\n", plural(r.Checks, "step"), r.Equal, r.Different, r.Undecidable)
	if st.quiet {
		return nil
	}
	if r.First != nil {
		fmt.Fprintf(out, "First divergence: line %d, %s\n", r.First.Line, clean(r.First.Task))
	}
	for _, v := range r.Verdicts {
		if v.Recorded != v.Now {
			fmt.Fprintf(out, "  %s became %s: %d\n", v.Recorded, v.Now, v.Count)
		}
	}
	for _, w := range r.Why {
		fmt.Fprintf(out, "Undecidable: %d, %s\n", w.Count, clean(w.Reason))
	}
	if r.Malformed > 0 {
		fmt.Fprintf(out, "Malformed: %s of %d\n", plural(r.Malformed, "line"), r.Lines)
	}
	fmt.Fprintf(out, "Spent: %d tokens read, %d written, $%s in %s of %s\n", r.InputTokens, r.OutputTokens, r.USD, plural(int(r.Calls), "call"), plural(r.Tasks, "task"))
	return nil
}
