package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestKeysOfLists: on every page that lists something j and k go through it, and / goes to what finds in it;
// the sheet has just those that do something there.
func TestKeysOfLists(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	s.Publish("second", "second.json", strings.Replace(desktest.Alone.JSON(), `"alone"`, `"second"`, 1))
	stopped := s.Start(desktest.Working, `{"n":1}`)
	p := desktest.Open(s, "root", "/desk/machines")
	p.Expect("404 /v1/machines/second/")
	sheet := func(where string, has, hasNot []string) {
		t.Helper()
		p.Press("?")
		p.Wait(`document.querySelector("dialog[open]")`)
		keys := desktest.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("dialog dl:first-of-type dt")].map((d) => [d.nextElementSibling.innerText, d.innerText.replace(/\s+/g, " ")]))`)
		for _, says := range has {
			if keys[says] == "" {
				t.Errorf("%s: the sheet has no %q: %v", where, says, keys)
			}
		}
		for _, says := range hasNot {
			if keys[says] != "" {
				t.Errorf("%s: the sheet has %q: %v", where, says, keys)
			}
		}
		p.Press("Escape")
		p.Wait(`!document.querySelector("dialog")`)
	}
	const entries, find = "next and previous entry", "find"
	on := func(where, selector string) {
		t.Helper()
		if !desktest.Eval[bool](p, `document.activeElement.matches(%s)`, selector) {
			t.Errorf("%s: the focus is on %s", where, desktest.Eval[string](p, `document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	p.Press("j")
	on("machines", "main li:first-child a")
	p.Press("j")
	on("machines", "main li:nth-child(2) a")
	p.Press("j") // there is no third
	on("machines", "main li:nth-child(2) a")
	sheet("machines", []string{entries}, []string{find})
	p.Press("k", "k")
	on("machines", "main li:first-child a")
	p.Press("Enter")
	p.Wait(`location.pathname.startsWith("/desk/machines/")`)

	for tab, selector := range map[string]string{"": "main tbody tr", "/trust": "section.series svg", "/calibration": "section.series svg, main tr, main section *", "/collapse": "section.card button", "/spend": "main tbody tr", "/who": "main tbody tr, main tbody button"} {
		p.Visit("/desk/machines/refund-desk" + tab)
		lists := desktest.Eval[int](p, `document.querySelectorAll("main :is(tbody > tr, section.series, section.card)").length`)
		if lists == 0 {
			continue
		}
		p.Wait(`document.querySelector(%s)`, selector) // who may give orders is asked for afterwards
		p.Press("j")
		on("the tab "+tab, selector)
		first := desktest.Eval[bool](p, `(window.first = document.activeElement, true)`)
		p.Press("j")
		if lists > 1 && first && desktest.Eval[bool](p, `document.activeElement === window.first`) {
			t.Errorf("the tab %s: j goes no further", tab)
		}
		p.Press("k")
		if !desktest.Eval[bool](p, `document.activeElement === window.first`) {
			t.Errorf("the tab %s: k does not go back", tab)
		}
		if tab == "/trust" {
			p.Press("/")
			on("the tab /trust", "main select")
			p.Press("Escape") // out of it
			sheet("the tab /trust", []string{entries, find}, nil)
		} else {
			sheet("the tab "+tab, []string{entries}, []string{find})
		}
	}
	p.Visit("/desk/machines/second/spend") // which has nothing
	sheet("an empty tab", nil, []string{entries, find})

	p.Visit("/desk/sessions/" + stopped.SessionID)
	p.Wait(`document.querySelectorAll("[data-round]").length === 3 && document.querySelector("[data-round].chosen")`)
	p.Press("j", "j")
	p.Wait(`document.querySelector("[data-round='1'].chosen")`)
	p.Press("k")
	p.Wait(`document.querySelector("[data-round='2'].chosen")`)
	p.Press("/")
	on("a session", ".kinds button")
	p.Press("Enter")
	p.Wait(`document.querySelector(".kinds [aria-pressed=true]")`)
	sheet("a session", []string{"older and newer round", find}, nil)
	p.Visit("/desk/sessions/" + stopped.SessionID + "?tab=audit")
	p.Wait(`document.querySelector(".below [data-state=empty]")`)
	sheet("how a session asked models", []string{"older and newer round"}, []string{find})
	p.Visit("/desk/reviews")
	sheet("reviews", nil, []string{find}) // of one machine, or none
}
