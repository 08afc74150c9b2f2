package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/api"
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
	for i := 0; i < len(items); i++ {
		v := items[i]
		if st.Quiet {
			fmt.Fprintf(out, "%s %d %s\n", v.SessionID, v.Round, Clean(v.State))
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := st.review(out, v); err != nil {
			return err
		}
		later := 0
		for ; v.Withheld != nil && answerable(v) && i+1 < len(items) && items[i+1].SessionID == v.SessionID; i++ {
			later++
		}
		if later > 0 {
			fmt.Fprintf(out, "\nRounds of the session that came after it and wait too: %d. What they show tells how this one was decided; answer it first.\n", later)
		}
	}
	return nil
}

// answerable reports whether the viewer may answer a review, or, where nobody in particular
// looks, somebody may.
func answerable(v runner.ReviewItem) bool {
	return len(v.Transitions) > 0 && (v.Viewer == "" || len(v.Humans) == 0 || slices.Contains(v.Humans, v.Viewer))
}

func (st Style) review(out io.Writer, v runner.ReviewItem) error {
	round := strconv.Itoa(int(v.Round))
	fmt.Fprintf(out, "%s: round %s of %s in state %s, since %s (%s)\n", Clean(v.MachineName), round, st.ID(v.SessionID), Clean(v.State), v.Since, v.Review)
	About(out, v.Subject)
	Prompt(out, "  ", v.Prompt)
	fmt.Fprintf(out, "  Why: %s\n", Clean(v.Reason))
	if len(v.Humans) > 0 {
		fmt.Fprintf(out, "  For: %s\n", Clean(strings.Join(v.Humans, ", ")))
	}
	if err := st.page(out, v.Question, "explain", v.SessionID, round); err != nil {
		return err
	}
	switch {
	case answerable(v):
	case len(v.Transitions) == 0:
		_, err := fmt.Fprintf(out, "\nNobody who may answer is switched on. To see who could be:\n  %s\n", st.Command("specialists", []string{v.MachineName}))
		return err
	default:
		_, err := fmt.Fprintf(out, "\nOnly %s may answer.\n", Clean(strings.Join(v.Humans, " or ")))
		return err
	}
	fmt.Fprintln(out, "\nTo say what should have been decided, which executes nothing:")
	for _, t := range v.Transitions {
		var as []string
		if len(v.Humans) > 0 {
			who := answerer(v, t.Name)
			if who == "" {
				continue
			}
			as = []string{"--as", who}
		}
		fmt.Fprintf(out, "  %s\n", st.Command("trust audit", []string{v.SessionID, round, t.Name}, as...))
		Meaning(out, t)
	}
	return nil
}

// answerer returns in whose name a printed command answers: the viewer's, or that of the first
// who may; "" if whoever may has given this answer before.
func answerer(v runner.ReviewItem, transition string) string {
	gave := func(id string) bool {
		return slices.ContainsFunc(v.Rulings, func(r session.QuestionRuling) bool { return r.SpecialistID == id && r.TransitionName == transition })
	}
	if i := slices.IndexFunc(v.Humans, func(id string) bool { return !gave(id) && (v.Viewer == "" || id == v.Viewer) }); i >= 0 {
		return v.Humans[i]
	}
	return ""
}

// Reviewed prints what a closed round, which has an id, was answered with.
func (st Style) Reviewed(out io.Writer, id specialist.SessionID, round string, v api.Reviewed) (err error) {
	switch {
	case st.JSON:
		return JSON(out, ReviewLine{v.Review, id.String(), round, v.SpecialistID, v.TransitionName, v.Agrees})
	case !st.Quiet:
		_, err = fmt.Fprintln(out, st.reviewed(v))
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

func (st Style) reviewed(v api.Reviewed) string {
	switch {
	case v.Review == session.Adjudication:
		return "Recorded: the disagreement is settled."
	case v.Agrees:
		return "Recorded: it agrees with what was decided."
	case v.Review == session.SecondLook:
		return fmt.Sprintf("Recorded: it differs from what was decided. Who can settle it is shown by\n  %s", st.Command("trust audit", nil))
	}
	return "Recorded: it differs from what was decided."
}
