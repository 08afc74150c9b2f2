package cli

import (
	"bufio"
	"fmt"

	"github.com/dialai/dialai/cli/internal/guardlog"
)

func (st style) printDifference(out *bufio.Writer, d guardlog.ReplayDifference) error {
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

func (st style) printReplay(out *bufio.Writer, r guardlog.ReplayLine) error {
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
