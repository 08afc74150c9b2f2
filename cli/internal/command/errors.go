package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// From errors to what a person sees and a script gets. Commands return errors and print
// none: printError prints one, once, with a hint about what to do where there is one,
// and exitCode is the one table from errors to exit codes. A usage error has code 2;
// whatever ends because of a signal has 130, so that a script can tell that nobody
// decided.
//
// Texts that come from files, services and models are cleaned of control characters
// before they are shown. The last part of this file turns the errors of the flag
// library into errors of the same kind, with the usage line of the command.

// Exit codes. The help text and the docs are made from the table below.
const (
	ExitOK          = api.ExitOK
	ExitFailure     = api.ExitFailure
	ExitUsage       = api.ExitUsage
	ExitHuman       = api.ExitHuman
	ExitStopped     = api.ExitStopped
	ExitWaiting     = api.ExitWaiting
	ExitFinal       = api.ExitFinal
	ExitTooOld      = 75 // EX_TEMPFAIL of sysexits.h: another version does it
	ExitInterrupted = 130
)

// ExitCodes are all of them, for help and docs.
var ExitCodes = []struct {
	Code int
	Text string
}{
	{ExitOK, "done; a run reached its goal"},
	{ExitFailure, "failure"},
	{ExitUsage, "wrong usage, or an invalid machine file"},
	{ExitHuman, "a human must decide"},
	{ExitStopped, "stopped by a guard or a limit"},
	{ExitWaiting, "waiting for answers that come later, or for a timer"},
	{ExitFinal, "ended in a final state other than the goal"},
	{ExitTooOld, "this program is too old for the store: a newer version has taken it over"},
	{ExitInterrupted, "interrupted: Ctrl-C, SIGTERM or SIGHUP"},
}

// An ExitError ends the program with a code; its text, if any, is printed.
type ExitError struct {
	code int
	err  error
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Exit ends a command with a code and without a message.
func Exit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{code: code}
}

// Fail ends a command with a code and the message of an error.
func Fail(code int, err error) error { return &ExitError{code, err} }

// Usage returns an error of whoever called the command.
func Usage(format string, args ...any) error {
	return Fail(ExitUsage, fmt.Errorf(format, args...))
}

// A hintedError is an error with what to do about it.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }

func (e *hintedError) Unwrap() error { return e.err }

// Hinted adds a hint to an error; an empty one adds nothing.
func Hinted(err error, format string, args ...any) error {
	if hint := fmt.Sprintf(format, args...); hint != "" {
		return &hintedError{err, hint}
	}
	return err
}

// ExitCode is the one table from errors to exit codes.
func ExitCode(ctx context.Context, err error) int {
	var e *ExitError
	var invalid *machine.Error
	var address *postgres.AddressError
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return ended(ctx)
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &invalid), errors.As(err, &address):
		return ExitUsage
	case errors.As(err, new(*store.NewerError)):
		return ExitTooOld
	case ctx.Err() != nil:
		return ended(ctx)
	}
	return ExitFailure
}

// ended is the code of a command whose context was ended: by a signal, or by [App.End].
func ended(ctx context.Context) int {
	if why, ok := errors.AsType[*ExitError](context.Cause(ctx)); ok {
		return why.code
	}
	return ExitInterrupted
}

// PrintError prints an error and what to do about it.
func (a *App) PrintError(err error) {
	for _, line := range errorLines(err) {
		fmt.Fprintln(a.Err, line)
	}
	if hint := a.hintFor(err); hint != "" {
		fmt.Fprintln(a.Err, "    hint: "+render.Clean(hint))
	}
}

// errorLines returns the text of an error. What comes from outside cannot make
// lines of its own.
func errorLines(err error) []string {
	switch e := err.(type) {
	case nil:
		return nil
	case *ExitError:
		return errorLines(e.err)
	case *hintedError:
		return errorLines(e.err)
	case *machine.Error:
		lines := []string{render.Clean(e.Summary())}
		for _, p := range e.Problems {
			lines = append(lines, render.Problem(p, machine.Problem.String))
		}
		return lines
	case *runner.Error:
		if len(e.Details) > 1 {
			lines := []string{render.Clean(strings.TrimSuffix(e.Message, " "+strings.Join(e.Details, "; ")))}
			for _, d := range e.Details {
				lines = append(lines, "    "+render.Clean(d))
			}
			return lines
		}
	case *runner.DanglingError:
		return []string{render.Problem(e.Problem, machine.Problem.String)}
	case *runner.UnpricedError:
		return []string{render.Problem(e.Problem, machine.Problem.String)}
	case interface{ Unwrap() []error }:
		var lines, texts []string
		for _, sub := range e.Unwrap() {
			texts = append(texts, sub.Error())
			lines = append(lines, errorLines(sub)...)
		}
		if strings.Join(texts, "\n") == err.Error() { // no more than a list
			return lines
		}
	}
	return []string{render.Clean(err.Error())}
}

// hintFor says what to do about an error, as far as anybody knows.
func (a *App) hintFor(err error) string {
	var own *hintedError
	var refused *runner.Error
	var newer *store.NewerError
	var corrupt *session.CorruptError
	var opening *store.OpenError
	var archived *session.ArchivedError
	var unset interface{ Variable() string }
	var advised interface{ Advice() string }
	switch {
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &refused) && refused.Hint != "":
		return refused.Hint
	case errors.As(err, &unset):
		return fmt.Sprintf("set the variable and run the command again: export %s=…; it holds what the service knows this program by", unset.Variable())
	case errors.As(err, &advised) && advised.Advice() != "":
		return advised.Advice()
	case errors.Is(err, session.ErrUnknown):
		return "look before you do it again: dialai sessions and dialai show say what is stored"
	case errors.Is(err, session.ErrBusy):
		return "try again when the other process is done, or use another --store"
	case errors.Is(err, store.ErrReplaced):
		return "put the store back, with what stood beside it (-wal), and try again: what was recorded before is there, and no service works twice for one Idempotency-Key"
	case errors.Is(err, store.ErrFull), errors.Is(err, syscall.ENOSPC):
		if a.SessionID == "" {
			return "nothing was changed; make room and try again"
		}
		if !a.Keeps() {
			return "make room and try again; " + Gone
		}
		return "what was recorded before is safe; make room and go on with " + a.Command("resume", []string{a.SessionID}).String()
	case errors.As(err, &archived):
		return "name it: --store " + render.Quote(archived.Archive)
	case errors.Is(err, session.ErrNotFound) && strings.HasPrefix(err.Error(), "Session"):
		return "dialai sessions lists those of this store; --store names another"
	case errors.Is(err, session.ErrNotFound) && strings.HasPrefix(err.Error(), "Specialist"):
		return "the machine file declares them, but for those that dialai specialists MACHINE says are registered"
	case errors.Is(err, session.ErrNotFound) && strings.HasPrefix(err.Error(), "Machine"):
		return "dialai sessions lists what was run in this store; --store names another"
	case errors.As(err, &newer): // it says so itself
	case errors.As(err, new(*session.NewerError)): // and so does this
	case errors.As(err, &corrupt):
		if strings.Contains(corrupt.Problem, "definition ") {
			return "nothing was changed, and other sessions go on; this one cannot be read, so it can be neither run nor cancelled: " + a.Command("store", []string{"verify"}).String() + " says what else is damaged, and a copy of the store has to be restored"
		}
		return "nothing was changed; restore a copy of the file, or use another --store"
	case errors.Is(err, store.ErrUnreadLog):
		return "copy the store and the files beside it to where you may write, and name the copy with --store PATH"
	case errors.As(err, &opening), errors.Is(err, store.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		return "name a store that can be written with --store PATH, or run with --store memory: and keep nothing"
	}
	return ""
}

// FlagError says what is wrong with a flag.
func (a *App) FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	hint := cmd.CommandPath() + " --help lists the flags"
	switch {
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint = cmp.Or(machine.DidYouMean("--"+unknown.GetSpecifiedName(), names), hint)
		if words := cmd.Flags().Args(); cmd.Parent() == nil && len(words) > 0 {
			hint = cmp.Or(a.SuggestCommand(words[0]), hint)
		}
	case errors.As(err, &bad):
		err = fmt.Errorf("--%s is %q: %s", bad.GetFlag().Name, bad.GetValue(), cmp.Or(wanted[bad.GetFlag().Value.Type()], bad.Unwrap().Error()))
	}
	return Hinted(Fail(ExitUsage, err), "%s", hint)
}

// wanted says what a flag takes, by the type of its value.
var wanted = map[string]string{
	"bool": "it may be true or false", "uint64": "it must be a whole number from 0", "int": "it must be a whole number", "int64": "it must be a whole number",
	"duration": "it must be a number and a unit, such as 90s or 5m",
}

// Arguments checks arguments against what Use says of them: <required> and
// [<optional>], and ... after the last for more of its kind.
func Arguments(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	line := cmd.Parent().CommandPath() + " " + cmd.Use
	if len(args) > len(words) && !strings.HasSuffix(cmd.Use, "...") {
		hint := cmp.Or(machine.DidYouMean(args[0], subcommands(cmd)), "usage: "+line)
		return Hinted(Usage("%s: %q is one argument too many", cmd.CommandPath(), args[len(words)]), "%s", hint)
	}
	if len(args) < len(words) && strings.HasPrefix(words[len(args)], "<") {
		return Hinted(Usage("%s: %s is missing", cmd.CommandPath(), strings.TrimSuffix(words[len(args)], "...")), "usage: %s", line)
	}
	return nil
}

func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// NeedsSubcommand is what a command does that only groups others.
func NeedsSubcommand(cmd *cobra.Command, args []string) error {
	names := subcommands(cmd)
	if len(args) == 0 {
		return Hinted(Usage("%s needs a subcommand", cmd.CommandPath()), "there are %s", strings.Join(names, ", "))
	}
	hint := cmp.Or(machine.DidYouMean(args[0], names), "there are "+strings.Join(names, ", "))
	return Hinted(Usage("%s has no subcommand %q", cmd.CommandPath(), args[0]), "%s", hint)
}

// Gone is said of a session in the memory store in place of commands, which would
// find nothing.
const Gone = "the session is gone with this process"

// NoArguments is Arguments for a command whose Use names flags, and which takes no argument.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Hinted(Usage("%s: %q is one argument too many", cmd.CommandPath(), args[0]), "usage: %s", cmd.Parent().CommandPath()+" "+cmd.Use)
}
