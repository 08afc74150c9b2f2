package cli

import (
	"bufio"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// Exit codes of lint.
const (
	lintFindings = 1
	lintInvalid  = 3
)

func (a *app) lintCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint <machine-file>",
		Short: "Check a machine or guards file and warn about what is probably not meant",
		Long: `Check a machine file as running it does, and look for what is legal but probably
not meant: states that cannot be reached or left, states without a path to the
goal, members that are never used.

Of guards, in a machine file or in a file of their own: tools that can never be
called, dollar caps without prices, patterns that are slow, limits that can never
be reached, schema keywords that nobody knows.

Exit codes: 0 fine or warnings only, 1 warnings under --strict, 3 invalid.`,
		Example: `  dialai lint machine.json
  dialai lint machine.yaml --strict --json
  dialai lint guards.json`,
		Args:              arguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.lint(args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let warnings fail")
	return cmd
}

func (a *app) lint(path string, strict bool) error {
	findings, err := a.findings(path)
	var invalid *machine.Error
	switch {
	case errors.As(err, &invalid):
		if a.flags.json {
			if err := a.printFindings("error", invalid.Problems); err != nil {
				return err
			}
			return exit(lintInvalid)
		}
		return &exitError{lintInvalid, err}
	case err != nil:
		return &exitError{lintInvalid, err}
	}
	if a.flags.json {
		err = a.printFindings("warning", findings)
	} else {
		err = a.printWarnings(path, findings)
	}
	if err == nil && strict && len(findings) > 0 {
		return exit(lintFindings)
	}
	return err
}

// findings returns what is probably not meant in a machine file or a guards file.
func (a *app) findings(path string) ([]machine.Problem, error) {
	data, err := a.readFile(path)
	if err != nil {
		return nil, err
	}
	if isGuards(path, data) {
		return lintGuards(path, data)
	}
	m, err := parseMachine(path, data)
	if err != nil {
		return nil, err
	}
	priced, err := a.priced(m)
	if err != nil {
		return nil, err
	}
	return m.Lint(machine.LintOptions{Priced: priced, Guards: func(section, over []byte) []machine.Problem {
		return slices.DeleteFunc(guard.Lint(section, over, guard.Strict), func(p machine.Problem) bool {
			return p.Code == "cap-without-prices" // specialists tell their costs, and models without a price are found one by one
		})
	}}), nil
}

func (a *app) printWarnings(path string, findings []machine.Problem) error {
	out := bufio.NewWriter(a.out)
	for _, f := range findings {
		fmt.Fprintln(out, problemText(f, machine.Problem.Warning))
	}
	if len(findings) == 0 && !a.flags.quiet {
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

func (a *app) printFindings(level string, problems []machine.Problem) error {
	for _, p := range problems {
		if err := printJSON(a.out, finding{level, p.File, p.Line, p.Column, p.Path, p.Code, p.Message, p.Hint}); err != nil {
			return err
		}
	}
	return nil
}
