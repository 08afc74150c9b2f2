package command

import (
	"context"
	"flag"

	"github.com/spf13/pflag"

	"github.com/dialai/dialai/session"
)

// A Beside is what a program runs beside dialai serve.
type Beside struct {
	Flags func(*flag.FlagSet) // nil for none
	// Run is called once for each engine of the server, and ends when ctx is done or there is nothing to do.
	Run func(ctx context.Context, e *Engine, tenant string) error
	// Ready returns what /readyz says of it, by the name of the check: what is wrong, and nothing for which the server could
	// not serve. nil has no check; it may return a nil function, where there is nothing to do.
	Ready func() (name string, check func(context.Context) error)
	// Serving says, by its name, where it has its sessions, as text and as JSON; "" says nothing, as does nil.
	Serving func(ctx context.Context, e *Engine, tenant string) (name, text string, about any)
	// Committed is told of every commit of the server, and must not block; nil is told nothing.
	Committed func(tenant string, c session.Change)
}

// AddGoFlags adds to flags what add declares; nil declares nothing.
func AddGoFlags(flags *pflag.FlagSet, add func(*flag.FlagSet)) {
	if add == nil {
		return
	}
	own := flag.NewFlagSet("", flag.ContinueOnError)
	add(own)
	flags.AddGoFlagSet(own)
}
