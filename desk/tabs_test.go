package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestSimulate: a machine is played with made-up voters, of whom is said how well they vote, and a
// second run stands beside the first.
func TestSimulate(t *testing.T) {
	s := desktest.Serve(t)
	publish(t, s)
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/simulate")
	p.Says("small-amounts")
	p.Reach("form.card textarea")
	p.Type(`{"amount":80,"reason":"late","orders":1,"order":"A"}`)
	played := func(wait string) []string {
		p.Reach("form.card button.main")
		p.Press("Enter")
		p.Wait(wait)
		return desktest.Eval[[]string](p, `[...document.querySelectorAll(".card tbody td")].map((e) => e.innerText)`)
	}
	first := played(`document.querySelectorAll(".curves figure").length === 3`)
	p.Press("Home") // of what has the focus nothing moves
	desktest.Eval[bool](p, `(document.querySelector("form.card input").focus(), document.querySelector("form.card input").select(), true)`)
	p.Type("0.6")
	both := played(`document.querySelectorAll(".curves figure").length === 6`)
	if len(both) != 2*len(first) || both[0] != first[0] {
		t.Errorf("beside what was %q stands %q", first, both)
	}
	if better, worse := first[2], both[5]; better == worse {
		t.Errorf("humans are asked in %s of the rounds, however good the voters are", better)
	}
	p.Visit(p.Path()) // the address leads to both
	p.Wait(`document.querySelectorAll(".curves figure").length === 6`)
	p.Reach(".card thead button")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll(".curves figure").length === 3`)
}

// TestTrustCSV: what the chart shows comes as a file, too, in which every point is a row.
func TestTrustCSV(t *testing.T) {
	s := desktest.Serve(t)
	publish(t, s)
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/trust?state=claimed")
	p.Says("dialai trust history refund-desk --state claimed")
	desktest.Eval[bool](p, `((make) => (URL.createObjectURL = (blob) => ((window.saved = blob), make(blob))))(URL.createObjectURL.bind(URL)), true`)
	p.Reach("main .row button")
	p.Press("Enter")
	p.Wait(`window.saved`)
	lines := strings.Split(strings.TrimSpace(desktest.Eval[string](p, `saved.text()`)), "\r\n")
	var history struct {
		Items []struct{ Points []any }
	}
	s.Call("root", 200, "GET", "/v1/machines/refund-desk/trust-history?state=claimed", "", &history)
	points := 0
	for _, of := range history.Items {
		points += len(of.Points)
	}
	if lines[0] != "state,specialist,index,at,trust,low,high,k,n,sessionId" || points < 15 || len(lines) != 1+points || !strings.HasPrefix(lines[1], "claimed,small-amounts,1,") {
		t.Errorf("the file has %d lines and begins %q", len(lines), lines[:2])
	}
}

// TestTrustPoint: a point of the chart leads to the round that it is of, by keys alone.
func TestTrustPoint(t *testing.T) {
	s := desktest.Serve(t)
	publish(t, s)
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/trust")
	p.Wait(`document.querySelector("figure svg[tabindex]")`)
	p.Reach("figure svg[tabindex]")
	p.Press("Home", "ArrowRight")
	p.Wait(`/\d+ of \d+/.test(document.querySelector("figcaption span").innerText)`)
	p.Press("Enter")
	p.Wait(`location.pathname.startsWith("/desk/sessions/") && document.querySelector("[data-round].chosen")`)
	p.Says("Why: round 1")
}
