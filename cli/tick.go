package cli

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/session"
)

func (a *app) tickCommand() *cobra.Command {
	tapes := &tapeFlags{}
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "Run one step of every live session",
		Long: `Run one step of every session that has not ended, 16 at a time, except those that wait
for a timer. Where that executes a timer, or leads to a
state where only humans decide, the session goes on, so that they are asked at
once. Reminders that have come are recorded (reminded, in dialai log). A session
that fails fails only its own line, and the exit code is 1. With --record or
--replay there may be only one.`,
		Example: `  dialai tick
  watch -n 60 dialai tick --quiet`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.taped(tapes, func() error {
				return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error { return a.tick(cmd.Context(), e, out) })
			})
		},
	}
	tapes.add(cmd)
	return cmd
}

func (a *app) tick(ctx context.Context, e *engine, out *bufio.Writer) error {
	if err := a.windOnly(ctx, e); err != nil {
		return err
	}
	failed, err := a.Ticks(out, e.ticks(ctx))
	if err != nil || failed == 0 {
		return err
	}
	return command.Exit(command.ExitFailure)
}

// windOnly gets the cassettes of the only live session ready, if there are to be any.
func (a *app) windOnly(ctx context.Context, e *engine) error {
	if a.Tape == nil {
		return nil
	}
	live, err := e.Sessions(ctx, session.ListQuery{Statuses: session.LiveStatuses(), Limit: 2})
	switch {
	case err != nil || len(live) == 0:
		return err
	case len(live) > 1:
		return command.Hinted(command.Usage("cassettes are of one session, and several are live"), "dialai resume SESSION goes on with one of them")
	}
	s, err := e.Session(ctx, live[0].SessionID)
	if err != nil {
		return err
	}
	return a.loadTape(s)
}
