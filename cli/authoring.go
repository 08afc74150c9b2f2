package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/graph"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
)

// Commands about machine files: lint, graph, schema, init.

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// Exit codes of lint.
const (
	lintFindings = 1
	lintInvalid  = 3
)

func (a *app) lintCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "lint <machine file>",
		Short: "Check a machine file and warn about what is probably not meant",
		Long: `Check a machine file as running it does, and look for what is legal but probably
not meant: states that cannot be reached or left, states without a path to the
goal, members that are never used.

Exit codes: 0 fine or warnings only, 1 warnings under --strict, 3 invalid.`,
		Example: `  dialai lint machine.json
  dialai lint machine.yaml --strict --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.lint(args[0], strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let warnings fail")
	return cmd
}

func (a *app) lint(path string, strict bool) error {
	m, err := a.loadMachine(path)
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
	findings := m.Lint(machine.LintOptions{Priced: priced(m)})
	if a.flags.json {
		err = a.printFindings("warning", findings)
	} else {
		for _, f := range findings {
			fmt.Fprintln(a.out, cleanLines(f.Warning()))
		}
		if len(findings) == 0 && !a.flags.quiet {
			fmt.Fprintf(a.out, "%s: no findings\n", path)
		}
	}
	if err == nil && strict && len(findings) > 0 {
		return exit(lintFindings)
	}
	return err
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

// priced tells lint which models have a price in the machine's guards.
func priced(m *machine.Machine) func(string) bool {
	c, _ := guard.Parse(m.Definition().Guards, false) // it was checked when the file was loaded
	return c.Knows
}

func (a *app) graphCommand() *cobra.Command {
	var format, session, output string
	cmd := &cobra.Command{
		Use:   "graph <machine file>",
		Short: "Draw a machine: Mermaid, DOT or SVG",
		Long: `Draw a machine file. With --session the machine of that session is drawn, with
the way it came, where it stands, and the round in progress; a file need not be
named then.`,
		Example: `  dialai graph machine.json --format svg -o machine.svg
  dialai graph --session 0b9c1d3e-… --format svg > now.svg
  dialai graph machine.yaml --format dot | dot -Tpng > machine.png`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.graph(cmd.Context(), args, format, session, output)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "mermaid", "mermaid, dot or svg")
	cmd.Flags().StringVar(&session, "session", "", "draw where this session stands")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of stdout")
	return cmd
}

func (a *app) graph(ctx context.Context, args []string, format, session, output string) error {
	if session == "" && len(args) == 0 {
		return usage("name a machine file, or a session with --session")
	}
	var m *machine.Machine
	var v graph.View
	if session != "" {
		err := a.with(ctx, func(e *engine, _ *bufio.Writer) error {
			s, err := e.Session(ctx, session)
			if err != nil {
				return err
			}
			m = s.Machine()
			v, err = viewOf(ctx, e, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(args) > 0 {
		file, err := a.loadMachine(args[0])
		if err != nil {
			return err
		}
		if m != nil && file.Digest() != m.Digest() {
			return usage("session %s does not run this file but an earlier or another one; leave the file out", session)
		}
		m = file
	}
	picture, err := draw(m, v, format)
	if err != nil {
		return err
	}
	if output != "" {
		return os.WriteFile(output, picture, 0o644) //nolint:gosec // a picture to be looked at
	}
	_, err = a.out.Write(picture)
	return err
}

func draw(m *machine.Machine, v graph.View, format string) ([]byte, error) {
	switch format {
	case "mermaid":
		return []byte(graph.Mermaid(m, v)), nil
	case "dot":
		return []byte(graph.DOT(m, v)), nil
	case "svg":
		return graph.SVG(m, v), nil
	}
	return nil, usage("--format is %q, it may be mermaid, dot or svg", format)
}

// viewOf says what to point out of a session.
func viewOf(ctx context.Context, e *engine, s *runner.Session) (graph.View, error) {
	v := graph.View{State: s.State.Name, Status: s.Status.String()}
	for _, t := range s.History() {
		v.Path = append(v.Path, graph.Step{From: t.Transition.From.Name, Transition: t.Transition.Name})
	}
	if len(s.Proposals()) == 0 && len(s.OpenAsks()) == 0 {
		return v, nil
	}
	weights, err := e.Weights(ctx, s)
	if err != nil {
		return v, err
	}
	v.Round = &graph.Round{Number: int(s.Round), Prompt: s.State.Prompt, Verdict: s.Outcome().Reason}
	for _, p := range s.Proposals() {
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: p.SpecialistID, Human: p.IsHuman, Transition: p.Transition.Name, Weight: weights[p.SpecialistID]})
	}
	for _, ask := range s.OpenAsks() {
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: ask.SpecialistID})
	}
	return v, nil
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of machine files",
		Long: `Print the JSON Schema (draft 2020-12) of machine files. Editors that know it
complete and check machine files as they are written.`,
		Example: `  dialai schema > machine.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(machine.FileSchema())
			return err
		},
	}
}

func (a *app) initCommand() *cobra.Command {
	var sample string
	var list, force bool
	cmd := &cobra.Command{
		Use:   "init [<file>]",
		Short: "Write a machine file to start from",
		Long: `Write a commented starter file, or one of the samples. "-" writes to stdout. An
existing file is not touched unless --force.

Samples:
` + sampleHelp(),
		Example: `  dialai init
  dialai init review.json --sample document-review
  dialai init --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return a.listSamples()
			}
			return a.init(args, sample, force)
		},
	}
	cmd.Flags().StringVar(&sample, "sample", "", "the sample to write (default: the commented starter)")
	cmd.Flags().BoolVar(&list, "list", false, "list the samples")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

func sampleHelp() string {
	var b strings.Builder
	for _, s := range machines.List() {
		fmt.Fprintf(&b, "  %-19s %s\n", s.Name, s.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (a *app) listSamples() error {
	if !a.flags.json {
		_, err := fmt.Fprintln(a.out, sampleHelp())
		return err
	}
	for _, s := range machines.List() {
		if err := printJSON(a.out, map[string]string{"name": s.Name, "file": s.File, "about": s.About}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) init(args []string, sample string, force bool) error {
	name := sample
	if name == "" {
		name = machines.Starter
	}
	file, text, ok := machines.Read(name)
	if !ok {
		var names []string
		for _, s := range machines.List() {
			names = append(names, s.Name)
		}
		hint := machine.DidYouMean(sample, names)
		if hint == "" {
			hint = "there are " + strings.Join(names, ", ")
		}
		return usage("there is no sample %q\n    hint: %s", sample, hint)
	}
	target := file
	if len(args) == 1 {
		target = args[0]
	}
	if target == "-" {
		_, err := io.Copy(a.out, bytes.NewReader(text))
		return err
	}
	if wrong := otherLanguage(file, target); wrong != "" {
		return usage("%s is written in %s; choose a name that ends so", file, wrong)
	}
	if err := writeNew(target, text, force); err != nil {
		return err
	}
	if a.flags.quiet {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "Wrote %s. Run it:\n  dialai %s\n", target, quote(target))
	return err
}

// otherLanguage returns the extension a copy of file must have if target has
// another, "" if all is well.
func otherLanguage(file, target string) string {
	ext := func(name string) string {
		e := strings.ToLower(filepath.Ext(name))
		if e == ".yml" {
			return ".yaml"
		}
		return e
	}
	if ext(file) != ext(target) {
		return ext(file)
	}
	return ""
}

func writeNew(path string, text []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // a machine file holds no secrets
	if errors.Is(err, fs.ErrExist) {
		return usage("%s exists already; choose another name or use --force", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
