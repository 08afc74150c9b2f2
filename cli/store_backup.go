package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// backupLine is what a backup is as --json shows it.
type backupLine struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Control string `json:"control,omitempty"` // its control file, if there is one
}

func (a *app) storeBackupCommand() *cobra.Command {
	var control string
	cmd := &cobra.Command{
		Use: "backup <file>", Short: "Write the store as it is now to another file",
		Long: `Write the store as it is at one moment to another file, while others read and write it.
Of a server that keeps a control file beside its store (keys, receipts, webhooks, the
audit log) that is copied first, to FILE.control, so that nothing in it is ahead of the
store. A file that is there already is not written over; a backup that was interrupted
leaves none.

The secrets beside the store (server-key, *.key) are not copied: who has the backup must
not have them.`,
		Example: `  dialai store backup /backup/dialai-$(date +%F).db
  dialai store verify --store /backup/dialai-2026-01-31.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Flags.Server != "" {
				return command.Usage("a backup is written where the store is: run it there, without --server")
			}
			if a.PostgresAddress() != "" {
				return command.Hinted(command.Usage("a store in Postgres is backed up by its server: see pg_basebackup and pg_dump"), "dialai store copy FROM FILE writes it to a file, as it is at one moment")
			}
			if err := command.NamesFile("what is written", args[0]); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), command.Reads, func(ctx context.Context, s *store.SQLite) error {
				return a.backup(ctx, s, cmp.Or(control, store.ControlPath(s.Path())), args[0])
			})
		},
	}
	controlFlag(cmd, &control)
	return cmd
}

func controlFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "control", "", "the `file` in which a server keeps what it must remember (default: that of the store, with .control behind its name)")
}

func (a *app) backup(ctx context.Context, s *store.SQLite, control, into string) error {
	done, beside := backupLine{Path: into}, store.ControlPath(into)
	for _, path := range []string{into, beside} {
		if _, err := os.Lstat(path); err == nil {
			return command.Hinted(fmt.Errorf("%s is there already, and is not written over", path), "name another file, or remove it")
		}
	}
	m := render.NewMeter(a.Screen(), "copying the store", "pages")
	defer m.Stop()
	found, err := a.withControl(ctx, control, func(c *store.Control) error { return c.Backup(ctx, beside, nil) })
	if err == nil {
		if found {
			done.Control = beside
		}
		if err = s.Backup(ctx, into, m.At); err != nil && found {
			err = errors.Join(err, os.Remove(done.Control)) // of no store
		}
	}
	m.Stop()
	if err != nil {
		return err
	}
	info, err := os.Stat(into)
	if err != nil {
		return err
	}
	done.Bytes = info.Size()
	switch {
	case a.Flags.JSON:
		return render.JSON(a.Out, done)
	case a.Flags.Quiet:
		return nil
	}
	fmt.Fprintf(a.Out, "%s: %d bytes", done.Path, done.Bytes)
	if done.Control != "" {
		fmt.Fprintf(a.Out, ", and %s", done.Control)
	}
	_, err = fmt.Fprintf(a.Out, "\nCheck it with: %s\n", render.Command{Path: []string{"dialai", "store", "verify", "--store", done.Path}})
	return err
}

// withControl opens a control file for a while, and says whether there is one.
func (a *app) withControl(ctx context.Context, path string, do func(*store.Control) error) (found bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	c, err := store.OpenControl(ctx, path, store.SQLiteOptions{})
	if errors.Is(err, store.ErrReadOnly) {
		c, err = store.OpenControl(ctx, path, store.SQLiteOptions{ReadOnly: true})
	}
	if err != nil {
		return true, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return true, do(c)
}

func (a *app) storeRestoreCommand() *cobra.Command {
	var control string
	cmd := &cobra.Command{
		Use: "restore <file>", Short: "Put a backup in the place of the store",
		Long: `Check a backup as dialai store verify does, and put a copy of it in the place of the
store, and one of FILE.control, if there is one, beside it. What is there is not lost: it
is kept beside it, under its name and the time. The store has another epoch then: readers
and webhooks that had seen more than the backup has begin anew.

While dialai serve carries the sessions on it is refused: end that first. Other programs
that have the store open can commit nothing any more, and say so. Asks that were out when
the backup was made are sent again, under the same keys.`,
		Example: "  dialai store restore /backup/dialai-2026-01-31.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.StorePath()
			switch {
			case err != nil:
				return err
			case a.Flags.Server != "":
				return command.Usage("a store is restored where it is: run it there, without --server")
			case path == "":
				return command.Usage("the memory store cannot be restored; name a file with --store")
			}
			if err := command.NamesFile("what is restored", args[0]); err != nil {
				return err
			}
			return a.restore(cmd.Context(), args[0], store.RestoreOptions{Path: path, ControlPath: cmp.Or(control, store.ControlPath(path)), At: time.Now()})
		},
	}
	controlFlag(cmd, &control)
	return cmd
}

func (a *app) restore(ctx context.Context, from string, o store.RestoreOptions) (err error) {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return command.Hinted(fmt.Errorf("there is no backup %s", from), "dialai store backup makes one")
	}
	backup, err := a.OpenSQLite(ctx, from, command.Reads) // one of an older program is migrated
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	m := render.NewMeter(a.Screen(), "reading the logs of the backup", "records")
	backup.OnProgress(m.At)
	report, err := backup.Verify(ctx, session.NewPrograms())
	m.Stop()
	if err != nil {
		return err
	}
	if report.Difference != nil {
		return command.Fail(command.ExitFailure, fmt.Errorf("the backup is damaged, and nothing was changed: %w", report.Difference))
	}
	var done store.Restoration
	put := func(control *store.Control) (err error) {
		o.Control = control
		done, err = backup.Restore(ctx, o)
		return err
	}
	found, err := a.withControl(ctx, store.ControlPath(from), put)
	if err == nil && !found {
		err = put(nil)
	}
	switch {
	case errors.Is(err, store.ErrDriven):
		return command.Hinted(err, "end that dialai serve, and restore then")
	case errors.Is(err, store.ErrSame):
		return command.Hinted(err, "name the store that it is to take the place of with --store")
	case err != nil:
		return err
	case a.Flags.JSON:
		return render.JSON(a.Out, done)
	case a.Flags.Quiet:
		return nil
	}
	for _, r := range []*store.Restored{&done.Restored, done.Control} {
		if r == nil {
			continue
		}
		line := r.Path + " is the backup now"
		if r.Kept != "" {
			line += "; what was there is " + r.Kept
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.ControlPath); err == nil && done.Control == nil {
		_, err = fmt.Fprintf(a.Out, "%s is as it was: the backup has none\n", o.ControlPath)
		return err
	}
	return nil
}
