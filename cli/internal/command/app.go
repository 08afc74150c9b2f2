// Package command is what every command of the program works with: its streams, flags and
// environment, files and stdin read so that Ctrl-C ends it, the store and the engine that the
// flags describe, and errors that become messages, hints and exit codes. It knows no command;
// what a group of commands shares beyond this stands with them.
package command

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// An App is one call of the program.
type App struct {
	Registry strategies.Registry
	In       io.Reader
	Out, Err io.Writer
	Lookup   func(string) (string, bool) // the environment
	Ctx      context.Context             //nolint:containedctx // it lives as long as the call
	Flags
	Tape      webhook.Tape           // of a run that is recorded or replayed; else nil
	SessionID string                 // the one that is being run, "" if there is none
	GoesOn    fmt.Stringer           // the command that goes on with it after an interrupt; nil is that of a session
	Hangup    atomic.Pointer[func()] // what SIGHUP does; nil ends the command
	Commands  *cobra.Command         // the command line
	End       func(why error)        // ends the command as a signal does, for a reason that is told; nil ends nothing
	Watch     Watch
	Beside    []Beside // of dialai serve

	plain bool // the store that was named is to keep JSON
}

// A Watch is told of what a server does; of other commands it is told nothing.
type Watch struct {
	Transaction func(commits int, took time.Duration, err error)                  // as store.SQLiteOptions.Observe
	Part        func(context.Context, runner.Part) (context.Context, func(error)) // as runner.Config.Trace
}

// Flags are those of every command.
type Flags struct {
	render.Style
	KeyFile      string // with the key for --server
	PricesFile   string
	AllowOutside bool
}
