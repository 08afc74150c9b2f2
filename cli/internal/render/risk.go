package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
)

// Risks prints promises. waiting is how many rounds wait for a human to judge them.
func (st Style) Risks(out io.Writer, r *report.Risks, waiting int) error {
	if st.Quiet {
		for i := range r.Promises {
			fmt.Fprintf(out, "%s %s\n", Clean(scopeOf(&r.Promises[i])), r.Promises[i].State)
		}
		return nil
	}
	fmt.Fprintf(out, "Machine:       %s\n", Clean(r.MachineName))
	if len(r.Promises) == 0 {
		fmt.Fprintln(out, "\nNothing is promised: no state has the arbiter bayes, or all go by a threshold.")
	}
	for i := range r.Promises {
		printPromise(out, &r.Promises[i])
	}
	if waiting > 0 {
		fmt.Fprintf(out, "\nWaiting:       %s for a human to judge (dialai trust audit)\n", Plural(waiting, "closed round"))
	}
	if len(r.Promises) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nWhat these figures do not show:")
	for i, c := range r.Caveats {
		fmt.Fprintf(out, "  (%c) %s\n", 'a'+i, c)
	}
	return nil
}

func scopeOf(p *report.PromiseStatus) string {
	return Either(p.Scope == "", "the machine", "state "+p.Scope)
}

func printPromise(out io.Writer, p *report.PromiseStatus) {
	fmt.Fprintf(out, "\nPromise:       at most %s of the automatic decisions wrong, with confidence %s\n", p.Promise.MaxError, p.Promise.Confidence)
	if p.Undeclared {
		fmt.Fprintln(out, "               (bayes promises this where nothing is declared)")
	}
	fmt.Fprintf(out, "Scope:         %s (%s)\n", Clean(scopeOf(p)), Clean(strings.Join(p.States, ", ")))
	fmt.Fprintf(out, "State:         %s\n", promiseState(&p.RiskReport))
	if p.Adopted > 0 {
		fmt.Fprintf(out, "Adopted:       %s\n", adoptedText(&p.RiskReport))
	}
	fmt.Fprintf(out, "Coverage:      %.0f %% (%d of %s without a human)\n", 100*p.Coverage, p.AIDecisions, Plural(p.AIDecisions+p.HumanDecisions, "decision"))
	fmt.Fprintf(out, "Audits:        %s\n", auditText(p))
	if e := p.Ever; e != nil && e.Audits > p.Audits {
		fmt.Fprintf(out, "In all epochs: %d wrong of %d: error %s, at most %s with confidence %s\n", e.Wrong, e.Audits, short(e.Error.Float()), short(e.ErrorBound.Float()), p.Promise.Confidence)
	}
	if p.Overruled > 0 {
		fmt.Fprintf(out, "Overruled:     %s, by humans whom nobody had asked\n", Plural(int(p.Overruled), "automatic decision"))
	}
	fmt.Fprintf(out, "Human floor:   %s\n", floorText(&p.RiskReport))
	for _, n := range p.Notices {
		fmt.Fprintf(out, "Notice:        %s\n", Clean(n))
	}
}

// promiseState says how far the test of a promise has come.
func promiseState(r *trust.RiskReport) string {
	switch {
	case r.State == trust.Met:
		return fmt.Sprintf("met (epoch %d): a probability from %s decides", r.Epoch, r.Tau)
	case r.State == trust.Unattainable:
		return fmt.Sprintf("unattainable (epoch %d): these specialists cannot keep it; every round goes to a human", r.Epoch)
	case r.State == trust.Lost:
		return fmt.Sprintf("lost (epoch %d): audits raised the alarm; tested again by %s, %d more at least", r.Epoch, Plural(int(r.Eligible), "round"), r.Needs)
	}
	return fmt.Sprintf("%s (epoch %d): every round goes to a human; tested by %s, %d more at least", r.State, r.Epoch, Plural(int(r.Eligible), "round"), r.Needs)
}

// adoptedText says what of the test comes from a back-test.
func adoptedText(r *trust.RiskReport) string {
	return Plural(int(r.Adopted), "round") + " of a back-test" + amongTried(r.Tried)
}

// auditText says what audits found of the automatic decisions.
func auditText(r *report.PromiseStatus) string {
	switch {
	case r.Audits == 0 && r.Ever != nil:
		return "none yet in this epoch"
	case r.Audits == 0:
		return "none yet: the error of automatic decisions is unknown"
	}
	return fmt.Sprintf("%d wrong of %d: error %s, at most %s with confidence %s", r.Wrong, r.Audits, short(r.Error.Float()), short(r.ErrorBound.Float()), r.Promise.Confidence)
}

// floorText says how often humans err themselves.
func floorText(r *trust.RiskReport) string {
	if r.HumanPairs == 0 {
		return "unknown: no round had a second human"
	}
	return fmt.Sprintf("%s, by %s with a second human", short(r.HumanFloor.Float()), Plural(int(r.HumanPairs), "round"))
}
