// Package cli is the whole command line: it reads flags and environment, builds
// the parts, and prints what comes of them.
//
// A program with Go strategies of its own calls [Main] with its Registry and
// keeps every command.
//
// Each command has a file of its own: the flags, then the function that does the
// work, then what it prints. Around them stand root.go, which lists the
// commands, and print.go, which shows a session as it goes. What all of them work with,
// from the environment to exit codes, is package cli/internal/command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// Main runs one command and returns the exit code of the process. An interrupt, SIGTERM
// or SIGHUP, as a closed terminal sends it unless it is ignored, ends the command in good order, and what was
// recorded stays; a second one ends the process at once. Drivers are further ways to drive
// sessions, with commands of their own.
func Main(ctx context.Context, registry strategies.Registry, args []string, drivers ...Driver) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{App: &command.App{
		Registry: registry, In: command.NewInput(ctx, os.Stdin), Out: os.Stdout, Err: os.Stderr,
		Lookup: os.LookupEnv,
	}}
	a.use(drivers)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it ignored
		go a.hangups(cancel)
	}
	a.Program, a.Width = programName(os.Args[0]), render.TableWidth(os.Stdout)
	return a.main(ctx, args)
}

// An app is one call of the program, with all of its commands.
type app struct {
	*command.App
	drivers []Driver
}

// hangups ends the command at the first SIGHUP, unless it takes that for something else.
func (a *app) hangups(end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	for range c {
		if f := a.Hangup.Load(); f != nil {
			(*f)()
			continue
		}
		signal.Stop(c)
		end()
		return
	}
}

// programName returns what is printed for this program in commands: dialai for the
// command of that name, however its file is called, else the base name of the file. Of
// a path there may be nothing left when somebody uses the command, as after go run.
func programName(path string) string {
	const name = "dialai"
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, "/cmd/"+name) {
		return name
	}
	if base := strings.TrimSuffix(filepath.Base(path), ".exe"); base != "." && base != string(filepath.Separator) {
		return base
	}
	return name
}

// hello is what the program says if it is called with nothing to do: what it is, and
// three commands to try.
func (a *app) hello() {
	name := a.Name()
	fmt.Fprint(a.Err, `dialai takes decisions step by step: models, rules, services and people propose, an
arbiter decides or asks a human, guards watch, and everything is kept and explained.

Try these three:
`)
	_ = render.Table(a.Err, [][]string{ // as every other message, it is lost where stderr is
		{"  " + name + " init", "write a commented machine file, starter.yaml"},
		{"  " + name + " starter.yaml", "run it"},
		{"  " + name + " sessions", "see what was run; dialai show ID tells more"},
	})
	fmt.Fprintf(a.Err, "\nUsage: %[1]s <machine-file> [flags], or %[1]s <command> …\n%[1]s --help lists the commands.\n", name)
}

func (a *app) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		a.hello()
		return command.ExitUsage
	}
	ctx, a.End = context.WithCancelCause(ctx)
	defer a.End(nil)
	a.Ctx = ctx
	a.Registry = a.Registry.WithArbiter("seats", undertaking.Seats{})
	a.Commands = a.root()
	a.Commands.SetArgs(args)
	err := a.Commands.ExecuteContext(ctx)
	if err == nil {
		return command.ExitOK
	}
	code := command.ExitCode(ctx, err)
	ended := ctx.Err() != nil
	if _, told := errors.AsType[*command.ExitError](err); code == command.ExitTooOld && ended && !told {
		err = context.Cause(ctx)
	}
	if code == command.ExitInterrupted || code == command.ExitTooOld && ended && a.SessionID != "" {
		a.interrupted()
	}
	if !errors.Is(err, context.Canceled) {
		a.PrintError(err)
	}
	return code
}

// interrupted says what becomes of a session that was being run.
func (a *app) interrupted() {
	if a.Flags.Server != "" && a.SessionID != "" {
		fmt.Fprintf(a.Err, "interrupted; only watching has ended, the session goes on at the server. To see where it stands:\n  %s\n", a.Command("show", []string{a.SessionID}))
		return
	}
	if a.SessionID == "" || !a.Keeps() {
		fmt.Fprintln(a.Err, "interrupted"+render.When(a.SessionID != "", "; "+command.Gone))
		return
	}
	next := a.GoesOn
	if next == nil {
		next = a.Command("resume", []string{a.SessionID})
	}
	fmt.Fprintf(a.Err, "interrupted; what was recorded stays. Go on with:\n  %s\n", next)
}
