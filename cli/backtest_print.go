package cli

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/dialai/dialai/cli/internal/guardlog"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/lab/backtest"
	"github.com/dialai/dialai/trust"
)

// A backtestRun prints what a back-test finds.
type backtestRun struct {
	style
	out     *bufio.Writer
	policy  string // what is tried
	changed bool   // anything is tried
	gates   *guardlog.GatesAgain
	flips   []backtest.Flip // the first, for people
	more    int             // not kept
}

// mostFlips is how many flips people are shown.
const mostFlips = 20

// flip takes in one flip: --json prints it at once.
func (b *backtestRun) flip(f backtest.Flip) error {
	switch {
	case b.json:
		return printJSON(b.out, flipLine{"flip", f})
	case len(b.flips) < mostFlips:
		b.flips = append(b.flips, f)
	default:
		b.more++
	}
	return nil
}

// flipLine is one round that is decided otherwise.
type flipLine struct {
	Kind string `json:"kind"` // flip
	backtest.Flip
}

// backtestLine is a state, a machine or the sum, as --json shows it.
type backtestLine struct {
	Kind string `json:"kind"` // state, machine or summary
	backtest.Result
	Sessions   int                  `json:"sessions,omitempty"`
	Verdicts   *int                 `json:"verdicts,omitempty"`   // given again, without changes
	Reproduced *int                 `json:"reproduced,omitempty"` // of those, with the same outcome
	Guards     *guardlog.GatesAgain `json:"guards,omitempty"`
}

func (b *backtestRun) print(r *backtest.Report) error {
	if b.json {
		return b.printJSON(r)
	}
	if !b.quiet {
		b.head(r)
		if err := b.table(r); err != nil {
			return err
		}
		b.details(r)
	}
	b.foot(r)
	return nil
}

func (b *backtestRun) printJSON(r *backtest.Report) error {
	var lines []any
	if b.gates != nil {
		for _, c := range b.gates.Changes {
			lines = append(lines, c)
		}
	}
	for _, s := range r.States {
		lines = append(lines, backtestLine{Kind: "state", Result: s})
	}
	for _, m := range r.Machines {
		lines = append(lines, backtestLine{Kind: "machine", Result: m})
	}
	sum := backtestLine{Kind: "summary", Result: r.Total, Sessions: r.Sessions, Guards: b.gates}
	if !b.changed {
		sum.Verdicts, sum.Reproduced = &r.Verdicts, &r.Reproduced
	}
	return printLines(b.out, append(lines, sum))
}

func (b *backtestRun) head(r *backtest.Report) {
	t := &r.Total
	name := clean(t.Machine)
	if name == "" {
		name = plural(len(r.Machines), "machine")
	}
	fmt.Fprintf(b.out, "Machine:       %s\n", name)
	fmt.Fprintf(b.out, "Policy:        %s\n", clean(b.policy))
	fmt.Fprintf(b.out, "Rounds:        %d in %s, %s decidable from the record\n\n", t.Rounds, plural(r.Sessions, "session"), percent(t.Coverage))
}

func (b *backtestRun) table(r *backtest.Report) error {
	rows := [][]string{{"STATE", "ROUNDS", "UNKNOWN", "FLIPS", "AUTOMATIC", "HUMANS", "ERRORS", "COST USD"}}
	several := len(r.Machines) > 1
	for _, s := range r.States {
		name := s.State
		if several {
			name = s.Machine + "/" + name
		}
		rows = append(rows, row(name, &s))
	}
	if len(r.States) > 1 {
		rows = append(rows, row("all", &r.Total))
	}
	return table(b.out, rows)
}

func row(name string, r *backtest.Result) []string {
	o, n := &r.Old, &r.New
	return []string{
		name, fmt.Sprint(r.Rounds), fmt.Sprint(r.Unknown), span(r.Flips),
		percent(o.AutomaticShare) + " → " + percents(n.AutomaticShare),
		fmt.Sprint(o.Humans) + " → " + span(n.Humans),
		fmt.Sprintf("%d of %d → %s of %s", o.Errors, o.Checked, span(n.Errors), span(n.Checked)),
		o.CostUSD.String() + " → " + costs(n.CostUSD),
	}
}

// span shows the best and the worst case.
func span(n [2]int) string {
	slices.Sort(n[:])
	if n[0] == n[1] {
		return fmt.Sprint(n[0])
	}
	return fmt.Sprintf("%d to %d", n[0], n[1])
}

func percents(p [2]float64) string {
	slices.Sort(p[:])
	if p[0] == p[1] {
		return percent(p[0])
	}
	return fmt.Sprintf("%.1f to %s", 100*p[0], percent(p[1]))
}

func costs(c [2]exact.Money) string {
	if c[0] == c[1] {
		return c[0].String()
	}
	return c[0].String() + " to " + c[1].String()
}

// details shows flips and steps that other guards judge otherwise.
func (b *backtestRun) details(r *backtest.Report) {
	if len(b.flips) > 0 {
		fmt.Fprintln(b.out, "\nFlips:")
	}
	for _, f := range b.flips {
		fmt.Fprintf(b.out, "  session %s round %d in %s: %s → %s%s\n", f.SessionID, f.Round, clean(f.State), clean(f.Old), clean(f.New), said(&f))
	}
	if b.more > 0 {
		fmt.Fprintf(b.out, "  and %d more: --json lists them all\n", b.more)
	}
	if b.gates == nil {
		return
	}
	fmt.Fprintf(b.out, "\nGuards:        %s judged again: %d newly allowed, %d newly refused, %d undecidable\n", plural(b.gates.Steps, "step"), b.gates.Allowed, b.gates.Refused, b.gates.Undecidable)
	for i, c := range b.gates.Changes {
		if i == mostFlips {
			fmt.Fprintf(b.out, "  and %d more: --json lists them all\n", len(b.gates.Changes)-i)
			break
		}
		fmt.Fprintf(b.out, "  session %s event %d, %s in %s: %s → %s %v\n", c.SessionID, c.Seq, clean(c.TransitionName), clean(c.State), c.Recorded, c.Now, c.NowCodes)
	}
}

func said(f *backtest.Flip) string {
	text := ""
	if f.Human != "" {
		text = ", a human said " + clean(f.Human)
	}
	if f.OffPath {
		text += ", off the path"
	}
	return text
}

// foot sums up and says what the figures are not.
func (b *backtestRun) foot(r *backtest.Report) {
	t := &r.Total
	if !b.quiet {
		fmt.Fprintln(b.out)
	}
	if !b.changed {
		fmt.Fprintf(b.out, "Verdicts:      %d given again, %d as recorded\n", r.Verdicts, r.Reproduced)
	}
	fmt.Fprintf(b.out, "Flips:         %s\n", span(t.Flips))
	if b.quiet {
		return
	}
	fmt.Fprintf(b.out, "Automatic:     %s → %s of the rounds\n", percent(t.Old.AutomaticShare), percents(t.New.AutomaticShare))
	fmt.Fprintf(b.out, "Human minutes: %v → %s\n", t.Old.HumanMinutes, minutes(t.New.HumanMinutes))
	fmt.Fprintf(b.out, "Error:         %s\n", errorShares(t))
	for i := range r.Machines {
		b.promise(&r.Machines[i])
	}
	if t.OffPath > 0 {
		fmt.Fprintf(b.out, "Off the path:  %s after a flip in the session, decided as recorded: the test is one step deep\n", plural(t.OffPath, "round"))
	}
	if t.Unknown > 0 {
		fmt.Fprintf(b.out, "Unknown:       %s lack somebody whom the policy would have asked\n", plural(t.Unknown, "round"))
	}
	fmt.Fprintln(b.out, "Error is disagreement with a human; automatic decisions nobody looked at are not in it.")
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
		now = percents(*e)
	}
	return old + " → " + now + " of the automatic decisions on which there is a human's word"
}

func minutes(m [2]float64) string {
	slices.Sort(m[:])
	if m[0] == m[1] {
		return fmt.Sprint(m[0])
	}
	return fmt.Sprintf("%v to %v", m[0], m[1])
}

// promise sets what is promised beside what came of it.
func (b *backtestRun) promise(m *backtest.Result) {
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
	case b.changed:
		realised += "; not established by what is recorded"
	}
	fmt.Fprintf(b.out, "Promise:       %s: at most %s wrong with confidence %s; %s\n", clean(m.Machine), percent(p.MaxError.Float()), p.Confidence, realised)
}

// adoptedLine is one promise whose test begins with what a back-test found.
type adoptedLine struct {
	Kind         string        `json:"kind"` // adopted
	Machine      string        `json:"machine"`
	State        string        `json:"state,omitempty"`
	Promise      trust.Promise `json:"promise"`
	PolicyDigest string        `json:"policyDigest"`
	Pairs        int           `json:"pairs"`
	Tried        int64         `json:"tried"`
	SpecialistID string        `json:"specialistId"`
}

func (st style) printAdopted(out *bufio.Writer, l *adoptedLine) error {
	switch {
	case st.json:
		return printJSON(out, l)
	case st.quiet:
		return nil
	}
	where := clean(l.Machine)
	if l.State != "" {
		where = "state " + clean(l.State)
	}
	among := ""
	if l.Tried > 1 {
		among = fmt.Sprintf(", at a confidence for the best of %d policies tried", l.Tried)
	}
	_, err := fmt.Fprintf(out, "\nAdopted:       the promise of %s begins with %s%s, once the file says so (policy %s)\n", where, plural(l.Pairs, "recorded round"), among, l.PolicyDigest)
	return err
}
