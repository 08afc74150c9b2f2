// Package cli is the whole command line: it reads flags and environment, builds
// the parts, and prints what comes of them.
//
// A program with Go strategies of its own calls [Main] with its Registry and
// keeps every command.
//
// Each command has a file of its own: the flags, then the function that does the
// work, then what it prints. Around them stand root.go, which lists the
// commands, env.go, the only file that reads the environment, errors.go, where
// errors become messages and exit codes, and print.go, which shows a session as
// it goes.
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

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/strategies"
)

// Main runs one command and returns the exit code of the process. An interrupt, SIGTERM
// or SIGHUP, as a closed terminal sends it unless it is ignored, ends the command in good order, and what was
// recorded stays; a second one ends the process at once.
func Main(ctx context.Context, registry strategies.Registry, args []string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{
		registry: registry, in: newInput(ctx, os.Stdin), out: os.Stdout, err: os.Stderr,
		lookup: os.LookupEnv,
	}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it ignored
		go a.hangups(cancel)
	}
	a.Program, a.Width = programName(os.Args[0]), render.TableWidth(os.Stdout)
	return a.main(ctx, args)
}

// hangups ends the command at the first SIGHUP, unless it takes that for something else.
func (a *app) hangups(end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	for range c {
		if f := a.hangup.Load(); f != nil {
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
	fmt.Fprint(a.err, `dialai takes decisions step by step: models, rules, services and people propose, an
arbiter decides or asks a human, guards watch, and everything is kept and explained.

Try these three:
`)
	_ = render.Table(a.err, [][]string{ // as every other message, it is lost where stderr is
		{"  " + name + " init", "write a commented machine file, starter.yaml"},
		{"  " + name + " starter.yaml", "run it"},
		{"  " + name + " sessions", "see what was run; dialai show ID tells more"},
	})
	fmt.Fprintf(a.err, "\nUsage: %[1]s <machine-file> [flags], or %[1]s <command> …\n%[1]s --help lists the commands.\n", name)
}

func (a *app) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		a.hello()
		return exitUsage
	}
	a.ctx = ctx
	a.commands = a.root()
	a.commands.SetArgs(args)
	err := a.commands.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	if code == exitInterrupted {
		a.interrupted()
	}
	if !errors.Is(err, context.Canceled) {
		a.printError(err)
	}
	return code
}

// interrupted says what becomes of a session that was being run.
func (a *app) interrupted() {
	if a.flags.Server != "" && a.sessionID != "" {
		fmt.Fprintf(a.err, "interrupted; only watching has ended, the session goes on at the server. To see where it stands:\n  %s\n", a.Command("show", []string{a.sessionID}))
		return
	}
	if a.sessionID == "" || !a.keeps() {
		fmt.Fprintln(a.err, "interrupted"+render.When(a.sessionID != "", "; "+gone))
		return
	}
	fmt.Fprintf(a.err, "interrupted; what was recorded stays. Go on with:\n  %s\n", a.Command("resume", []string{a.sessionID}))
}
