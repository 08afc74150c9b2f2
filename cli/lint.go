package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/lint"
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
		Use:   "lint <file>...",
		Short: "Check a machine or guards file and warn about what is probably not meant",
		Long: `Check a machine file as running it does, and look for what is legal but probably
not meant: states that cannot be reached or left, states without a path to the
goal, members that are never used.

Of what a session is about: members of its data and of payloads that expressions read
and that nothing provides, or that may be missing; conditions that read nothing.

Of decisions: specialists who err together and are worth fewer than they are
("3 specialists, effective 1.3"), promises that nobody could keep or that nothing is
promised by, ends of which the file does not say whether they can be undone. With
--store it goes by what was decided there, else by the file alone.

Of guards, in a machine file or in a file of their own: tools that can never be
called, dollar caps without prices, patterns that are slow, limits that can never
be reached, schema keywords that nobody knows; those also of input and parameters.

Of a directory every JSON and YAML file in it, and below it, that is a machine or
has members of guards is checked.

What is only worth knowing is marked info, and never fails. Exit codes: 0 fine or
warnings only, 1 warnings under --strict, 3 invalid; of several files the highest.`,
		Example: `  dialai lint machine.json
  dialai lint machine.yaml --strict --json
  dialai lint machine.json --store decisions.db
  dialai lint guards.json machines/`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.lint(cmd.Context(), args, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let warnings fail")
	return cmd
}

// lint checks files, and the machine and guards files in directories, one after the
// other. What is wrong with one keeps no other from being checked.
func (a *app) lint(ctx context.Context, paths []string, strict bool) error {
	worst := command.ExitOK
	for _, path := range paths {
		files, err := a.lintable(path)
		if err != nil {
			a.PrintError(err)
			worst = lintInvalid
		}
		for _, file := range files {
			code, err := a.lintFile(ctx, file, strict)
			if err != nil {
				return err
			}
			worst = max(worst, code)
		}
	}
	return command.Exit(worst)
}

// lintFile checks a file and returns the exit code that it deserves. The error is what
// keeps every file from being checked.
func (a *app) lintFile(ctx context.Context, path string, strict bool) (code int, err error) {
	findings, err := a.findings(ctx, path)
	var invalid *machine.Error
	switch {
	case ctx.Err() != nil, errors.As(err, new(*storeError)):
		return 0, err
	case errors.As(err, &invalid) && a.Flags.JSON:
		return lintInvalid, render.Findings(a.Out, "error", invalid.Problems)
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			fmt.Fprintln(a.Err, render.Problem(p, machine.Problem.String))
		}
		return lintInvalid, nil
	case err != nil:
		a.PrintError(err)
		return lintInvalid, nil
	}
	if a.Flags.JSON {
		err = render.Findings(a.Out, "", findings)
	} else {
		err = a.Warnings(a.Out, path, findings)
	}
	if strict && slices.ContainsFunc(findings, func(p machine.Problem) bool { return !p.Info }) {
		code = lintFindings
	}
	return code, err
}

// lintable returns the files that a path stands for: itself, or of a directory all
// machine and guards files in it, and in those below it whose names do not begin with a
// dot. What is named like one and cannot be read is one too.
func (a *app) lintable(path string) (files []string, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, nil // which the loader opens, or says why it cannot
	}
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != path && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular() && a.looksLintable(name):
			files = append(files, name)
		}
		return a.Ctx.Err()
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no machine file and no guards file", path)
	}
	return files, err
}

// looksLintable reports whether a file found in a directory is worth checking: a JSON
// or YAML file that is a machine or has members of guards, or that is broken. Other
// files name a machine too, and panels have states.
func (a *app) looksLintable(path string) bool {
	if !slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(path))) {
		return false
	}
	data, err := a.ReadFile(path, files.Machine)
	if err != nil {
		return true // linting it says why
	}
	names, ok := machine.MemberNames(path, data)
	has := func(name string) bool { return slices.Contains(names, name) }
	return !ok || has("initialState") || has("goalState") || has("machineName") && has("states") || guards.IsGuards(path, data)
}

// findings returns what is probably not meant in a machine file or a guards file.
func (a *app) findings(ctx context.Context, path string) ([]machine.Problem, error) {
	data, err := a.ReadFile(path, files.Machine)
	if err != nil {
		return nil, err
	}
	if guards.IsGuards(path, data) {
		return guards.LintGuards(path, data)
	}
	m, err := a.ParseMachine(path, data)
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
	if a.Flags.Store == "" {
		return lint.Machine(m), nil
	}
	return found, a.with(ctx, command.Reads, func(e *engine, _ *bufio.Writer) error {
		found, err = lint.WithStore(ctx, e.Runner, m)
		return err
	})
}

// A storeError is an error about the store, not about the file that is linted.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }
