package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Trust prints what everybody's word counts for.
func (st Style) Trust(out io.Writer, trusted []report.Trusted) error {
	err := list(st, out, trusted, "Nobody takes part.", []string{"STATE", "SPECIALIST", "TRUST", "AGREED", "RECORD OF", "ALONE"}, func(t report.Trusted) []string {
		return []string{t.State, Who(t.SpecialistID, t.Human), t.Trust.Text2(), agreed(t.K, t.N), t.Level, aloneOf(t)}
	})
	if err != nil || st.JSON || st.Quiet || len(trusted) == 0 {
		return err
	}
	_, err = fmt.Fprintln(out, "\nTrust is the probability of agreeing with a human, which bayes counts with. Alignment,\nwhich alignmentMargin counts with, is a lower bound of it: dialai metrics shows that.")
	return err
}

func agreed(k, n int64) string { return fmt.Sprintf("%d of %d", k, n) }

// aloneOf says how near a specialist is to deciding alone.
func aloneOf(t report.Trusted) string {
	switch e := t.Evidence; {
	case t.Off:
		return "switched off"
	case t.Champion:
		return "champion"
	case e == nil:
		return ""
	case e.Promotable:
		return "proven"
	default:
		return fmt.Sprintf("evidence %s of %s", short(e.E), short(e.Bar))
	}
}

// short prints a number in few digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// TrustOf prints where the trust of one specialist comes from, in each state.
func (st Style) TrustOf(out io.Writer, list []report.Trusted) error {
	if st.JSON {
		return Lines(out, list)
	}
	for _, t := range list {
		printTrusted(out, t)
	}
	return nil
}

func printTrusted(out io.Writer, t report.Trusted) {
	fmt.Fprintf(out, "State %s: trust %s\n", Clean(t.State), t.Trust.Text2())
	for _, p := range t.Pooled {
		fmt.Fprintf(out, "  %-8s agreed %s of %s\n", p.Level, p.K, p.N)
	}
	if len(t.Pooled) == 0 {
		fmt.Fprintf(out, "  no record: %s\n", t.Level)
	}
	if t.Champion {
		fmt.Fprintln(out, "  champion: decides alone, with audits")
	}
	e := t.Evidence
	if e == nil {
		return
	}
	fmt.Fprintf(out, "  to decide alone: agreed %s in rounds ruled blind, evidence %s of %s needed (%s)\n", agreed(e.K, e.N), short(e.E), short(e.Bar), Plural(int(e.M), "candidate"))
	fmt.Fprintf(out, "  agrees in at least %s, whenever one looks\n", e.LowerBound.Text2())
	for _, c := range e.Classes {
		fmt.Fprintf(out, "  where humans chose %s: %s\n", Clean(c.Transition), agreed(c.K, c.N))
	}
}

// Reviews prints the closed rounds that wait for a human, each answer as a command.
func (st Style) Reviews(out io.Writer, items []runner.ReviewItem) error {
	if st.JSON {
		return Lines(out, items)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "No closed round waits for a human.")
		return err
	}
	for i, v := range items {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: round %d of %s in state %s, since %s (%s)\n", Clean(v.MachineName), v.Round, v.SessionID, Clean(v.State), v.Since, v.Review)
		Prompt(out, "  ", v.Prompt)
		if len(v.Humans) > 0 {
			fmt.Fprintf(out, "  For: %s\n", Clean(strings.Join(v.Humans, ", ")))
		}
		var as []string
		if len(v.Humans) > 0 {
			as = []string{"--as", v.Humans[0]}
		}
		for _, t := range v.Transitions {
			fmt.Fprintf(out, "  %s\n", st.Command("trust audit", []string{v.SessionID, strconv.Itoa(int(v.Round)), t.Name}, as...))
		}
	}
	return nil
}

// Reviewed prints what a closed round, which has an id, was answered with.
func (st Style) Reviewed(out io.Writer, id specialist.SessionID, round string, v *session.Reviewed) (err error) {
	switch {
	case st.JSON:
		return JSON(out, ReviewLine{v.Review, id.String(), round, v.SpecialistID, v.TransitionName, agrees(v)})
	case !st.Quiet:
		_, err = fmt.Fprintln(out, reviewed(v))
	}
	return err
}

// ReviewLine is the answer to a review as --json shows it.
type ReviewLine struct {
	Review         session.ReviewKind `json:"review"`
	SessionID      string             `json:"sessionId"`
	RoundID        string             `json:"roundId"`
	SpecialistID   string             `json:"specialistId"`
	TransitionName string             `json:"transitionName"`
	Agrees         bool               `json:"agrees"` // with the engine, or with the human before
}

// agrees reports whether the answer is what was decided before.
func agrees(v *session.Reviewed) bool {
	if s := v.Lesson.Second; s != nil && v.Review == session.SecondLook {
		return s.First == s.Second
	}
	o := v.Lesson.Outcome
	return o != nil && o.Truth == o.Pick && o.Source == trust.Audited
}

func reviewed(v *session.Reviewed) string {
	switch {
	case v.Review == session.Adjudication:
		return "Recorded: the disagreement is settled."
	case agrees(v):
		return "Recorded: it agrees with what was decided."
	case v.Review == session.SecondLook:
		return "Recorded: it differs from what was decided; a third human is to settle it."
	}
	return "Recorded: it differs from what was decided."
}
