package cli

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (st style) printSessions(out io.Writer, list []session.Summary) error {
	switch {
	case st.json:
		return printLines(out, list)
	case st.quiet:
		for _, s := range list {
			fmt.Fprintln(out, s.SessionID)
		}
		return nil
	case len(list) == 0:
		_, err := fmt.Fprintln(out, "No sessions.")
		return err
	}
	rows := [][]string{{"SESSION", "MACHINE", "STATUS", "STATE", "ROUND", "UPDATED", "WHY"}}
	for _, s := range list {
		rows = append(rows, []string{s.SessionID, s.MachineName, s.Status.String(), s.CurrentState, fmt.Sprint(s.Round), s.UpdatedAt.String(), s.Code})
	}
	return table(out, rows)
}

func (st style) printTicks(out io.Writer, results []runner.TickResult) (failed int, err error) {
	rows := [][]string{{"SESSION", "MACHINE", "STEP", "STATE", "WHAT"}}
	for _, r := range results {
		line := r.View()
		if r.Err != nil {
			failed++
		}
		if st.json {
			if err := printJSON(out, line); err != nil {
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
	case st.json:
	case len(results) == 0:
		fmt.Fprintln(out, "No live sessions.")
	case st.quiet:
		fmt.Fprintf(out, "%s stepped, %d failed\n", plural(len(results), "session"), failed)
	default:
		err = table(out, rows)
	}
	return failed, err
}

// cancelledLine is what dialai cancel --json prints.
type cancelledLine struct {
	SessionID    string        `json:"sessionId"`
	Status       string        `json:"status"`
	Code         string        `json:"code"`
	Reason       string        `json:"reason"`
	CurrentState string        `json:"currentState"`
	Actor        session.Actor `json:"actor"`
}

func (st style) printCancelled(out io.Writer, s *session.Session, by session.Actor) error {
	o := s.Outcome()
	if st.json {
		return printJSON(out, cancelledLine{s.ID.String(), s.Status.String(), o.Code, o.Reason, s.State.Name, by})
	}
	fmt.Fprintf(out, "Session cancelled: %s (%s)\n", clean(s.State.Name), clean(o.Reason))
	if !st.quiet {
		fmt.Fprintf(out, "  %s takes it up again\n", st.command("resume", []string{s.ID.String()}))
	}
	return nil
}
