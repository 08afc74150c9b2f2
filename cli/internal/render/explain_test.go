package render

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
)

// TestPromisesInWords: what a verdict of bayes says of its promise is said in words, and with its symbols where
// they are asked for; what has no words is said as it was recorded.
func TestPromisesInWords(t *testing.T) {
	promise := trust.Promise{MaxError: exact.One / 5, Confidence: exact.One * 9 / 10}
	for _, c := range []struct {
		code       trust.Code
		tau        exact.Billionths
		rule, asks string // without symbols
	}{
		{trust.Decided, exact.One * 6 / 10, "pay has probability 60.6 %, and 60 % is enough for at most 20 % errors with confidence 90 %", ""},
		{trust.BelowTau, exact.One * 7 / 10, "pay has probability 60.6 %, and 70 % is needed for at most 20 % errors with confidence 90 %: a human decides", "not enough for the promise"},
		{trust.RiskNotEstablished, 0, "pay has probability 60.6 %, and the record does not show yet which is enough for at most 20 % errors with confidence 90 %: a human decides", "the promise is not established yet"},
		{trust.ColdStart, 0, "as recorded (too little is known)", "as recorded (too little is known)"},
		{trust.NoProposals, 0, "as recorded (no_proposals)", "as recorded (no_proposals)"},
	} {
		j := &trust.Judgement{Options: []string{"pay", "hold"}, P: []exact.Billionths{606_000_000, 394_000_000}, Pick: "pay", Risk: &trust.RiskView{Promise: promise, Tau: c.tau}}
		e := &explain.Explanation{Verdict: &explain.Verdict{Code: string(c.code), Reasoning: "as recorded", Judgement: j}}
		if c.asks != "" {
			e.Human = &explain.Wait{Code: string(c.code), Reason: "as recorded"}
		}
		for verbose, want := range map[bool][2]string{false: {c.rule, c.asks}, true: {"as recorded (" + string(c.code) + ")", "as recorded (" + string(c.code) + ")"}} {
			var out strings.Builder
			if err := (Style{Verbose: verbose}).Explanation(&out, e); err != nil {
				t.Fatal(err)
			}
			if text := "  Rule: " + want[0] + "\n"; !strings.Contains(out.String(), text) {
				t.Errorf("%s, verbose %t: it says\n%s\nwithout %q", c.code, verbose, out.String(), text)
			}
			if text := "\nA human was asked: " + want[1] + "\n"; c.asks != "" && !strings.Contains(out.String(), text) {
				t.Errorf("%s, verbose %t: it says\n%s\nwithout %q", c.code, verbose, out.String(), text)
			}
		}
	}
}

// TestReviewsEndWhereTheyEnd: a review without a reason ends in its full stop.
func TestReviewsEndWhereTheyEnd(t *testing.T) {
	e := &explain.Explanation{Executed: "pay", Reviews: []explain.Review{{Review: "audit", HumanID: "ann", Transition: "pay"}, {Review: "audit", HumanID: "bob", Transition: "hold", Reasoning: "no receipt"}}}
	var out strings.Builder
	if err := (Style{}).Explanation(&out, e); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{": pay, the same.\n", ": hold, another choice. no receipt\n"} {
		if !strings.Contains(out.String(), end) {
			t.Errorf("it says\n%s\nwithout %q", out.String(), end)
		}
	}
}

// TestRiskIsShort: shares that were measured have three digits in the text, not nine.
func TestRiskIsShort(t *testing.T) {
	p := report.PromiseStatus{RiskReport: trust.RiskReport{Promise: trust.Promise{MaxError: exact.One / 5, Confidence: exact.One * 9 / 10},
		Audits: 31, Wrong: 3, Error: 96_774_194, ErrorBound: 202_958_202, HumanPairs: 7, HumanFloor: 74_179_900}}
	var out strings.Builder
	printPromise(&out, &p)
	for _, line := range []string{"\nAudits:        3 wrong of 31: error 0.0968, at most 0.203 with confidence 0.9\n", "\nHuman floor:   0.0742, by 7 rounds with a second human\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("it says\n%s\nwithout %q", out.String(), line)
		}
	}
}
