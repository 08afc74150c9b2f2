package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check or repair the store",
		Long: `The logs are the truth; everything else in the store follows from them. verify
recomputes all of it, rebuild writes it anew, status says how large it is, and head prints
what proves later that nothing was set back.`,
		Example: `  dialai store verify
  dialai store rebuild --store ./old.db`,
	}
	var job api.NewJob
	rebuild := &cobra.Command{
		Use: "rebuild", Short: "Rebuild all tables from the logs",
		Long: `Write everything anew that follows from the logs: sessions, alignment, exemplars,
lessons, what stands beside the events of a record, all indexes and free space. It is
one transaction, and needs as much room on the disk as the store again. What follows
from nothing stays as it is: the secret that audits are drawn by, the audit of models, the
logs of agents. Events that are stored as JSON, as those of a store that is named
sqlite:PATH?pack=off, stay so without --repack. A damaged log or definition is reported,
and nothing is changed. While a process carries the sessions on, as dialai serve does, it
is refused: end that, or start it with --drive off.

Of a store in Postgres it writes rows, not pages and indexes, and checks all of it before
and after; whoever else writes waits meanwhile, and is told that the store is busy.`,
		Example: "  dialai store rebuild",
		RunE: func(cmd *cobra.Command, _ []string) error {
			job.Kind = "rebuild"
			if address := a.PostgresAddress(); address != "" && a.Flags.Server == "" {
				return a.rebuildPostgres(cmd.Context(), address, &job.RebuildJob)
			}
			return a.maintain(cmd.Context(), command.Writes, "rebuilt", job, func(ctx context.Context, s *store.SQLite) (store.Report, error) {
				report, err := s.Rebuild(ctx, session.NewPrograms(), store.RebuildOptions{AcceptCut: job.AcceptCut, Repack: job.Repack})
				if errors.Is(err, store.ErrDriven) {
					err = command.Hinted(err, "end that dialai serve, or start it with --drive off, and rebuild then")
				}
				return report, err
			})
		},
	}
	rebuild.Flags().BoolVar(&job.AcceptCut, "accept-cut", false, "take logs as they are even if their end was cut off")
	rebuild.Flags().BoolVar(&job.Repack, "repack", false, "pack the events that a store with pack=off has kept as JSON")
	cmd.AddCommand(a.storeArchiveCommand(), a.storeBackupCommand(), a.storeCopyCommand(), a.storeEraseCommand(), a.storeHeadCommand(), rebuild, a.storeRestoreCommand(), a.storeStatusCommand(), a.storeVerifyCommand())
	return cmd
}

func (a *app) storeVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use: "verify", Short: "Recompute every hash and everything that follows from the logs",
		Long: `Check the file with SQLite's own checks, recompute every hash of every log, and
compare every column of every row with what the logs say. The first difference of each
kind is named, whether dialai store rebuild repairs it, and the exit code is 1. Rebuild
repairs whatever follows from the logs; not damaged logs, definitions, tables, the secret
that audits are drawn by, the audit of models, or the logs of agents. When migrations
ran, and how often trust was written anew, is compared with nothing, since no record
says so.

Of a store in Postgres, pages, indexes and the schema are the server's: see pg_amcheck.

With --head it also proves that every record that was there when dialai store head
printed it is still there as it was.`,
		Example: `  dialai store verify --json
  dialai store verify --head "$(cat /elsewhere/head)"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var heads []store.Head
			if head != "" {
				h, err := store.ParseHead(strings.TrimSpace(head))
				if err != nil {
					return command.Usage("%v", err)
				}
				heads = append(heads, h)
			}
			job := api.NewJob{Kind: "verify", VerifyJob: api.VerifyJob{Head: strings.TrimSpace(head)}}
			if address := a.PostgresAddress(); address != "" && a.Flags.Server == "" {
				return a.verifyPostgres(cmd.Context(), address, head)
			}
			return a.maintain(cmd.Context(), command.Reads, "verified", job, func(ctx context.Context, s *store.SQLite) (store.Report, error) {
				return s.Verify(ctx, session.NewPrograms(), heads...)
			})
		},
	}
	cmd.Flags().StringVar(&head, "head", "", "what dialai store head printed earlier: `PLACE:HASH`")
	return cmd
}

// withPostgres opens the store in Postgres for a while.
func (a *app) withPostgres(ctx context.Context, address string, does command.Access, do func(context.Context, *postgres.Store) error) error {
	s, err := a.OpenPostgres(ctx, address, does)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, s), s.Close())
}

// verifyPostgres checks a store in Postgres.
func (a *app) verifyPostgres(ctx context.Context, address, head string) error {
	if head != "" {
		return command.Usage("--head is of a store in a file")
	}
	return a.withPostgres(ctx, address, command.Reads, func(ctx context.Context, s *postgres.Store) error {
		m := render.NewMeter(a.Screen(), "reading the logs", "records")
		report, err := s.Verify(ctx, session.NewPrograms(), m.At)
		m.Stop()
		if err != nil {
			return err
		}
		return a.reported(report, "verified")
	})
}

// rebuildPostgres writes anew what follows from the logs of a store in Postgres.
func (a *app) rebuildPostgres(ctx context.Context, address string, job *api.RebuildJob) error {
	if job.AcceptCut || job.Repack {
		return command.Usage("--accept-cut and --repack are of a store in a file")
	}
	return a.withPostgres(ctx, address, command.Writes, func(ctx context.Context, s *postgres.Store) error {
		m := render.NewMeter(a.Screen(), "rebuilding", "records")
		report, err := s.Rebuild(ctx, session.NewPrograms(), m.Of)
		m.Stop()
		if errors.Is(err, store.ErrDriven) {
			err = command.Hinted(err, "end the processes that dialai workers lists, and who runs sessions; one that was killed counts for 30 s")
		}
		if err != nil {
			return err
		}
		return a.reported(report, "rebuilt")
	})
}

// headLine is the head of a store as --json shows it.
type headLine struct {
	Head   string `json:"head"`
	Log    int64  `json:"log"`
	Roster int64  `json:"roster"`
	Audit  int64  `json:"audit"`
	Agents int64  `json:"agents,omitempty"`
	Hash   string `json:"hash"`
}

func (a *app) storeHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "head", Short: "Print the newest place of the log and a hash of all records",
		Long: `Print PLACE:HASH. Kept where whoever can write the store cannot, it lets
dialai store verify --head prove later that nothing up to there was set back, removed or
written anew. The place has three numbers: how many records there are of sessions, of
registered specialists and champions, and of the audit of models; and a fourth, of the
logs of agents, once there is one. The hash covers the hash of each of these records and
its place.`,
		Example: `  dialai store head > /elsewhere/head
  dialai store verify --head "$(cat /elsewhere/head)"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), command.Reads, func(ctx context.Context, s *store.SQLite) error {
				h, err := s.Head(ctx)
				switch {
				case err != nil:
				case a.Flags.JSON:
					err = render.JSON(a.Out, headLine{h.String(), h.Log, h.Roster, h.Audit, h.Agents, h.Hash.String()})
				default:
					_, err = fmt.Fprintln(a.Out, h)
				}
				return err
			})
		},
	}
}

func (a *app) storeStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what the store is, and how large",
		Long: `Print of which version the tables of the store are, where its log ends, how large it is,
and how many sessions live. Of a store in Postgres it also prints how many processes
carry sessions on, what they have, what is ready for one and for how long, and for how
long the oldest transaction has been writing, for which followers of the log wait.`,
		Example: `  dialai store status
  dialai store status --server https://decisions.example.com --json`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var is api.Store
			switch address := a.PostgresAddress(); {
			case a.Flags.Server != "":
				is, err = a.statusAt(cmd.Context())
			case address != "":
				err = a.withPostgres(cmd.Context(), address, command.Reads, func(ctx context.Context, s *postgres.Store) (err error) {
					is.StoreStatus, err = s.Status(ctx)
					return err
				})
			default:
				err = a.withStore(cmd.Context(), command.Reads, func(ctx context.Context, s *store.SQLite) (err error) {
					is.StoreStatus, err = s.Status(ctx)
					return err
				})
			}
			if err != nil {
				return err
			}
			return a.StoreStatus(a.Out, is)
		},
	}
}

// statusAt returns what a server keeps its sessions in. What it remembers of it beside is not told:
// it is not of the store.
func (a *app) statusAt(ctx context.Context) (is api.Store, err error) {
	far, err := remote.Open(ctx, a.App, nil)
	if err == nil {
		is, err = far.Store(ctx)
		is.LastVerify, err = nil, far.Told(err)
	}
	return is, err
}

// withStore opens the store's file, which must be there, for a while.
func (a *app) withStore(ctx context.Context, does command.Access, do func(context.Context, *store.SQLite) error) (err error) {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	if path == "" {
		return command.Usage("the memory store holds nothing to check; name a file with --store")
	}
	if err := a.Present(path); err != nil {
		return err
	}
	s, err := a.OpenSQLite(ctx, path, does)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(ctx, s)
}

// maintain prints what a check or rebuild found. At a server it is a job.
func (a *app) maintain(ctx context.Context, does command.Access, done string, job api.NewJob, do func(context.Context, *store.SQLite) (store.Report, error)) (err error) {
	var report store.Report
	m := render.NewMeter(a.Screen(), "reading the logs", "records")
	if a.Flags.Server != "" {
		report, err = a.maintainAt(ctx, job, m.At)
	} else {
		err = a.withStore(ctx, does, func(ctx context.Context, s *store.SQLite) (err error) {
			s.OnProgress(m.At)
			report, err = do(ctx, s)
			return err
		})
	}
	m.Stop()
	if err != nil {
		return err
	}
	return a.reported(report, done)
}

// reported prints what a check or rebuild found.
func (a *app) reported(report store.Report, done string) (err error) {
	if a.Flags.JSON {
		err = render.JSON(a.Out, report)
	} else if !a.Flags.Quiet {
		err = render.Report(a.Out, report, done)
	}
	if report.Difference != nil {
		return command.Fail(command.ExitFailure, report.Difference)
	}
	return err
}

// maintainAt has a server do a job about its store, and returns what that has found.
func (a *app) maintainAt(ctx context.Context, job api.NewJob, tell func(done, of int64)) (report store.Report, err error) {
	far, err := remote.Open(ctx, a.App, nil)
	if err != nil {
		return report, err
	}
	_, result, err := far.Work(ctx, job, tell)
	if err == nil {
		err = json.Unmarshal(result, &report)
	}
	return report, err
}

// migratedLine is what migrate did as --json shows it.
type migratedLine struct {
	Applied []string `json:"applied"`
}

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database that --store or DATABASE_URL names up to date",
		Long: `Apply the migrations that are missing to the database that --store names or, without it,
DATABASE_URL, each in a transaction of its own. Opening a store does the same.`,
		Example: "  DATABASE_URL=sqlite:/var/lib/dialai/dialai.db dialai migrate\n  dialai migrate --store postgres://dialai@db.example/decisions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := a.Flags.Store
			if name == "" {
				if a.Env("DATABASE_URL") == "" {
					return errors.New("DATABASE_URL environment variable is required")
				}
				name = "env"
			}
			path, address, err := a.PlaceOf(name)
			if err != nil {
				return err
			}
			var applied []string
			switch {
			case path != "":
				applied, err = store.Migrate(cmd.Context(), path, store.SQLiteOptions{Migrating: a.Migrating()})
			case address != "":
				applied, err = postgres.Migrate(cmd.Context(), address, postgres.Options{Migrating: a.Migrating()})
			}
			switch {
			case err != nil:
				return err
			case a.Flags.JSON:
				err = render.JSON(a.Out, migratedLine{append([]string{}, applied...)})
			case len(applied) == 0:
				_, err = fmt.Fprintln(a.Out, "All migrations already applied.")
			default:
				_, err = fmt.Fprintf(a.Out, "Applied %d migration(s): %s\n", len(applied), strings.Join(applied, ", "))
			}
			return err
		},
	}
}
