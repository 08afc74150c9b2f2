package everypage_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// unfolded opens all of a session that can be: each event of its log, in full if that is offered, and
// why each of its rounds is as it is.
func unfolded(p *desktest.Page, id string) {
	p.Helper()
	for _, n := range desktest.Eval[[]string](p, `[...document.querySelectorAll("[data-round]")].map((r) => r.dataset.round)`) {
		p.Visit("/desk/sessions/" + id + "?round=" + n)
		p.Wait(`document.querySelector("[data-round].chosen, [data-withheld], [data-why]")`)
	}
	opened := `(document.querySelectorAll("[data-event] details").forEach((d) => (d.open = true)), true)`
	known := `document.querySelectorAll("[data-event]").length > 0 && [...document.querySelectorAll("[data-event] details")].every((d) => d.querySelector("pre")?.textContent || d.querySelector(".pad"))`
	desktest.Eval[bool](p, opened)
	p.Wait(known)
	if desktest.Eval[bool](p, `(document.querySelector(".kinds input")?.click(), document.querySelector(".kinds input") !== null)`) {
		p.Wait(`document.querySelector(".kinds input").checked && ` + known)
	}
	if desktest.Eval[bool](p, `document.querySelector("a[href*='tab=audit']") !== null`) {
		p.Visit("/desk/sessions/" + id + "?tab=audit")
		p.Wait(`document.querySelector(".calls, .below [data-state=empty]")`)
		desktest.Eval[bool](p, `(document.querySelectorAll(".calls details").forEach((d) => (d.open = true)), true)`)
		p.Wait(`[...document.querySelectorAll(".calls details")].every((d) => d.querySelector(".body"))`)
	}
}

// TestBlindPages: nothing of what is withheld reaches who may rule by the list of sessions, by all that
// a session has, or by what its machine's pages say.
func TestBlindPages(t *testing.T) {
	s := modelled(t, proposes(desktest.Reason))
	list := s.Seed()
	list["reading"] = s.Start(desktest.Machine{Name: "reading", State: `"collapse":{"target":0.85}`, Voters: reader}.JSON(), `{"n":1}`)
	blind := func(p *desktest.Page, who, where string) {
		t.Helper()
		if got := all(p); strings.Contains(got, desktest.Reason) || strings.Contains(got, "rob-says") {
			t.Errorf("%s is shown at %s what is withheld: %s", who, where, around(got, "98765"))
		}
	}
	for _, who := range []string{"carol", "root"} {
		p := desktest.Open(s, who, "/desk/sessions")
		p.Wait(`document.querySelectorAll("[data-session]").length > 10`)
		for _, name := range append([]string{"reading"}, withheld...) {
			p.Visit("/desk/sessions/" + list[name].SessionID)
			unfolded(p, list[name].SessionID)
			p.Expect("403 /v1/sessions/" + list[name].SessionID + "/explain")
			desktest.Eval[string](p, `fetch(%s, { headers: { "Dialai-Desk": JSON.parse(localStorage.getItem("dialai.token")) } }).then((r) => r.text())`, "/v1/sessions/"+list[name].SessionID+"/explain") // the page does not ask for it
			blind(p, who, "the session "+name)
		}
		for _, tab := range tabs {
			p.Visit("/desk/machines/collapsing" + tab)
		}
		p.Visit("/desk/machines/reading/simulate")
		blind(p, who, "a page")
	}
	for _, name := range []string{"collapsing", "reading"} {
		s.Decide("dave", list[name].SessionID, "pay")
	}
	p := desktest.Open(s, "root", "/desk/sessions/"+list["collapsing"].SessionID)
	unfolded(p, list["collapsing"].SessionID)
	if !strings.Contains(all(p), desktest.Reason) {
		t.Error("what is withheld no more is not shown, or the test does not see what is shown")
	}
	unfolded(p, list["reading"].SessionID)
	if !desktest.Eval[bool](p, `document.querySelector(".calls").textContent.includes(%s)`, desktest.Reason) {
		t.Error("what a model has said that is withheld no more is not shown, or the test does not see what is shown")
	}
}
