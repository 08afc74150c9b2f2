package cli

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// newestShown is how many sessions or questions a list has, unless more are asked for.
const newestShown = 50

// listFlags are those of a list of sessions.
type listFlags struct {
	query    session.ListQuery
	statuses []string
	since    string
	live     bool
	all      bool

	quarantined bool
}

func (a *app) sessionsCommand() *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of the store",
		Long: `List the newest 50 sessions of the store, the newest last: which machine they run,
where they stand, how long ago that changed, and, if they stand still, why. --all lists
every one, and so does --json.

--quarantined lists those of a store in Postgres that no process carries on any more, for
their steps have failed eight times in a row, or three processes have ended one after the
other while they carried them on, the oldest first. dialai resume, or a ruling, has them
carried on again.`,
		Example: `  dialai sessions
  dialai sessions --status needs_human --machine triage --since 2h
  dialai sessions --json | jq -r .sessionId`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.read(cmd.Flags().Changed("limit"), a.Flags.JSON); err != nil {
				return err
			}
			if f.quarantined {
				for _, other := range []string{"machine", "status", "state", "since", "live"} {
					if cmd.Flags().Changed(other) {
						return command.Usage("--quarantined and --%s: give one of them", other)
					}
				}
				return a.quarantined(cmd.Context(), f.query.Limit)
			}
			return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error { return a.sessions(cmd.Context(), e, out, f.query) })
		},
	}
	cmd.Flags().StringVar(&f.query.MachineName, "machine", "", "only sessions of the machine of this `name`")
	cmd.Flags().StringSliceVar(&f.statuses, "status", nil, "only sessions with this `status`, or one of several, with commas")
	cmd.Flags().StringVar(&f.query.State, "state", "", "only sessions in the state of this `name`")
	cmd.Flags().StringVar(&f.since, "since", "", "only sessions that have changed since a `time`: a date, or how long ago, such as 2h or 30d")
	cmd.Flags().BoolVar(&f.live, "live", false, "only sessions that have not ended")
	cmd.Flags().IntVar(&f.query.Limit, "limit", newestShown, "only the newest so many; 0 shows all")
	cmd.Flags().BoolVar(&f.all, "all", false, "all sessions")
	cmd.Flags().BoolVar(&f.quarantined, "quarantined", false, "only sessions that no process carries on any more, for they fail again and again")
	command.Complete(cmd, "status", statusNames()...)
	return cmd
}

func statusNames() (names []string) {
	for s := session.Running; s <= session.Failed; s++ {
		names = append(names, s.String())
	}
	return names
}

// read makes the query of what the flags say.
func (f *listFlags) read(limited, json bool) error {
	q := &f.query
	switch {
	case q.Limit < 0:
		return command.Usage("--limit is %d, it must be 0 (all) or more", q.Limit)
	case f.all && limited:
		return command.Usage("--all and --limit: give one of them")
	case f.live && len(f.statuses) > 0:
		return command.Hinted(command.Usage("--live and --status: give one of them"), "--live is --status running,needs_human")
	case f.all, json && !limited:
		q.Limit = 0
	}
	if f.live {
		q.Statuses = session.LiveStatuses()
	}
	for _, name := range f.statuses {
		var s session.Status
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return command.Hinted(command.Usage("--status is %q", name), "it may be %s", strings.Join(statusNames(), ", "))
		}
		if !slices.Contains(q.Statuses, s) {
			q.Statuses = append(q.Statuses, s)
		}
	}
	var err error
	q.UpdatedAfter, err = moment("since", f.since, command.Now())
	return err
}

// moment reads the date that a flag gives, or how long before a moment; "" is no time.
func moment(flag, text string, before specialist.Time) (specialist.Time, error) {
	if text == "" {
		return 0, nil
	}
	at, ago, err := jobs.ParseSince(text)
	switch {
	case err != nil:
		return 0, command.Hinted(command.Usage("--%s is %q", flag, text), "it is a date such as 2026-01-31, or how long ago, such as 30d or 2h")
	case ago == 0:
		return at - 1, nil
	}
	return max(before-specialist.Time(ago.Milliseconds()), 1), nil
}

// sessions lists the newest sessions of a query, the newest last; all of them page by page.
func (a *app) sessions(ctx context.Context, e *engine, out *bufio.Writer, q session.ListQuery) error {
	if a.Flags.JSON && q.Limit == 0 {
		var unread []error
		for sum, err := range e.each(ctx, q) {
			if err != nil {
				return err
			}
			unread = append(unread, conceal(ctx, e, &sum))
			if err := render.JSON(out, sum); err != nil {
				return err
			}
		}
		return errors.Join(unread...)
	}
	var list []session.Summary
	var unread []error
	limit := q.Limit
	if q.Desc = true; limit > 0 {
		q.Limit++ // whether there are more
	}
	for sum, err := range e.each(ctx, q) {
		if err != nil {
			return err
		}
		unread = append(unread, conceal(ctx, e, &sum))
		list = append(list, sum)
	}
	more := limit > 0 && len(list) > limit
	if more {
		list = list[:limit]
	}
	slices.Reverse(list)
	return errors.Join(a.Sessions(out, list, more, command.Now()), errors.Join(unread...))
}

// each yields the summaries of a query, page by page as they are read.
func (e *engine) each(ctx context.Context, q session.ListQuery) iter.Seq2[session.Summary, error] {
	if e.far != nil {
		return e.far.Each(ctx, q)
	}
	return session.Each(ctx, e.Sessions, q)
}

// conceal takes out of a summary what would tell what is withheld in a session, or might in
// one that cannot be read.
func conceal(ctx context.Context, e *engine, sum *session.Summary) error {
	if e.far != nil || sum.Status == session.Completed || !session.MayTell(sum.Code) {
		return nil
	}
	s, err := e.Session(ctx, sum.SessionID)
	if err != nil {
		sum.Code, sum.Reason = "", ""
		return err
	}
	o, err := e.Outcome(ctx, s, "")
	sum.Code, sum.Reason = o.Code, o.Reason
	return err
}
