package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/dialai/dialai/machine"
)

func (st style) printWarnings(w io.Writer, path string, findings []machine.Problem) error {
	out := bufio.NewWriter(w)
	for _, f := range findings {
		if !f.Info || !st.quiet {
			fmt.Fprintln(out, problemText(f, machine.Problem.Warning))
		}
	}
	if len(findings) == 0 && !st.quiet {
		fmt.Fprintf(out, "%s: no findings\n", clean(path))
	}
	return out.Flush()
}

// finding is a problem as --json shows it.
type finding struct {
	Level   string `json:"level"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// printFindings prints problems as JSON; level "" stands for that of each.
func printFindings(w io.Writer, level string, problems []machine.Problem) error {
	for _, p := range problems {
		if err := printJSON(w, finding{cmp.Or(level, p.Level()), p.File, p.Line, p.Column, p.Path, p.Code, p.Message, p.Hint}); err != nil {
			return err
		}
	}
	return nil
}

// problemText renders a problem of a machine file.
func problemText(p machine.Problem, render func(machine.Problem) string) string {
	p.File, p.Message, p.Hint = clean(p.File), clean(p.Message), clean(p.Hint)
	return render(p)
}
