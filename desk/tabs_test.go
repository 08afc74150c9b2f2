package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/machines"
)

// TestSimulate: a machine is played with made-up voters, of whom is said how well they vote, and a
// second run stands beside the first.
func TestSimulate(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/simulate")
	p.Wait(`document.querySelector("#about-amount")?.value === "500"`) // as the newest session has it
	if got := desktest.Eval[string](p, `[...document.querySelectorAll(".panel tbody tr")].map((r) => r.querySelector("[data-recorded]").innerText + " " + r.querySelector("input").value).join()`); got != "recorded: 8 of 15 0.56,recorded: 12 of 15 0.77,recorded: 5 of 15 0.4" {
		t.Errorf("the voters begin with %s", got)
	}
	played := func(wait string) []string {
		p.Reach("form.card button.main")
		p.Press("Enter")
		p.Wait(wait)
		return desktest.Eval[[]string](p, `[...document.querySelectorAll("div.card tbody td")].map((e) => e.innerText)`)
	}
	first := played(`document.querySelectorAll(".curves figure").length === 3`)
	p.Press("Home") // of what has the focus nothing moves
	desktest.Eval[bool](p, `(document.querySelector("form.card input").focus(), document.querySelector("form.card input").select(), true)`)
	p.Type("0.97")
	both := played(`document.querySelectorAll(".curves figure").length === 6`)
	if len(both) != 2*len(first) || both[0] != first[0] {
		t.Errorf("beside what was %q stands %q", first, both)
	}
	if better, worse := first[2], both[5]; better == worse {
		t.Errorf("humans are asked in %s of the rounds, however good the voters are", better)
	}
	p.Visit(p.Path()) // the address leads to both
	p.Wait(`document.querySelectorAll(".curves figure").length === 6`)
	p.Reach(".card > button")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll(".curves figure").length === 3`)

	// Of one that was never run nothing is recorded: what stands there is said to be an assumption, and
	// what is required fits.
	name, text, _ := machines.Read("refund-desk")
	s.Publish("fresh", name, strings.Replace(string(text), "machineName: refund-desk", "machineName: fresh", 1))
	p.Expect("404 /v1/machines/fresh/")
	p.Visit("/desk/machines/fresh/simulate")
	p.Wait(`document.querySelector("#about-amount")?.value === "1" && document.querySelectorAll("[data-recorded=false]").length === 3`)
	p.Says("assumed: nothing is recorded")
	played(`document.querySelectorAll(".curves figure").length === 3`)
}

// TestNews: figures that come while a page of a machine is read wait until somebody wants them; a tab
// that there is not is said to be none.
func TestNews(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 3)
	s.Decide("dave", list[0].SessionID, "pay")
	p := desktest.Open(s, "root", "/desk/machines/alone")
	figure := `document.querySelector(".figures dd").innerText === %s`
	p.Wait(figure, "1")
	p.Says("estimated: 2 minutes, with 2 for each")
	p.Says("live")
	if desktest.Eval[bool](p, `!!document.querySelector("[data-news]")`) {
		t.Error("figures wait, and nothing has happened")
	}
	s.Decide("dave", list[1].SessionID, "pay")
	p.Wait(`document.querySelector("[data-news]")`)
	p.Wait(figure, "1")
	p.Reach("[data-news]")
	p.Press("Enter")
	p.Wait(figure+` && !document.querySelector("[data-news]")`, "2")
	p.Visit("/desk/machines/alone/nosuchtab")
	p.Wait(`document.querySelector("main [data-state=error]").innerText.includes("There is no tab “nosuchtab” here.") && document.querySelector("main [data-state=error] a").pathname === "/desk/machines/alone"`)
	p.Size(360, 740) // all tabs are in one row, and the one that is open is in sight
	p.Visit("/desk/machines/alone/who")
	p.Wait(`((nav, open) => nav.clientHeight < 60 && nav.scrollWidth > nav.clientWidth && open.left >= -1 && open.right <= innerWidth)(document.querySelector("nav.tabs"), document.querySelector("nav.tabs [aria-current]").getBoundingClientRect())`)
	p.Wait(`((table) => table && table.scrollWidth <= table.clientWidth)(document.querySelector(".scroll"))`) // nothing of a row is out of sight
	p.Size(1280, 900)
	p.Visit("/desk/machines")
	s.Decide("dave", list[2].SessionID, "pay")
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	p.Visit("/desk/machines")
	p.Says("0 live sessions")
	s.Starts(desktest.Alone, 1)
	p.Wait(`document.querySelector("[data-news]")`)
	p.Reach("[data-news]")
	p.Press("Enter")
	p.Says("1 live session")
}

// TestNewsBeforeTheStream: what happens between a list and the opening of its stream is news, too.
func TestNewsBeforeTheStream(t *testing.T) {
	s := desktest.Serve(t)
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	const held = `delete globalThis.SharedWorker;
	((get) => {
		const opened = new Promise((open) => (globalThis.open = open));
		globalThis.fetch = (...of) => (String(of[0]).includes("/v1/events?") ? opened.then(() => get(...of)) : get(...of));
	})(fetch.bind(globalThis))`
	p := desktest.OpenIn(s, "root", "/desk/machines", held)
	p.Says("0 live sessions")
	s.Starts(desktest.Alone, 1)
	if desktest.Eval[bool](p, `!!document.querySelector("[data-news]")`) {
		t.Error("there is news, and no stream")
	}
	desktest.Eval[bool](p, `(globalThis.open(), true)`)
	p.Wait(`document.querySelector("[data-news]")`)
}

// TestTrustCSV: what the chart shows comes as a file, too, in which every point is a row.
func TestTrustCSV(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
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
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/trust")
	p.Wait(`document.querySelector("figure svg[tabindex]")`)
	p.Reach("figure svg[tabindex]")
	p.Press("Home", "ArrowRight")
	p.Wait(`/\d+ of \d+/.test(document.querySelector("figcaption span").innerText)`)
	p.Press("Enter")
	p.Wait(`location.pathname.startsWith("/desk/sessions/") && document.querySelector("[data-round].chosen")`)
	p.Says("Why: round 1")
}
