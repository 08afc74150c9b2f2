package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
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

Of decisions: specialists who err together and are worth fewer than they are
("3 specialists, effective 1.3"), promises that nobody could keep or that nothing is
promised by, ends of which the file does not say whether they can be undone. With
--store it goes by what was decided there, else by the file alone.

Of guards, in a machine file or in a file of their own: tools that can never be
called, dollar caps without prices, patterns that are slow, limits that can never
be reached, schema keywords that nobody knows.

What is only worth knowing is marked info, and never fails. Exit codes: 0 fine or
warnings only, 1 warnings under --strict, 3 invalid.`,
		Example: `  dialai lint machine.json
  dialai lint machine.yaml --strict --json
  dialai lint machine.json --store decisions.db
  dialai lint guards.json`,
		Args:              arguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.lint(cmd.Context(), args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let warnings fail")
	return cmd
}

func (a *app) lint(ctx context.Context, path string, strict bool) error {
	findings, err := a.findings(ctx, path)
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
	case errors.As(err, new(*storeError)):
		return err
	case err != nil:
		return &exitError{lintInvalid, err}
	}
	if a.flags.json {
		err = a.printFindings("", findings)
	} else {
		err = a.printWarnings(path, findings)
	}
	if err == nil && strict && slices.ContainsFunc(findings, func(p machine.Problem) bool { return !p.Info }) {
		return exit(lintFindings)
	}
	return err
}

// findings returns what is probably not meant in a machine file or a guards file.
func (a *app) findings(ctx context.Context, path string) ([]machine.Problem, error) {
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
	decisions, err := a.decisionFindings(ctx, m)
	if err != nil {
		return nil, &storeError{err}
	}
	priced, err := a.priced(m)
	if err != nil {
		return nil, err
	}
	return m.Lint(machine.LintOptions{Priced: priced, Decisions: decisions, Guards: func(section, over []byte) []machine.Problem {
		return slices.DeleteFunc(guard.Lint(section, over, guard.Strict), func(p machine.Problem) bool {
			return p.Code == "cap-without-prices" // specialists tell their costs, and models without a price are found one by one
		})
	}}), nil
}

// decisionFindings returns what is probably not meant in how m decides: by what was
// decided in the store that --store names, else by the file alone.
func (a *app) decisionFindings(ctx context.Context, m *machine.Machine) (found []machine.Problem, err error) {
	if a.flags.store == "" {
		return runner.Lint(m), nil
	}
	return found, a.with(ctx, reads, func(e *engine, _ *bufio.Writer) error {
		found, err = e.Lint(ctx, m)
		return err
	})
}

// A storeError is an error about the store, not about the file that is linted.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

func (a *app) printWarnings(path string, findings []machine.Problem) error {
	out := bufio.NewWriter(a.out)
	for _, f := range findings {
		if !f.Info || !a.flags.quiet {
			fmt.Fprintln(out, problemText(f, machine.Problem.Warning))
		}
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

// printFindings prints problems as JSON; level "" stands for that of each.
func (a *app) printFindings(level string, problems []machine.Problem) error {
	for _, p := range problems {
		if err := printJSON(a.out, finding{cmp.Or(level, p.Level()), p.File, p.Line, p.Column, p.Path, p.Code, p.Message, p.Hint}); err != nil {
			return err
		}
	}
	return nil
}
