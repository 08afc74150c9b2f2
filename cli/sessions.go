package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/session"
)

func (a *app) sessionsCommand() *cobra.Command {
	var q session.ListQuery
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of the store",
		Long: `List the sessions of the store, the oldest first: which machine they run, where
they stand, and, if they stand still, why.`,
		Example: `  dialai sessions
  dialai sessions --live --machine triage
  dialai sessions --json | jq -r .sessionId`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return usage("--limit is %d, it must be 0 (all) or more", q.Limit)
			}
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				list, err := e.Sessions(cmd.Context(), q)
				if err != nil {
					return err
				}
				unread := conceal(cmd.Context(), e, list)
				return errors.Join(a.Sessions(out, list), unread)
			})
		},
	}
	cmd.Flags().StringVar(&q.MachineName, "machine", "", "only sessions of the machine of this `name`")
	cmd.Flags().BoolVar(&q.Live, "live", false, "only sessions that have not ended")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "only the newest so many; 0 shows all")
	cmd.RegisterFlagCompletionFunc("machine", a.completeMachineNames) //nolint:errcheck // the flag is there
	return cmd
}

// conceal takes out of a list what would tell what is withheld in a session, or might in one
// that cannot be read.
func conceal(ctx context.Context, e *engine, list []session.Summary) (unread error) {
	for i := range list {
		if list[i].Status == session.Completed || !session.MayTell(list[i].Code) {
			continue
		}
		s, err := e.Session(ctx, list[i].SessionID)
		if err != nil {
			unread, list[i].Code, list[i].Reason = errors.Join(unread, err), "", ""
			continue
		}
		o := s.OutcomeFor("")
		list[i].Code, list[i].Reason = o.Code, o.Reason
	}
	return unread
}
