package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// Sessions prints a list of sessions.
func (st Style) Sessions(out io.Writer, sessions []session.Summary) error {
	if st.Quiet && !st.JSON {
		for _, s := range sessions {
			fmt.Fprintln(out, s.SessionID)
		}
		return nil
	}
	return list(st, out, sessions, "No sessions.", []string{"SESSION", "MACHINE", "STATUS", "STATE", "ROUND", "UPDATED", "WHY"}, func(s session.Summary) []string {
		return []string{s.SessionID.String(), s.MachineName, s.Status.String(), s.CurrentState, fmt.Sprint(s.Round), s.UpdatedAt.String(), s.Code}
	})
}

// Ticks prints what one step of each session came to, and returns how many failed.
func (st Style) Ticks(out io.Writer, results []runner.TickResult) (failed int, err error) {
	rows := [][]string{{"SESSION", "MACHINE", "STEP", "STATE", "WHAT"}}
	for _, r := range results {
		line := r.View()
		if r.Err != nil {
			failed++
		}
		if st.JSON {
			if err := JSON(out, line); err != nil {
				return failed, err
			}
			continue
		}
		what := line.Reasoning
		if line.TransitionName != "" {
			what = line.TransitionName + ": " + what
		}
		if line.Error != "" {
			what = line.Error
		}
		rows = append(rows, []string{line.SessionID, line.MachineName, line.Status, line.CurrentState, what})
	}
	switch {
	case st.JSON:
	case len(results) == 0:
		fmt.Fprintln(out, "No live sessions.")
	case st.Quiet:
		fmt.Fprintf(out, "%s stepped, %d failed\n", Plural(len(results), "session"), failed)
	default:
		err = Table(out, rows)
	}
	return failed, err
}

// CancelledLine is what dialai cancel --json prints.
type CancelledLine struct {
	SessionID    string        `json:"sessionId"`
	Status       string        `json:"status"`
	Code         string        `json:"code"`
	Reason       string        `json:"reason"`
	CurrentState string        `json:"currentState"`
	Actor        session.Actor `json:"actor"`
}

// Cancelled prints that somebody has stopped a session.
func (st Style) Cancelled(out io.Writer, s *session.Session, by session.Actor) error {
	o := s.Outcome()
	if st.JSON {
		return JSON(out, CancelledLine{s.ID.String(), s.Status.String(), o.Code, o.Reason, s.State.Name, by})
	}
	fmt.Fprintf(out, "Session cancelled: %s (%s)\n", Clean(s.State.Name), Clean(o.Reason))
	if !st.Quiet {
		fmt.Fprintf(out, "  %s takes it up again\n", st.Command("resume", []string{s.ID.String()}))
	}
	return nil
}
