package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/session"
)

func (a *app) workersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List the processes that carry sessions on",
		Long: `List the processes that carry the sessions of a store in Postgres on: where each runs,
until when it counts as alive if it is not heard of again, and how many sessions it has
leased. Each says every 10 s that it lives, for 30 s. What a process had that was killed,
others have some 10 s after that.

A store in a file is carried on by one process at a time, which dialai serve is.`,
		Example: "  dialai workers --store env\n  dialai workers --store env --json | jq .leases",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWork(cmd.Context(), func(work session.WorkStore, out *bufio.Writer) error {
				list, err := work.Workers(cmd.Context())
				if err != nil {
					return err
				}
				return a.Workers(out, list)
			})
		},
	}
}

// quarantined lists the sessions that are handed out to nobody.
func (a *app) quarantined(ctx context.Context) error {
	return a.withWork(ctx, func(work session.WorkStore, out *bufio.Writer) error {
		list, err := work.Quarantined(ctx)
		if err != nil {
			return err
		}
		return a.Quarantined(out, list)
	})
}

// withWork opens the store that hands sessions out.
func (a *app) withWork(ctx context.Context, do func(session.WorkStore, *bufio.Writer) error) (err error) {
	address := a.PostgresAddress()
	if address == "" {
		return command.Hinted(command.Usage("this needs a store in Postgres: one in a file is carried on by one process at a time"), "name it with --store postgres://USER@HOST/DATABASE, or env")
	}
	s, err := a.OpenPostgres(ctx, address, command.Reads)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Out)
	return errors.Join(do(s, out), out.Flush(), s.Close())
}
