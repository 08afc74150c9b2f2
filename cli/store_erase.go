package cli

import (
	"cmp"
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

func (a *app) storeEraseCommand() *cobra.Command {
	var id, subject, note, archive string
	var dry bool
	cmd := &cobra.Command{
		Use: "erase (--session <id> | --subject <text>) --note <why> [--archive <file>]", Short: "Take what was said out of sessions that have ended",
		Long: `Take the payloads out of a session that has ended, or out of all with a subject, and out
of all forks of them: every text and every value that persons, models and programs have
given, the subject, the exemplars made of them, the audit of models, what agents have
logged, and what a server keeps of the sessions in the control file, or schema, beside. In
their place stand tags such as [erased 3f2a5b7c9d1e8f60], which tell equal texts of a
session, and nothing else: their key is kept nowhere.

What happened stays: states, times, costs, who decided, and all that was learned. Hashes
of records stay too, and an event says what each is now, so dialai store verify goes on
proving the store. Nothing goes on from an erased session.

Sessions that were archived are erased with --archive, one archive at a time, together
with what the store has kept of them. What the file has of sessions that the store still
has, since archiving was interrupted, is removed from the file.

If one of the sessions lives, nothing is changed. Each session is one transaction; then
a file is written anew, which needs as much room on the disk again, and a database
vacuumed, as the role that owns its tables. Interrupted, it is run again, and finishes.
What is out of reach is printed.`,
		Example: `  dialai store erase --subject "Claim 4711" --note "request 12 of 2026" --dry-run
  dialai store erase --session 3f2a --note "request 12 of 2026"
  dialai store erase --subject "Claim 4711" --note "request 12" --archive 2026.db`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.Flags.Server != "":
				return command.Usage("a store is erased where it is: run it there, without --server")
			case (id == "") == (subject == ""):
				return command.Hinted(command.Usage("nothing says what is erased, or two things do"), "give --session, or --subject with the whole subject")
			case strings.TrimSpace(note) == "":
				return command.Hinted(command.Usage("nothing says why"), "give --note; it stays, so name nobody in it")
			}
			if archive != "" {
				if err := command.NamesFile("--archive", archive); err != nil {
					return err
				}
				path, err := filepath.Abs(archive)
				if err != nil {
					return err
				}
				archive = path
			}
			access := command.Writes
			if dry {
				access = command.Reads
			}
			o := store.EraseOptions{Subject: subject, Archive: archive, Note: note, Actor: command.LocalActor(), At: command.Now(), Programs: session.NewPrograms()}
			do := func(ctx context.Context, s eraser) error {
				if id != "" {
					var err error
					if o.Session, err = command.FindID(ctx, s.List, id); err != nil {
						is, archived := errors.AsType[*session.ArchivedError](s.Archived(ctx, strings.ToLower(id)))
						if !archived || archive == "" {
							return cmp.Or(s.Archived(ctx, strings.ToLower(id)), err)
						}
						if o.Session, err = session.ParseID(is.ID); err != nil {
							return err
						}
					}
				}
				return a.erase(ctx, s, o, dry)
			}
			if address := a.PostgresAddress(); address != "" {
				return a.withPostgres(cmd.Context(), address, access, func(ctx context.Context, s *postgres.Store) error { return do(ctx, s) })
			}
			return a.withStore(cmd.Context(), access, func(ctx context.Context, s *store.SQLite) error { return do(ctx, s) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "session", "", "the session of this `id`, or its first characters")
	f.StringVar(&subject, "subject", "", "all sessions that have this whole `text` as their subject now")
	f.StringVar(&archive, "archive", "", "also in this `file`, to which sessions of the store were archived")
	f.StringVar(&note, "note", "", "`why`, for the record")
	f.BoolVar(&dry, "dry-run", false, "say what would be erased, and change nothing")
	return cmd
}

// An eraser is a store that is no archive, in a file or a database.
type eraser interface {
	List(ctx context.Context, q session.ListQuery) ([]session.Summary, error)
	Archived(ctx context.Context, prefix string) error
	Erasable(ctx context.Context, o store.EraseOptions) (store.Erased, error)
	Erase(ctx context.Context, o store.EraseOptions) (store.Erased, error)
}

func (a *app) erase(ctx context.Context, s eraser, o store.EraseOptions, dry bool) (err error) {
	var done store.Erased
	if dry {
		done, err = s.Erasable(ctx, o)
	} else {
		done, err = s.Erase(ctx, o)
	}
	_, live := errors.AsType[*store.EraseLiveError](err)
	_, archived := errors.AsType[*session.ArchivedError](err)
	_, missing := errors.AsType[*session.NotFoundError](err)
	bad, opened := errors.AsType[*store.OpenError](err)
	switch {
	case live:
		return command.Hinted(err, "cancel it, or wait until it has ended")
	case errors.Is(err, store.ErrArchiving):
		return untilArchived(err)
	case errors.Is(err, store.ErrStillRead):
		return command.Hinted(err, "run the command again, when no other has the store open, or a transaction, if need be")
	case errors.Is(err, store.ErrEraseArchive):
		return command.Hinted(err, "name that store, and this file with --archive")
	case errors.Is(err, store.ErrNoArchive), opened && o.Archive != "" && bad.Path == o.Archive:
		return command.Hinted(err, "name a file that dialai store archive has made of the store")
	case missing && len(done.Archives) > 0:
		return command.Hinted(err, "sessions were archived to %s: name it with --archive, for it was not looked into", strings.Join(done.Archives, " and "))
	case archived:
		return command.Hinted(err, "erase it there, too: name the file with --archive")
	case err != nil:
		return err
	case a.Flags.JSON:
		if done.Sessions == nil {
			done.Sessions = []store.ErasedSession{}
		}
		return render.JSON(a.Out, done)
	case a.Flags.Quiet:
		return nil
	}
	return a.erased(done, dry)
}

// erased prints what was erased, and what is out of reach.
func (a *app) erased(done store.Erased, dry bool) error {
	var b strings.Builder
	word := "Erased"
	if dry {
		word = "Would erase"
	}
	for _, one := range done.Sessions {
		fmt.Fprintf(&b, "%s session %s (%s", word, one.SessionID, one.MachineName)
		if one.ForkedFrom != "" {
			fmt.Fprintf(&b, ", forked from %s", one.ForkedFrom)
		}
		if one.Archive != "" {
			fmt.Fprintf(&b, ", in the archive %s", one.Archive)
		}
		fmt.Fprintf(&b, "): %s, %s of agents, %s of the audit of models\n", render.Plural(one.Records, "record"), entries(one.AgentLog), entries(one.Audit))
	}
	if len(done.Sessions) == 0 {
		fmt.Fprintln(&b, "Nothing is left to erase")
	}
	if done.Remembered > 0 {
		fmt.Fprintf(&b, "%s what a server remembers: %s\n", word, render.Plural(int(done.Remembered), "row"))
	}
	if a.PostgresAddress() != "" {
		fmt.Fprintln(&b, "Out of reach: archives of the write-ahead log, replication slots, and blocks of files that the server has not written to again (VACUUM FULL does)")
	}
	fmt.Fprintln(&b, "Out of reach: backups, other archives and copies of the store, receivers of webhooks, models, traces, and what commands have printed")
	for _, id := range done.Origins {
		fmt.Fprintf(&b, "Not erased: session %s, from which one of these was forked\n", id)
	}
	for _, file := range done.Archives {
		fmt.Fprintf(&b, "Not looked into: the archive %s\n", file)
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
