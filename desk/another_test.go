package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestAnotherBuild: a page whose server is of another build by now cannot load its other parts. Whichever of
// them is asked for, it says so and offers to load all of it anew; what was typed is there afterwards.
func TestAnotherBuild(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", list[0].Path())
	p.Expect("404 /desk/assets/")
	p.Wait(`document.querySelector(".foot")`) // all is there that comes by itself
	typed := func(is string) {
		t.Helper()
		p.Wait(`document.querySelector("[data-choice=refuse] input")?.checked && document.querySelector("textarea").value === %s`, is)
	}
	offers := `[...document.querySelectorAll("[role=alert] button")].some((b) => b.innerText === "Load again")`
	reload := func() {
		t.Helper()
		p.Says("What you typed is kept.")
		desktest.Eval[bool](p, `(window.old = true)`)
		p.Unstall()
		p.Reach("[role=alert] button")
		p.Press("Enter")
		p.Wait(`!window.old && document.querySelector("main")?.getAttribute("aria-busy") === "false"`)
		if desktest.Eval[bool](p, offers) {
			t.Error("what is loaded anew offers to be")
		}
	}
	p.Press("2")
	p.Reach("textarea")
	p.Type("no receipt, ")
	for i, part := range []string{"?", "a", "b"} { // the sheet, to assign, and one answer to many: parts of a page that goes on
		p.Cold()
		p.Answer("*/desk/assets/*", 404, "no such file: the page is of another version, load it again")
		p.Reach("article header a")
		if part == "b" {
			p.Press("x")
		}
		p.Press(part)
		p.Wait(offers)
		p.Reach("textarea")
		p.Press("End")
		p.Type(part)
		reload()
		typed("no receipt, " + "?ab"[:i+1])
	}
	p.Answer("*/desk/assets/*", 404, "no such file: the page is of another version, load it again")
	p.Reach("article header a")
	p.Press("g", "s") // another page
	p.Says("This page cannot be loaded")
	reload()
	p.Wait(`location.pathname === "/desk/sessions" && document.querySelectorAll("[data-session]").length === 2`)
	p.Visit(list[0].Path())
	typed("no receipt, ?ab")
	open(t, s, list[0].SessionID)
	if got := desktest.Eval[[]string](p, `Object.keys(sessionStorage)`); !strings.Contains(strings.Join(got, ","), list[0].Question.QuestionID) {
		t.Errorf("the tab keeps %v", got)
	}
}
