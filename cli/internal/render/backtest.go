package render

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
)

// A Backtest prints what a back-test finds.
type Backtest struct {
	Style
	Out     *bufio.Writer
	Machine string // whose rounds; "" for those of all
	Policy  string // what is tried
	Changed bool   // anything is tried
	Gates   *guardlog.GatesAgain
	flips   []backtest.Flip // the first, for people
	more    int             // not kept
}

// mostFlips is how many flips people are shown.
const mostFlips = 20

// Flip takes in one flip: --json prints it at once.
func (b *Backtest) Flip(f backtest.Flip) error {
	switch {
	case b.JSON:
		return JSON(b.Out, jobs.FlipOf(f))
	case len(b.flips) < mostFlips:
		b.flips = append(b.flips, f)
	default:
		b.more++
	}
	return nil
}

// Print prints what a back-test came to.
func (b *Backtest) Print(r *backtest.Report) error {
	if b.JSON {
		return Lines(b.Out, jobs.BacktestLines(r, b.Gates, b.Changed))
	}
	if !b.Quiet {
		b.head(r)
		if err := b.table(r); err != nil {
			return err
		}
		b.details(r)
	}
	b.foot(r)
	return nil
}

func (b *Backtest) head(r *backtest.Report) {
	t := &r.Total
	fmt.Fprintf(b.Out, "Machine:       %s\n", cmp.Or(Clean(t.Machine), Clean(b.Machine), Plural(len(r.Machines), "machine")))
	fmt.Fprintf(b.Out, "Policy:        %s\n", Clean(b.Policy))
	if t.Rounds == 0 {
		fmt.Fprintf(b.Out, "Rounds:        none in %s\n", Plural(r.Sessions, "session"))
		return
	}
	fmt.Fprintf(b.Out, "Rounds:        %d in %s, %s decidable from the record\n\n", t.Rounds, Plural(r.Sessions, "session"), percent(t.Coverage))
}

func (b *Backtest) table(r *backtest.Report) error {
	if len(r.States) == 0 {
		return nil
	}
	rows := [][]string{{"STATE", "ROUNDS", "UNKNOWN", "FLIPS", "AUTOMATIC", "HUMANS", "ERRORS", "COST USD"}}
	for _, s := range r.States {
		rows = append(rows, row(When(len(r.Machines) > 1, s.Machine+"/")+s.State, &s))
	}
	if len(r.States) > 1 {
		rows = append(rows, row("all", &r.Total))
	}
	return Table(b.Out, rows)
}

func row(name string, r *backtest.Result) []string {
	o, n := &r.Old, &r.New
	return []string{
		name, fmt.Sprint(r.Rounds), fmt.Sprint(r.Unknown), span(r.Flips),
		ifKnown(o.AutomaticShare) + " → " + percents(n.AutomaticShare),
		fmt.Sprint(o.Humans) + " → " + span(n.Humans),
		fmt.Sprintf("%d of %d → %s of %s", o.Errors, o.Checked, span(n.Errors), span(n.Checked)),
		o.CostUSD.String() + " → " + costs(n.CostUSD),
	}
}

// span shows the best and the worst case.
func span[N int | float64](n [2]N) string {
	slices.Sort(n[:])
	return fmt.Sprint(n[0]) + When(n[0] != n[1], fmt.Sprintf(" to %v", n[1]))
}

// percents is of nil "-".
func percents(known *[2]float64) string {
	if known == nil {
		return "-"
	}
	p := *known
	slices.Sort(p[:])
	if p[0] == p[1] {
		return percent(p[0])
	}
	return fmt.Sprintf("%.1f to %s", 100*p[0], percent(p[1]))
}

func costs(c [2]exact.Money) string {
	return c[0].String() + When(c[0] != c[1], " to "+c[1].String())
}

// details shows flips and steps that other guards judge otherwise.
func (b *Backtest) details(r *backtest.Report) {
	if len(b.flips) > 0 {
		fmt.Fprintln(b.Out, "\nFlips:")
	}
	for _, f := range b.flips {
		fmt.Fprintf(b.Out, "  session %s round %d in %s: %s → %s%s\n", b.ID(f.SessionID), f.Round, Clean(f.State), Clean(f.Old), Clean(f.New), said(&f))
	}
	if b.more > 0 {
		fmt.Fprintf(b.Out, "  and %d more: --json lists them all\n", b.more)
	}
	if b.Gates == nil {
		return
	}
	fmt.Fprintf(b.Out, "\nGuards:        %s judged again: %d newly allowed, %d newly refused, %d undecidable\n", Plural(b.Gates.Steps, "step"), b.Gates.Allowed, b.Gates.Refused, b.Gates.Undecidable)
	for i, c := range b.Gates.Changes {
		if i == mostFlips {
			fmt.Fprintf(b.Out, "  and %d more: --json lists them all\n", len(b.Gates.Changes)-i)
			break
		}
		fmt.Fprintf(b.Out, "  session %s event %d, %s in %s: %s → %s %v\n", b.ID(c.SessionID), c.Seq, Clean(c.TransitionName), Clean(c.State), c.Recorded, c.Now, c.NowCodes)
	}
}

func said(f *backtest.Flip) string {
	return When(f.Human != "", ", a human said "+Clean(f.Human)) + When(f.OffPath, ", off the path")
}

// foot sums up and says what the figures are not.
func (b *Backtest) foot(r *backtest.Report) {
	t := &r.Total
	if !b.Quiet {
		fmt.Fprintln(b.Out)
	}
	if !b.Changed {
		fmt.Fprintf(b.Out, "Verdicts:      %d given again, %d as recorded\n", r.Verdicts, r.Reproduced)
	}
	fmt.Fprintf(b.Out, "Flips:         %s\n", span(t.Flips))
	if b.Quiet {
		return
	}
	fmt.Fprintf(b.Out, "Automatic:     %s → %s of the rounds%s\n", ifKnown(t.Old.AutomaticShare), percents(t.New.AutomaticShare), unshared[t.Unshared])
	fmt.Fprintf(b.Out, "Human minutes: %v%s → %s%s\n", t.Old.HumanMinutes, measured(t.Old.HumanMeasured, t.Old.Humans), span(t.New.HumanMinutes), measured(t.New.HumanMeasured, t.New.Humans[1]))
	fmt.Fprintf(b.Out, "Error:         %s\n", errorShares(t))
	for i := range r.Machines {
		b.promise(&r.Machines[i])
	}
	if t.OffPath > 0 {
		fmt.Fprintf(b.Out, "Off the path:  %s after a flip in the session, decided as recorded: the test is one step deep\n", Plural(t.OffPath, "round"))
	}
	if t.Unknown > 0 {
		fmt.Fprintf(b.Out, "Unknown:       %s lack somebody whom the policy would have asked\n", Plural(t.Unknown, "round"))
	}
	fmt.Fprintln(b.Out, "Error is disagreement with a human; automatic decisions nobody looked at are not in it.")
}

// unshared says why it is unknown how much would be automatic.
var unshared = map[backtest.Unshared]string{
	backtest.NoRounds:       ": there is no round",
	backtest.NotEstablished: ": unknown, for what is recorded does not establish the promise, and until something does all rounds go to humans",
}

// errorShares says how many automatic decisions were wrong, as far as that is known.
func errorShares(t *backtest.Result) string {
	if t.Old.ErrorShare == nil && t.New.ErrorShare == nil {
		return "unknown, there is no human's word on any automatic decision"
	}
	old, now := "unknown", "unknown"
	if e := t.Old.ErrorShare; e != nil {
		old = percent(*e)
	}
	if e := t.New.ErrorShare; e != nil {
		now = percents(e)
	}
	return old + " → " + now + " of the automatic decisions on which there is a human's word"
}

// promise sets what is promised beside what came of it.
func (b *Backtest) promise(m *backtest.Result) {
	if m.Promise == nil {
		return
	}
	p := m.Promise
	wrong, n := int64(m.New.Errors[1]), int64(m.New.Checked[1])
	realised := "nothing was looked at"
	if n > 0 {
		realised = fmt.Sprintf("%d of %d were, so at most %s", wrong, n, percent(trust.ErrorAbove(wrong, n, p.Confidence.Float())))
	}
	switch {
	case m.Tau > 0:
		realised += fmt.Sprintf("; established above %s at the end", m.Tau)
	case b.Changed:
		realised += "; not established by what is recorded"
	}
	fmt.Fprintf(b.Out, "Promise:       %s: at most %s wrong with confidence %s; %s\n", Clean(m.Machine), percent(p.MaxError.Float()), p.Confidence, realised)
}

// Adopted prints that the test of a promise begins with what was found.
func (st Style) Adopted(out *bufio.Writer, l *api.AdoptedPromise) error {
	switch {
	case st.JSON:
		return JSON(out, l)
	case st.Quiet:
		return nil
	}
	where := Either(l.State != "", "state "+Clean(l.State), Clean(l.Machine))
	_, err := fmt.Fprintf(out, "\nAdopted:       the promise of %s begins with %s%s, once the file says so (policy %s)\n", where, Plural(l.Pairs, "recorded round"), amongTried(l.Tried), l.PolicyDigest)
	return err
}

// amongTried says that the policy was chosen among several.
func amongTried(n int64) string {
	return When(n > 1, fmt.Sprintf(", at a confidence for the best of %d policies tried", n))
}
