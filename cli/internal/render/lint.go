package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/dialai/dialai/machine"
)

// Warnings prints what is probably not meant in the file at a path.
func (st Style) Warnings(w io.Writer, path string, findings []machine.Problem) error {
	out := bufio.NewWriter(w)
	for _, f := range findings {
		if !f.Info || !st.Quiet {
			fmt.Fprintln(out, Problem(f, machine.Problem.Warning))
		}
	}
	if len(findings) == 0 && !st.Quiet {
		fmt.Fprintf(out, "%s: no findings\n", Clean(path))
	}
	return out.Flush()
}

// Finding is a problem as --json shows it.
type Finding struct {
	Level   string `json:"level"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Findings prints problems as JSON; level "" stands for that of each.
func Findings(w io.Writer, level string, problems []machine.Problem) error {
	for _, p := range problems {
		if err := JSON(w, Finding{cmp.Or(level, p.Level()), p.File, p.Line, p.Column, p.Path, p.Code, p.Message, p.Hint}); err != nil {
			return err
		}
	}
	return nil
}

// Problem renders a problem of a machine file.
func Problem(p machine.Problem, render func(machine.Problem) string) string {
	p.File, p.Message, p.Hint = Clean(p.File), Clean(p.Message), Clean(p.Hint)
	return render(p)
}
