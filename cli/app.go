package cli

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// An app is one call of the program.
type app struct {
	registry strategies.Registry
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool) // the environment
	ctx      context.Context             //nolint:containedctx // it lives as long as the call
	flags
	tape      webhook.Tape           // of a run that is recorded or replayed; else nil
	sessionID string                 // the one that is being run, "" if there is none
	hangup    atomic.Pointer[func()] // what SIGHUP does; nil ends the command
	commands  *cobra.Command         // the command line
}

// flags are those of every command.
type flags struct {
	render.Style
	keyFile      string // with the key for --server
	pricesFile   string
	allowOutside bool
}
