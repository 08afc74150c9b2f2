package render

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Sessions prints a list of sessions, and whether there are more before them. Who carries each on is said where that is
// not any process for all of them.
func (st Style) Sessions(out io.Writer, sessions []session.Summary, more bool, now specialist.Time) error {
	if st.Quiet && !st.JSON {
		for _, s := range sessions {
			fmt.Fprintln(out, s.SessionID)
		}
		return nil
	}
	if more && !st.JSON {
		fmt.Fprintf(out, "The newest %d; --all lists all.\n", len(sessions))
	}
	about := slices.ContainsFunc(sessions, func(s session.Summary) bool { return s.Subject != "" })
	if st.JSON || len(sessions) == 0 {
		return list(st, out, sessions, "No sessions.", nil, nil)
	}
	driven := slices.ContainsFunc(sessions, func(s session.Summary) bool { return s.Driver != session.DriverPool })
	row := func(driver, why string, rest ...string) []string {
		if driven {
			rest = append(rest, driver)
		}
		return besideID(about, rest[0], rest[1], append(rest[2:], why)...)
	}
	rows := [][]string{row("DRIVER", "WHY", "SESSION", "SUBJECT", "MACHINE", "STATUS", "STATE", "ROUND", "UPDATED")}
	for _, s := range sessions {
		rows = append(rows, row(s.Driver.String(), s.Code, st.ID(s.SessionID.String()), s.Subject, s.MachineName, s.Status.String(), s.CurrentState, fmt.Sprint(s.Round), Age(now, s.UpdatedAt)))
	}
	return Table(out, fit(rows, st.Width, "SESSION", "STATUS"))
}

// Age returns how long before a moment another one was, by its largest unit: "2m", "3h".
func Age(now, then specialist.Time) string {
	seconds := max(0, int64(now-then)/1000)
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"d", 24 * 60 * 60}, {"h", 60 * 60}, {"m", 60}} {
		if seconds >= unit.seconds {
			return fmt.Sprint(seconds/unit.seconds, unit.name)
		}
	}
	return fmt.Sprint(seconds, "s")
}

// besideID returns a row whose first column is an id and whose second one a subject: cut
// for a table, and left out where nothing in the table has one.
func besideID(about bool, id, subject string, rest ...string) []string {
	if !about {
		return append([]string{id}, rest...)
	}
	return append([]string{id, Brief(subject)}, rest...)
}

// briefSubject is how much of a subject stands in a row of a table, in characters.
const briefSubject = 40

// Brief returns a subject for a row of a table, cut where it is long.
func Brief(subject string) string {
	if runes := []rune(subject); len(runes) > briefSubject {
		return string(runes[:briefSubject-1]) + "…"
	}
	return subject
}

// About prints on a line of its own what a session is about; nothing where its machine does
// not say.
func About(out io.Writer, subject string) {
	if subject != "" {
		fmt.Fprintf(out, "  About: %s\n", Clean(subject))
	}
}

// ticksPage is how many rows of a table of steps are printed at a time.
const ticksPage = 256

// Ticks prints what one step of each session came to, as the results come, and returns how
// many failed.
func (st Style) Ticks(out *bufio.Writer, results iter.Seq2[runner.TickView, error]) (failed int, err error) {
	stepped := 0
	var page []runner.TickView
	for line, err := range results {
		if err != nil {
			return failed, errors.Join(err, st.ticks(out, page))
		}
		if stepped++; line.Error != "" {
			failed++
		}
		switch {
		case st.JSON:
			if err := errors.Join(JSON(out, line), out.Flush()); err != nil {
				return failed, err
			}
		case !st.Quiet:
			page = append(page, line)
		}
		if len(page) == ticksPage {
			if err := errors.Join(st.ticks(out, page), out.Flush()); err != nil {
				return failed, err
			}
			page = page[:0]
		}
	}
	switch {
	case st.JSON:
	case stepped == 0:
		fmt.Fprintln(out, "No session has anything to do now.")
	case st.Quiet:
		fmt.Fprintf(out, "%s stepped, %d failed\n", Plural(stepped, "session"), failed)
	}
	return failed, st.ticks(out, page)
}

// ticks prints a page of steps.
func (st Style) ticks(out io.Writer, page []runner.TickView) error {
	if len(page) == 0 {
		return nil
	}
	about := slices.ContainsFunc(page, func(v runner.TickView) bool { return v.Subject != "" })
	rows := [][]string{besideID(about, "SESSION", "SUBJECT", "MACHINE", "STEP", "STATE", "WHAT")}
	for _, line := range page {
		what := line.Reasoning
		if line.TransitionName != "" {
			what = line.TransitionName + ": " + what
		}
		switch {
		case line.Error != "" && line.TransitionName != "":
			what += "; then: " + line.Error
		case line.Error != "":
			what = line.Error
		}
		rows = append(rows, besideID(about, st.ID(line.SessionID), line.Subject, line.MachineName, line.Status, line.CurrentState, what))
	}
	return Table(out, rows)
}

// MovedLine is what dialai move --json prints for each session.
type MovedLine struct {
	SessionID    string `json:"sessionId"`
	From         string `json:"from"`
	To           string `json:"to"`
	CurrentState string `json:"currentState,omitempty"`
	Status       string `json:"status,omitempty"`
	DryRun       bool   `json:"dryRun,omitempty"`
	Error        string `json:"error,omitempty"`
}

// Moved prints what has become of a session that was to be moved.
func (st Style) Moved(out io.Writer, line MovedLine, s *session.Session, failed error) (err error) {
	if failed != nil {
		line.Error = failed.Error()
	} else {
		line.CurrentState, line.Status = cmp.Or(line.CurrentState, s.State.Name), s.Status.String()
	}
	switch {
	case st.JSON:
		return JSON(out, line)
	case failed != nil:
		_, err = fmt.Fprintf(out, "%s  not moved: %s\n", line.SessionID, Clean(line.Error))
	case !st.Quiet:
		_, err = fmt.Fprintf(out, "%s  %s: %.12s → %.12s, in %s (%s)\n", line.SessionID, Either(line.DryRun, "would be moved", "moved"), line.From, line.To, Clean(line.CurrentState), line.Status)
	}
	return err
}

// ForkedLine is what dialai fork --json prints.
type ForkedLine struct {
	SessionID    string             `json:"sessionId"`
	ForkedFrom   session.ForkedFrom `json:"forkedFrom"`
	Status       string             `json:"status"`
	CurrentState string             `json:"currentState"`
	Round        int32              `json:"round"`
}

// Forked prints a session that goes on from where another one stood.
// approved are the transitions that were executed before and had needed approvals.
func (st Style) Forked(out io.Writer, s *session.Session, approved []string) (err error) {
	from := s.Options().ForkedFrom
	switch {
	case st.JSON:
		return JSON(out, ForkedLine{s.ID.String(), *from, s.Status.String(), s.State.Name, s.Round})
	case st.Quiet:
		_, err = fmt.Fprintln(out, s.ID)
	default:
		lines := ""
		for _, name := range approved {
			lines += fmt.Sprintf("Approved:      %s, in that session: what follows is executed in this one too\n", Clean(name))
		}
		_, err = fmt.Fprintf(out, "Session ID:    %s\nForked from:   %s at event %d\nState:         %s (round %d)\n%s\nTo run on:\n  %s\n",
			s.ID, from.SessionID, from.Sequence, Clean(s.State.Name), s.Round, lines, st.Command("resume", []string{s.ID.String()}))
	}
	return err
}

// RetractedLine is what dialai retract --json prints.
type RetractedLine struct {
	SessionID    string        `json:"sessionId"`
	RoundID      string        `json:"roundId"`
	Round        int32         `json:"round"`
	SpecialistID string        `json:"specialistId"`
	Note         string        `json:"note"`
	Actor        session.Actor `json:"actor"`
}

// Retracted prints that a human has taken back the ruling on a round.
func (st Style) Retracted(out io.Writer, line RetractedLine) (err error) {
	switch {
	case st.JSON:
		return JSON(out, line)
	case !st.Quiet:
		_, err = fmt.Fprintf(out, "The ruling of %s on round %d is taken back: nobody learns from it any more. What was executed stays.\n", Clean(line.SpecialistID), line.Round)
	}
	return err
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
