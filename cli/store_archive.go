package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

func (a *app) storeArchiveCommand() *cobra.Command {
	var o store.ArchiveOptions
	var before string
	var include []string
	var dry bool
	cmd := &cobra.Command{
		Use: "archive --before <time> --to <file>", Short: "Move sessions that have ended to another file",
		Long: `Move the whole logs of sessions that are completed, have no open review and have last
changed before a time to an archive: an ordinary store, which every command reads by
--store. It is verified before anything is deleted. What they taught stays, and is
verified as before: alignment, lessons, exemplars and registered specialists. Their ids
stay taken, and whoever asks for one of them is told which file it is in. A store that was
set back to a backup takes another archive than before.

It may run beside dialai serve and other commands. Interrupted, it is run again, and
finishes: at every moment a session is in at least one of the two. The session that
began last and those with the newest records stay. The file of the store does not get
smaller, but new sessions use the room; with --compact it is given back, while nobody
else can write. A store in Postgres is archived to a file, too, as the role that owns its
tables; partitions of its log that are empty are dropped.`,
		Example: `  dialai store archive --before 90d --to /archive/2026.db --dry-run
  dialai store archive --before 2026-01-01 --machine refunds --to /archive/2025.db
  dialai show 3f2a --store /archive/2025.db`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case a.Flags.Server != "":
				return command.Usage("a store is archived where it is: run it there, without --server")
			case before == "":
				return command.Hinted(command.Usage("nothing says which sessions are old"), "give --before, a date such as 2026-01-31, or how long ago, such as 90d")
			case o.To == "":
				return command.Hinted(command.Usage("nothing says where they go"), "give --to, the file that they are moved to")
			}
			o.At = command.Now()
			if o.Before, err = moment("before", before, o.At); err != nil {
				return err
			}
			if err = command.NamesFile("--to", o.To); err != nil {
				return err
			}
			if o.To, err = filepath.Abs(o.To); err != nil {
				return err
			}
			o.Statuses = []session.Status{session.Completed}
			for _, name := range include {
				var s session.Status
				if err := s.UnmarshalText([]byte(name)); err != nil || s.Live() || s == session.Completed {
					return command.Hinted(command.Usage("--include is %q", name), "it may be stopped or failed: those that could be resumed")
				}
				o.Statuses = append(o.Statuses, s)
			}
			access := command.Writes
			if dry {
				access = command.Reads
			}
			if address := a.PostgresAddress(); address != "" {
				if o.Compact {
					return command.Usage("--compact is of a store in a file")
				}
				return a.withPostgres(cmd.Context(), address, access, func(ctx context.Context, s *postgres.Store) error { return a.archive(ctx, s, o, dry) })
			}
			return a.withStore(cmd.Context(), access, func(ctx context.Context, s *store.SQLite) error { return a.archive(ctx, s, o, dry) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&before, "before", "", "sessions that last changed before: a `time` such as 2026-01-31, or how long ago, such as 90d")
	f.StringVar(&o.To, "to", "", "the archive: a new `file`, or an archive of this store")
	f.StringVar(&o.MachineName, "machine", "", "only those of the machine of this `name`")
	f.StringSliceVar(&include, "include", nil, "also those of this `status`: stopped or failed")
	f.BoolVar(&dry, "dry-run", false, "say what would be moved, and move nothing")
	f.BoolVar(&o.Compact, "compact", false, "give the room back to the disk: it needs as much again for a while")
	return cmd
}

// An archiver is a store, in a file or a database, from which sessions are moved to a file.
type archiver interface {
	Archivable(ctx context.Context, o store.ArchiveOptions) (store.Archived, error)
	Archive(ctx context.Context, o store.ArchiveOptions) (store.Archived, error)
}

func (a *app) archive(ctx context.Context, s archiver, o store.ArchiveOptions, dry bool) (err error) {
	var done store.Archived
	var opening *store.OpenError
	if dry {
		done, err = s.Archivable(ctx, o)
	} else {
		copied := render.NewMeter(a.Screen(), "copying", "sessions")
		checked := render.NewMeter(a.Screen(), "verifying the archive", "records")
		deleted := render.NewMeter(a.Screen(), "deleting", "sessions")
		defer copied.Stop()
		defer checked.Stop()
		defer deleted.Stop()
		o.Copied = copied.At
		o.Checked = func(at, of int64) { copied.Stop(); checked.At(at, of) }
		o.Deleted = func(at, of int64) { checked.Stop(); deleted.At(at, of) }
		o.Programs = session.NewPrograms()
		done, err = s.Archive(ctx, o)
		deleted.Stop()
	}
	switch {
	case errors.Is(err, store.ErrArchiving):
		return untilArchived(err)
	case errors.Is(err, store.ErrSame):
		return command.Hinted(err, "name another file with --to")
	case errors.As(err, &opening) && opening.Path == o.To && !errors.Is(err, store.ErrFull):
		return command.Hinted(err, "name a new file with --to, in a folder that is there, or one that was archived to before")
	case err != nil:
		return err
	case a.Flags.JSON:
		return render.JSON(a.Out, done)
	case a.Flags.Quiet:
		return nil
	}
	what := fmt.Sprintf("%s with %s (%d bytes)", render.Plural(int(done.Sessions), "session"), render.Plural(int(done.Records), "record"), done.Bytes)
	switch {
	case done.Sessions == 0 && done.Kept == 0:
		_, err = fmt.Fprintf(a.Out, "Nothing is old enough: no session that is %s has last changed before %s\n", statuses(o.Statuses), o.Before)
	case done.Sessions == 0:
		_, err = fmt.Fprintln(a.Out, "Nothing can be moved")
	case dry:
		_, err = fmt.Fprintf(a.Out, "It would move %s\n", what)
	default:
		_, err = fmt.Fprintf(a.Out, "Moved %s to %s\n", what, done.Archive)
	}
	if err == nil && done.Kept > 0 {
		_, err = fmt.Fprintf(a.Out, "Left where they are: %s with the newest records, or changed meanwhile\n", render.Plural(int(done.Kept), "session"))
	}
	if err == nil && o.Compact && !dry {
		_, err = fmt.Fprintln(a.Out, "The room that was free in the store is given back to the disk")
	}
	return err
}

// statuses names some of them, as in "completed or failed".
func statuses(list []session.Status) string {
	var names []string
	for _, s := range list {
		names = append(names, s.String())
	}
	return strings.Join(names, " or ")
}

// untilArchived says what to do while another process archives or erases.
func untilArchived(err error) error {
	if errors.As(err, new(interface{ Advice() string })) { // it knows who, and until when
		return err
	}
	return command.Hinted(err, "wait until it is done")
}
