// Package cli is the whole command line: it reads flags and environment, builds
// the parts, and prints what comes of them.
//
// A program with Go strategies of its own calls [Main] with its Registry and
// keeps every command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/strategies"
)

// Main runs one command and returns the exit code of the process. An interrupt
// ends the command in good order; what was recorded stays.
func Main(ctx context.Context, registry strategies.Registry, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{
		registry: registry, in: os.Stdin, out: os.Stdout, err: os.Stderr,
		lookup: os.LookupEnv,
	}
	return a.main(ctx, args)
}

// An app is one call of the program.
type app struct {
	registry strategies.Registry
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool) // the environment
	flags    globalFlags
}

// Exit codes. The help text and the docs are made from this table.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitHuman       = 3
	exitStopped     = 4
	exitWaiting     = 5
	exitFinal       = 6
	exitInterrupted = 130
)

var exitCodes = []struct {
	code int
	text string
}{
	{exitOK, "done; a run reached its goal"},
	{exitFailure, "failure"},
	{exitUsage, "wrong usage, or an invalid machine file"},
	{exitHuman, "a human must decide"},
	{exitStopped, "stopped by a guard or a limit"},
	{exitWaiting, "waiting for answers that come later"},
	{exitFinal, "ended in a final state other than the goal"},
	{exitInterrupted, "interrupted"},
}

// An exitError ends the program with a code; its text, if any, is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends a command with a code and without a message.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func (a *app) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(a.err, "Usage: dialai <machine.json>")
		fmt.Fprintln(a.err, "       dialai --mcp")
		return exitUsage
	}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	if text := err.Error(); text != "" && code != exitInterrupted {
		a.printError(err)
	}
	if code == exitInterrupted {
		fmt.Fprintln(a.err, "interrupted; what was recorded stays, and dialai resume goes on")
	}
	return code
}

// exitCode is the one table from errors to exit codes.
func exitCode(ctx context.Context, err error) int {
	var e *exitError
	var invalid *machine.Error
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &invalid):
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUsage(err):
		return exitUsage
	}
	return exitFailure
}

// isUsage recognises what cobra says of wrong flags and arguments.
func isUsage(err error) bool {
	for _, prefix := range []string{"unknown flag", "unknown shorthand", "unknown command", "flag needs an argument", "invalid argument", "bad flag syntax", "accepts ", "requires ", "required flag", "if any flags in the group"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

func (a *app) printError(err error) {
	fmt.Fprintln(a.err, cleanLines(err.Error()))
	var refused *runner.Error
	if errors.As(err, &refused) && refused.Hint != "" {
		fmt.Fprintln(a.err, "    hint: "+clean(refused.Hint))
	}
	if hint := hintFor(err); hint != "" {
		fmt.Fprintln(a.err, "    hint: "+hint)
	}
}

// hintFor says what to do about errors whose own text cannot know.
func hintFor(err error) string {
	switch {
	case errors.Is(err, runner.ErrBusy):
		return "try again, or use another --store"
	case errors.Is(err, runner.ErrNotFound) && strings.HasPrefix(err.Error(), "Session"):
		return "dialai sessions lists those of this store; --store names another"
	case isUsage(err):
		return "dialai --help, or dialai <command> --help, shows how"
	}
	return ""
}

// globalFlags are those of every command.
type globalFlags struct {
	store   string
	json    bool
	quiet   bool
	verbose bool
}

func (a *app) root() *cobra.Command {
	run := &runFlags{}
	root := &cobra.Command{
		Use:   "dialai <machine file>",
		Short: "Run a machine of proposers, arbiters and humans to its goal",
		Long: `dialai runs a machine file: states, transitions, and the specialists who propose
them. In each round everybody proposes one legal transition, an arbiter decides
or says that a human must, and guards gate what is executed. Sessions are kept
in a store and can be resumed after anything.

` + exitHelp(),
		Example: `  dialai machines/document-review.json
  dialai review.yaml --meta amount=120 --verbose
  dialai decide 0b9c… approve --as carol
  dialai init review.json --sample document-review`,
		Args:                       cobra.ArbitraryArgs,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: false},
		RunE: func(cmd *cobra.Command, args []string) error {
			if mcp, _ := cmd.Flags().GetBool("mcp"); mcp {
				return usage("the MCP server is not part of this version; run a machine file, or use the Go API")
			}
			switch len(args) {
			case 0:
				return cmd.Help()
			case 1:
				return a.run(cmd.Context(), args[0], run)
			}
			return usage("one machine file, or a command with its arguments; got %s", strings.Join(args, " "))
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	p := root.PersistentFlags()
	p.StringVar(&a.flags.store, "store", "", "where sessions are kept: a path, sqlite:PATH, memory:, or env for DATABASE_URL")
	p.BoolVar(&a.flags.json, "json", false, "print JSON, one value a line")
	p.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print only how it ended")
	p.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say more, on stderr")
	root.Flags().Bool("mcp", false, "serve MCP (not part of this version)")
	run.add(root.Flags(), true)
	root.AddCommand(
		a.runCommand(), a.resumeCommand(), a.decideCommand(), a.proposeCommand(), a.inboxCommand(), a.tickCommand(),
		a.sessionsCommand(), a.showCommand(), a.logCommand(), a.metricsCommand(), a.specialistsCommand(),
		a.lintCommand(), a.graphCommand(), a.schemaCommand(), a.initCommand(),
		a.storeCommand(), a.migrateCommand(), a.versionCommand(), a.vectorsCommand(),
	)
	return root
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, e.text)
	}
	return strings.TrimRight(b.String(), "\n")
}
