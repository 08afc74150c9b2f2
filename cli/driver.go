package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// A Driver is a way to drive sessions that a program has beside those of dialai: a workflow
// engine that a team runs already, say. It works with the engine that environment and flags
// describe, and has flags and commands of its own. [Main] takes it; what it is given is not changed.
type Driver struct {
	Name string // one word: that of the session.Driver of the sessions that it carries on, such as "temporal"
	// Flags declares what Run and the commands have to know, under the same names in each; nil
	// declares nothing. The names are none of dialai's own.
	Flags func(*flag.FlagSet)
	// Run drives sessions beside dialai serve until ctx is done, once for each tenant; an error
	// ends the server. It may return nil at once where the flags ask for nothing. nil does nothing.
	Run func(ctx context.Context, e DriverEngine) error
	// Committed is told of every commit of that server, in the order of each session's log. It
	// must not block, and may be called concurrently; nil is told nothing.
	Committed func(tenant string, c session.Change)
	// Ready returns a check of what this driver needs, which /readyz has under its name; without it the server
	// serves all the same. It may return nil where the flags ask for nothing, as may Ready be.
	Ready func() func(context.Context) error
	// Serving says where this driver has its sessions, for who starts dialai serve or reads its --json: lines of text, and
	// the same as a value that encoding/json takes. It is called once for each tenant before the server answers, and the
	// context of all ends after 2 s; "" says nothing, as does nil.
	Serving func(ctx context.Context, e DriverEngine) (text string, about any)
	// Detail says by what name this driver knows a session that it carries on, as dialai show prints it; nil says
	// nothing.
	Detail   func(ctx context.Context, e DriverEngine, s *session.Session) (string, error)
	Commands []DriverCommand
}

// A DriverCommand is a command of a Driver, among those of dialai. Where dialai has a command of the same name, the one
// of the Driver is run in its place if any flag of the Driver is given, and their helps are one.
type DriverCommand struct {
	Use, Short, Long, Example string              // as help shows them; Use begins with its name
	Flags                     func(*flag.FlagSet) // of this command alone; nil declares none
	// Run does the work. What it writes to Out is printed also where it fails.
	Run func(ctx context.Context, e DriverEngine, args []string) error
}

// A DriverEngine is what a Driver works with.
type DriverEngine struct {
	*runner.Runner
	Tenant string         // of the server; "" if there is one
	Out    io.Writer      // of a command; nil beside a server
	Actor  *session.Actor // who has given a command; nil beside a server
	JSON   bool           // Out gets JSON, one value a line
	// Find returns the session whose id a text is, or begins. Beside a server it is nil.
	Find func(ctx context.Context, id string) (*session.Session, error)
}

// use has the program know the drivers.
func (a *app) use(drivers []Driver) {
	a.drivers = drivers
	for _, d := range drivers {
		if d.Run == nil {
			continue
		}
		beside := command.Beside{Flags: d.Flags, Committed: d.Committed, Run: func(ctx context.Context, e *command.Engine, tenant string) error {
			return d.Run(ctx, DriverEngine{Runner: e.Runner, Tenant: tenant})
		}}
		if d.Serving != nil {
			beside.Serving = func(ctx context.Context, e *command.Engine, tenant string) (string, string, any) {
				text, about := d.Serving(ctx, DriverEngine{Runner: e.Runner, Tenant: tenant})
				return d.Name, text, about
			}
		}
		if d.Ready != nil {
			beside.Ready = func() (string, func(context.Context) error) { return d.Name, d.Ready() }
		}
		a.Beside = append(a.Beside, beside)
	}
}

// driverCommands returns the commands of the drivers.
func (a *app) driverCommands() (list []*cobra.Command) {
	for _, d := range a.drivers {
		for _, c := range d.Commands {
			cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, Args: cobra.ArbitraryArgs}
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
					err := c.Run(cmd.Context(), DriverEngine{Runner: e.Runner, Out: out, Actor: command.LocalActor(), JSON: a.Flags.JSON, Find: e.session}, args)
					return errors.Join(err, out.Flush())
				})
			}
			command.AddGoFlags(cmd.Flags(), d.Flags)
			command.AddGoFlags(cmd.Flags(), c.Flags)
			list = append(list, cmd)
		}
	}
	return list
}

// driverOf says who carries a session on by itself, and by what name they know it; "" where that is any process.
func (a *app) driverOf(ctx context.Context, e *engine, s *session.Session) (string, error) {
	driver := s.Options().Driver
	if driver == session.DriverPool {
		return "", nil
	}
	for _, d := range a.drivers {
		if d.Name != driver.String() || d.Detail == nil || e.far != nil {
			continue
		}
		known, err := d.Detail(ctx, DriverEngine{Runner: e.Runner, Find: e.session}, s)
		return fmt.Sprintf("%s (%s)", driver, render.Clean(known)), err
	}
	return driver.String(), nil
}

// addDrivers adds the commands of the drivers, in a group of their own, or to those of the same name.
func (a *app) addDrivers(root *cobra.Command) {
	const title = "Drive sessions elsewhere:"
	for _, c := range a.driverCommands() {
		if i := slices.IndexFunc(root.Commands(), func(o *cobra.Command) bool { return o.Name() == c.Name() }); i >= 0 {
			extend(root.Commands()[i], c)
			continue
		}
		if !root.ContainsGroup(title) {
			root.AddGroup(&cobra.Group{ID: title, Title: title})
		}
		c.GroupID = title
		root.AddCommand(c)
	}
}

// extend has a command do what another one does if a flag of that is given.
func extend(cmd, other *cobra.Command) {
	cmd.Flags().AddFlagSet(other.Flags())
	cmd.Long, cmd.Example = cmd.Long+"\n\n"+other.Long, cmd.Example+"\n"+other.Example
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := false
		other.Flags().VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
		if given {
			return other.RunE(cmd, args)
		}
		return run(cmd, args)
	}
}
