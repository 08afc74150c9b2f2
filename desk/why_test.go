package desk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// An explanation is what a test looks at of why a round was decided.
type explanation struct {
	Executed, ToState string
	Votes             []struct{ Specialist, Transition string }
	Verdict           struct {
		Judgement struct {
			Options []string
			P       []float64
			Votes   []struct {
				Specialist string
				Trust      float64
				K, N       int
			}
		}
	}
	Ruling struct{ HumanID string }
	Gates  []struct{ Status string }
}

// TestWhy: why a round was decided is what the server's explanation says: everybody's word with its
// weight and record, the probabilities, the guards, and who decided in the end.
func TestWhy(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	var list struct{ Items []desktest.Session }
	s.Call("root", 200, "GET", "/v1/sessions?status=completed&limit=1", "", &list)
	id := list.Items[0].SessionID
	var why explanation
	s.Call("root", 200, "GET", "/v1/sessions/"+id+"/explain", "", &why)
	j := why.Verdict.Judgement
	if len(why.Votes) != 3 || len(j.Votes) != 3 || len(j.P) < 2 || why.Executed == "" {
		t.Fatalf("the explanation has nothing to show: %+v", why)
	}
	p := desktest.Open(s, "root", "/desk/sessions/"+id)
	p.Wait(`document.querySelector("[data-why]")`)
	p.Says(fmt.Sprintf("%s decided %s → %s", why.Ruling.HumanID, why.Executed, why.ToState))
	rows := desktest.Eval[[]string](p, `[...document.querySelectorAll("[data-why] tbody tr")].map((r) => [...r.querySelectorAll("th, td")].map((c) => c.innerText.trim()).join(" | "))`)
	has := func(begins string) {
		t.Helper()
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, begins) }) {
			t.Errorf("no row says %q of\n%s", begins, strings.Join(rows, "\n"))
		}
	}
	for i, name := range j.Options {
		has(fmt.Sprintf("%s |  | %.2f", name, j.P[i]))
	}
	for _, v := range why.Votes {
		for _, of := range j.Votes {
			if of.Specialist == v.Specialist {
				has(fmt.Sprintf("%s | %s | %.2f | %d of %d", v.Specialist, v.Transition, of.Trust, of.K, of.N))
			}
		}
	}
	p.Says(fmt.Sprintf("✓ %d step", len(why.Gates)))

	// Who may not see what sessions are about is told so, and what is missing; nothing is asked for in vain.
	p = desktest.Open(s, "vera", "/desk/sessions/"+id)
	p.Wait(`document.querySelector("[data-forbidden]")?.innerText.includes("permission payload")`)
	p.Wait(`document.querySelector("[data-who]").innerText === "vera"`)
	p.Press("?")
	p.Wait(`document.querySelector("dialog[open]")`)
	if told := desktest.Eval[string](p, `document.querySelector("dialog").innerText`); strings.Contains(told, "cancel") || !strings.Contains(told, "round") {
		t.Errorf("who may only look is told of keys for %s", told)
	}
}

// TestWhyCompared: the page says on which side of its threshold a round is: the margin where votes are
// counted, the probability where they are weighed by what is known of each.
func TestWhyCompared(t *testing.T) {
	s := desktest.Serve(t)
	for _, arbiter := range []string{"alignmentMargin", "bayes"} {
		for _, threshold := range []string{"0.01", "1"} {
			m := desktest.Machine{Name: arbiter + " " + threshold, State: `"consensusThreshold":` + threshold}
			both := func(rob string) desktest.Session {
				return s.Start(strings.Replace(m.JSON(), `"alignmentMargin"}`, `"`+arbiter+`"}`, 1), `{"n":1}`, desktest.Proposed("bot", "pay", ""), desktest.Proposed("rob", rob, ""))
			}
			for _, rob := range []string{"pay", "refuse"} { // both are right, and then bot is more often
				if v := both(rob); v.Status == "needs_human" {
					s.Decide("carol", v.SessionID, "pay")
				}
			}
			v := both("refuse")
			var why struct {
				Verdict struct {
					Margin, Threshold float64
					Judgement         struct {
						P         []float64
						Threshold float64
					}
				}
			}
			s.Call("root", 200, "GET", "/v1/sessions/"+v.SessionID+"/explain", "", &why)
			has, bar, says := why.Verdict.Margin, why.Verdict.Threshold, "margin %.2f %s %.2f"
			if arbiter == "bayes" {
				has, bar, says = slices.Max(why.Verdict.Judgement.P), why.Verdict.Judgement.Threshold, "p %.2f %s τ %.2f"
			}
			if (has >= bar) != (threshold == "0.01") {
				t.Errorf("%s: it is %v of %v", m.Name, has, bar)
			}
			p := desktest.Open(s, "olga", "/desk/sessions/"+v.SessionID)
			p.Says(fmt.Sprintf(says, has, map[bool]string{true: "≥", false: "<"}[has >= bar], bar))
		}
	}
}

// TestChartAsTable: what a chart draws it has as a table, too, of which each point is a row; keys walk
// along its points, and each is said in a line.
func TestChartAsTable(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	var history struct {
		Items []struct {
			Specialist string
			Marks      []any
			Points     []struct {
				Trust, Low, High float64
				Index, K, N      int
			}
		}
	}
	s.Call("root", 200, "GET", "/v1/machines/refund-desk/trust-history?state=claimed", "", &history)
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/trust?state=claimed")
	p.Wait(`document.querySelectorAll("figure").length === %s`, len(history.Items))
	figure := `[...document.querySelectorAll("figure")].find((f) => f.querySelector("svg").ariaLabel.startsWith(%s))`
	for _, of := range history.Items {
		desktest.Eval[bool](p, `(`+figure+`.querySelector("svg").focus(), true)`, of.Specialist)
		p.Press("End")
		last := of.Points[len(of.Points)-1]
		said := fmt.Sprintf("%d of %d", last.K, last.N)
		p.Wait(figure+`.querySelector("figcaption span").innerText.endsWith(%s)`, of.Specialist, said)
		p.Reach("figcaption button")
		p.Press("Enter")
		p.Wait(figure+`.querySelector("table")`, of.Specialist)
		rows := desktest.Eval[[]string](p, figure+`.innerText.split("\n").length > 0 && [...`+figure+`.querySelectorAll("tbody tr")].map((r) => [...r.cells].map((c) => c.innerText).join("|"))`, of.Specialist, of.Specialist)
		if len(rows) != len(of.Points)+len(of.Marks) {
			t.Errorf("%s has %d points and %d marks, and the table %d rows", of.Specialist, len(of.Points), len(of.Marks), len(rows))
			continue
		}
		for i, point := range of.Points {
			if want := fmt.Sprintf("%d|%.2f|%.2f – %.2f|%d of %d", point.Index, point.Trust, point.Low, point.High, point.K, point.N); rows[i] != want {
				t.Errorf("row %d of %s is %q, want %q", i+1, of.Specialist, rows[i], want)
			}
		}
	}
}
