package desk_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestUnknownFilter: a filter that fits nothing is named, and taken away by one click.
func TestUnknownFilter(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/settings")
	p.Expect("404 /v1/machines/refund-desk/")
	for name, label := range map[string]string{"state": "State", "by": "By", "specialist": "Who"} {
		p.Visit("/desk/machines/refund-desk/trust?" + url.Values{name: {"bogus"}}.Encode())
		p.Wait(`document.querySelector("[data-state=empty] button")?.innerText.startsWith(%s)`, label+": bogus")
		if text := p.Text(); strings.Contains(text, "has begun yet") {
			t.Errorf("of a filter that fits nothing it says %s", text)
		}
		p.Reach("[data-state=empty] button")
		p.Press("Enter")
		p.Wait(`location.search === "" && document.querySelector("section.series")`)
	}
}

// TestSpent: what a machine has spent stands in columns, and is never said to be nothing.
func TestSpent(t *testing.T) {
	s := desktest.Serve(t)
	m := desktest.Machine{Name: "plain"}
	cost := func(proposal, dollars string) string {
		return strings.TrimSuffix(proposal, "}") + `,"costUSD":` + dollars + "}"
	}
	s.Start(m.JSON(), `{"n":1}`, cost(desktest.Proposed("bot", "pay", ""), "0.0021"), cost(desktest.Proposed("rob", "refuse", ""), "0.000000123"))
	p := desktest.Open(s, "root", "/desk/machines/plain/spend")
	p.Wait(`[...document.querySelectorAll("main table td[data-of=Spent]")].map((c) => c.innerText).join() === "$0.002100,< $0.000001"`)
	if got := desktest.Eval[string](p, `getComputedStyle(document.querySelector("main table td.num")).textAlign`); got != "end" {
		t.Errorf("numbers stand at the %s of their column", got)
	}
	if got := desktest.Eval[float64](p, `document.querySelector("figure rect.bar").getBoundingClientRect().width`); got > 60 {
		t.Errorf("the bar of the only day is %.0f px wide", got)
	}
}

// TestLargeOverview: the page of a machine of 1,000 states shows those where most was decided.
func TestLargeOverview(t *testing.T) {
	s := desktest.Serve(t)
	var states []string
	for i := range 999 {
		states = append(states, fmt.Sprintf(`"state%d":{"transitions":{"go":"state%d"}}`, i, i+1))
	}
	large := `{"machineName":"large","initialState":"state0","goalState":"state999","states":{` + strings.Join(states, ",") + `,"state999":{}},"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`
	s.Publish("large", "large.json", large)
	v := s.Start(large, `{}`)
	s.Decide("carol", v.SessionID, "go")
	p := desktest.Open(s, "root", "/desk/machines/large")
	p.Says("Of 1,000 states those are shown where most was decided.")
	p.Wait(`document.querySelector("main svg .state")`)
	if got := desktest.Eval[int](p, elements); got > 5000 {
		t.Errorf("the page has %d nodes", got)
	}
}
