package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check or mend the store",
		Long: `The logs are the truth; everything else in the store follows from them. verify
recomputes all of it, rebuild writes it anew.`,
		Example: `  dialai store verify
  dialai store rebuild --store ./old.db`,
		RunE: needsSubcommand,
	}
	var acceptCut bool
	rebuild := &cobra.Command{
		Use: "rebuild", Short: "Write everything that follows from the logs anew", Args: arguments,
		Long: `Write the rows of sessions, alignment and exemplars anew from the logs, in one
transaction. A damaged log is reported and nothing is changed.`,
		Example: "  dialai store rebuild",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.maintain(cmd.Context(), writes, "rebuilt", func(ctx context.Context, s *store.SQLite) (store.Report, error) {
				return s.Rebuild(ctx, runner.NewPrograms(), acceptCut)
			})
		},
	}
	rebuild.Flags().BoolVar(&acceptCut, "accept-cut", false, "take logs as they are even if their end was cut off")
	cmd.AddCommand(rebuild, &cobra.Command{
		Use: "verify", Short: "Recompute every hash and everything that follows from the logs", Args: arguments,
		Long: `Recompute every hash of every log, and everything that follows from them, and
compare. The first difference is named, and the exit code is 1.`,
		Example: "  dialai store verify --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.maintain(cmd.Context(), reads, "verified", func(ctx context.Context, s *store.SQLite) (store.Report, error) {
				return s.Verify(ctx, runner.NewPrograms())
			})
		},
	})
	return cmd
}

func (a *app) maintain(ctx context.Context, does access, done string, do func(context.Context, *store.SQLite) (store.Report, error)) (err error) {
	path, err := a.storePath()
	if err != nil {
		return err
	}
	if path == "" {
		return usage("the memory store holds nothing to check; name a file with --store")
	}
	if err := a.present(path); err != nil {
		return err
	}
	s, err := openSQLite(ctx, path, does)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	report, err := do(ctx, s)
	if err != nil {
		return err
	}
	if a.flags.json {
		err = printJSON(a.out, report)
	} else if report.Difference == nil && !a.flags.quiet {
		_, err = fmt.Fprintf(a.out, "%s %s: %s, %s, no difference.\n", plural(report.Sessions, "session"), done, plural(report.Records, "record"), plural(report.Events, "event"))
	}
	if report.Difference != nil {
		return &exitError{exitFailure, report.Difference}
	}
	return err
}

// migratedLine is what migrate did as --json shows it.
type migratedLine struct {
	Applied []string `json:"applied"`
}

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database that DATABASE_URL names up to date",
		Long: `Apply the migrations that are missing to the database that DATABASE_URL names,
each in a transaction of its own. Opening a store does the same.`,
		Example: "  DATABASE_URL=sqlite:/var/lib/dialai/dialai.db dialai migrate",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name := a.env("DATABASE_URL")
			if name == "" {
				return errors.New("DATABASE_URL environment variable is required")
			}
			path, err := a.parseDatabase(name)
			if err != nil {
				return err
			}
			var applied []string
			if path != "" {
				if applied, err = store.Migrate(cmd.Context(), path); err != nil {
					return err
				}
			}
			switch {
			case a.flags.json:
				err = printJSON(a.out, migratedLine{append([]string{}, applied...)})
			case len(applied) == 0:
				_, err = fmt.Fprintln(a.out, "All migrations already applied.")
			default:
				_, err = fmt.Fprintf(a.out, "Applied %d migration(s): %s\n", len(applied), strings.Join(applied, ", "))
			}
			return err
		},
	}
}
