package render

import (
	"bufio"
	"fmt"

	"github.com/dialai/dialai/internal/guardlog"
)

// Difference prints one verdict that differs.
func (st Style) Difference(out *bufio.Writer, d guardlog.ReplayDifference) error {
	switch {
	case st.JSON:
		return JSON(out, d)
	case st.Quiet:
		return nil
	}
	_, err := fmt.Fprintf(out, "line %d, %s: %s %v, now %s %v\n", d.Line, Clean(d.Task), d.Recorded, CleanAll(d.Codes), d.Now, d.NowCodes)
	return err
}

// CleanAll returns texts, each as Clean does.
func CleanAll(texts []string) []string {
	cleaned := make([]string, len(texts))
	for i, t := range texts {
		cleaned[i] = Clean(t)
	}
	return cleaned
}

// Replay prints what judging a log again came to.
func (st Style) Replay(out *bufio.Writer, r guardlog.ReplayLine) error {
	if st.JSON {
		return JSON(out, r)
	}
	if r.Different > 0 && !st.Quiet {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%s judged again: %d equal, %d different, %d undecidable\n", Plural(r.Checks, "step"), r.Equal, r.Different, r.Undecidable)
	if st.Quiet {
		return nil
	}
	if r.First != nil {
		fmt.Fprintf(out, "First divergence: line %d, %s\n", r.First.Line, Clean(r.First.Task))
	}
	for _, v := range r.Verdicts {
		if v.Recorded != v.Now {
			fmt.Fprintf(out, "  %s became %s: %d\n", v.Recorded, v.Now, v.Count)
		}
	}
	for _, w := range r.Why {
		fmt.Fprintf(out, "Undecidable: %d, %s\n", w.Count, Clean(w.Reason))
	}
	if r.Malformed > 0 {
		fmt.Fprintf(out, "Malformed: %s of %d\n", Plural(r.Malformed, "line"), r.Lines)
	}
	fmt.Fprintf(out, "Spent: %d tokens read, %d written, $%s in %s of %s\n", r.InputTokens, r.OutputTokens, r.USD, Plural(int(r.Calls), "call"), Plural(r.Tasks, "task"))
	return nil
}
