package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

func (a *app) workersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List the processes that carry sessions on",
		Long: `List the processes that carry the sessions of a store in Postgres on: where each
runs, until when it counts as alive if it is not heard of again, how many sessions it
has leased, and how far its clock is off; it goes by that of the database. Each says
every 10 s that it lives, for 30 s. What a process had that was killed, others have
some 10 s after that.

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
func (a *app) quarantined(ctx context.Context, limit int) error {
	return a.withWork(ctx, func(work session.WorkStore, out *bufio.Writer) error {
		list, err := work.Quarantined(ctx, specialist.SessionID{}, limit)
		if err != nil {
			return err
		}
		if err := a.Quarantined(out, list); err == nil && limit > 0 && len(list) == limit && !a.Flags.JSON && !a.Flags.Quiet {
			fmt.Fprintf(out, "\nThere may be more; to see all of them:\n  %s\n", a.Command("sessions", nil, "--quarantined", "--all"))
		}
		return err
	})
}

// remarkQuarantined says on stderr that there are sessions that nobody carries on any more.
func (a *app) remarkQuarantined(ctx context.Context, e *engine) error {
	if a.Flags.Quiet {
		return nil
	}
	if e.far != nil {
		list, err := e.far.Quarantined(ctx, "")
		if err != nil || len(list) == 0 {
			return e.far.Told(err)
		}
		a.warnQuarantined(list[0].SessionID, list[0].Reason, a.Command("resume", []string{list[0].SessionID}))
		return nil
	}
	work, ok := e.Store.(session.WorkStore)
	if !ok {
		return nil
	}
	list, err := work.Quarantined(ctx, specialist.SessionID{}, 1)
	if err != nil || len(list) == 0 {
		return err
	}
	a.warnQuarantined(list[0].Session.String(), list[0].Reason, a.Command("sessions", nil, "--quarantined"))
	return nil
}

// warnQuarantined says of one session that it is quarantined, and what to do.
func (a *app) warnQuarantined(id, reason string, hint fmt.Stringer) {
	why := ""
	if reason != "" {
		why = " (" + render.Clean(reason) + ")"
	}
	fmt.Fprintf(a.Err, "warning: session %s is quarantined, and others may be: nobody carries them on%s\n    hint: %s\n", id, why, hint)
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
