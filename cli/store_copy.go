package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// copyLine is what a copy is as --json shows it.
type copyLine struct {
	store.Copy
	Control string `json:"control,omitempty"` // the copy of what a server remembers
}

// thawedLine is what a store is that can be written to again as --json shows it.
type thawedLine struct {
	Frozen bool `json:"frozen"`
}

// storeCopying is what the command is asked for.
type storeCopying struct {
	from, to, control string
	resume, final     bool
}

func (a *app) storeCopyCommand() *cobra.Command {
	var c storeCopying
	var thaw bool
	cmd := &cobra.Command{
		Use: "copy <from> [<to>]", Short: "Copy the store to another one: a file or a database of Postgres",
		Long: `Copy a store to another one, each named as for --store: what its logs say, at the same
places, definitions, registered specialists, the secret that audits are drawn by, the
audit of models, the logs of agents, and where archived sessions are. Every hash is
checked on the way; then everything else is made anew, all of the copy is verified, and
the last record of each log is compared. Until then nobody can open the copy.

The store may be used meanwhile. Interrupted, the copy goes on with --resume, and so what
was recorded since is copied. For good it is --final: then whoever writes to the store is
refused, and told where it went; what came last is copied. End dialai serve before. To
use the store again after all, --thaw.

A store is copied to one that is empty or does not exist, and so is what a server
remembers (keys, receipts, webhooks, the audit log): in the file beside a store, or in
the schema beside one in a database. It replaces what is there before anybody can open
the copy, and with --final nobody can write to it any more either. Servers have to have
the key by which secrets were sealed. Copying to or from a database with --final takes
the role that owns its tables. In a file the records of registered specialists are
numbered without leaving one out, so numbers from a database may be others there.`,
		Example: `  dialai store copy dialai.db /new/dialai.db
  dialai store copy dialai.db postgres://dialai@db.example.com/decisions
  dialai store copy dialai.db postgres://dialai@db.example.com/decisions --resume --final`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case a.Flags.Server != "":
				return command.Usage("a store is copied where it is: run it there, without --server")
			case a.Flags.Store != "":
				return command.Usage("both stores are arguments: leave --store out")
			case thaw && (len(args) > 1 || c.resume || c.final):
				return command.Usage("--thaw takes the store alone, and copies nothing")
			case !thaw && len(args) < 2:
				return command.Hinted(command.Usage("nothing says where it is copied to"), "name a file or a database: dialai store copy FROM TO")
			}
			if c.from = args[0]; thaw {
				return a.thaw(cmd.Context(), c.from, c.control)
			}
			c.to = args[1]
			return a.copyStore(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.resume, "resume", false, "go on with a copy that was interrupted, or copy what came since")
	f.BoolVar(&c.final, "final", false, "refuse whoever writes to the store from now on, and copy what came last")
	f.BoolVar(&thaw, "thaw", false, "let a store be written to again that was copied with --final")
	controlFlag(cmd, &c.control)
	return cmd
}

// A storedCopy is a store that can be copied, or copied to.
type storedCopy interface {
	store.Copyable
	io.Closer
}

// openCopied opens the store that is copied.
func (a *app) openCopied(ctx context.Context, name string, does command.Access) (storedCopy, error) {
	path, address, err := a.PlaceOf(name)
	switch {
	case err != nil:
		return nil, err
	case address != "":
		return a.OpenPostgres(ctx, address, does)
	case path == "":
		return nil, command.Usage("the memory store holds nothing to copy; name a file or a database")
	}
	if err := a.Present(path); err != nil {
		return nil, err
	}
	return a.OpenSQLite(ctx, path, does)
}

// openCopy opens the store that another one is copied to, made if need be.
func (a *app) openCopy(ctx context.Context, name string) (storedCopy, error) {
	path, address, err := a.PlaceOf(name)
	switch {
	case err != nil:
		return nil, err
	case address != "":
		return postgres.Open(ctx, address, postgres.Options{Observe: a.Watch.Transaction, Migrating: a.Migrating(), Copy: true})
	case path == "":
		return nil, command.Usage("the memory store would be gone with this process; name a file or a database")
	}
	return store.OpenSQLite(ctx, path, store.SQLiteOptions{Observe: a.Watch.Transaction, Migrating: a.Migrating(), Copy: true})
}

func (a *app) copyStore(ctx context.Context, c storeCopying) (err error) {
	from, err := a.openCopied(ctx, c.from, command.AccessFor(c.final))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	path, _, err := a.PlaceOf(c.to)
	if err != nil {
		return err
	}
	_, missing := os.Lstat(path)
	to, err := a.openCopy(ctx, c.to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	done := copyLine{}
	control, err := a.copyControl(ctx, c, path != "" && missing == nil)
	defer func() { err = errors.Join(err, control.close()) }()
	if err != nil {
		return err
	}
	m := render.NewMeter(a.Screen(), "copying", "records")
	done.Copy, err = store.CopyStore(ctx, from, to, store.CopyOptions{
		Resume: c.resume, Final: c.final, Programs: session.NewPrograms(), Told: m.Of,
		Frozen: control.freeze, Finishing: control.put,
	})
	m.Stop()
	done.Control = control.where
	switch {
	case errors.Is(err, store.ErrFull):
		return command.Hinted(err, "make room, and go on with --resume")
	case errors.Is(err, store.ErrDriven):
		return command.Hinted(err, "end dialai serve there, and copy then")
	case errors.Is(err, context.Canceled):
		return command.Hinted(err, "go on with --resume")
	case err != nil:
		return err
	case a.Flags.JSON:
		return render.JSON(a.Out, done)
	case a.Flags.Quiet:
		return nil
	}
	return a.copyDone(done)
}

// copyDone says what was copied.
func (a *app) copyDone(done copyLine) error {
	fmt.Fprintf(a.Out, "%s has %s with %s\n", done.To, render.Plural(int(done.Sessions), "session"), render.Plural(int(done.Records), "record"))
	if done.Control != "" {
		fmt.Fprintf(a.Out, "What a server remembers was copied to %s\n", done.Control)
	}
	var err error
	if done.Frozen {
		_, err = fmt.Fprintf(a.Out, "Nobody can write to %s any more; dialai store copy --thaw undoes that\n", done.From)
	} else {
		_, err = fmt.Fprintln(a.Out, "What is recorded from now on is copied with --resume, for good with --final")
	}
	return err
}

// thaw has a store, and what servers remember of it, written to again.
func (a *app) thaw(ctx context.Context, name, control string) (err error) {
	s, err := a.openCopied(ctx, name, command.Writes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = store.Thaw(ctx, s); err == nil {
		var remembers controlPlace
		if remembers, err = a.controlPlace(name, control); err == nil {
			err = remembers.with(ctx, false, func(c remembering) error { return c.Freeze(ctx, "") })
		}
	}
	switch {
	case err != nil || a.Flags.Quiet:
	case a.Flags.JSON:
		err = render.JSON(a.Out, thawedLine{})
	default:
		_, err = fmt.Fprintln(a.Out, "The store can be written to")
	}
	return err
}
