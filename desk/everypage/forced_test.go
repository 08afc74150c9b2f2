package everypage_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// looks is what tells a thing from another of its kind where there are neither backgrounds nor shadows,
// and all colours are those of the system: its lines, and the boxes in it that are ticked.
const looks = `((e) => {
	const s = getComputedStyle(e);
	const line = (of) => (parseFloat(s[of + "Width"]) > 0 ? s[of + "Width"] + " " + s[of + "Style"] : "");
	return JSON.stringify([["outline", "borderTop", "borderRight", "borderBottom", "borderLeft"].map(line), [...e.querySelectorAll("input")].map((i) => i.checked)]);
})`

// TestForcedColours: with the system's own colours, what is chosen can be told from what is not, and what
// has the focus from both.
func TestForcedColours(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	s.PublishSample()
	stopped := s.Start(desktest.Working, `{"n":1}`)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Media("forced-colors", "active")
	p.Wait(`matchMedia("(forced-colors: active)").matches`)
	for _, c := range []struct {
		name, path    string
		keys          []string
		chosen, other string
	}{
		{"the page that is open", "/desk/sessions", nil, "header nav a[aria-current]", "header nav a:not([aria-current])"},
		{"the question that is open", list["plain"].Path(), nil, "li.current", "li[data-row]:not(.current)"},
		{"the answer that is picked", list["plain"].Path(), []string{"1"}, "[data-choice].picked", "[data-choice]:not(.picked)"},
		{"a question that is selected", "/desk/inbox", []string{"x", "j"}, "li[data-row]:has(input:checked)", "li[data-row]:not(.current):not(:has(:checked))"},
		{"a session that is selected", "/desk/sessions", []string{"Home", "x", "j", "j"}, "[aria-selected=true]", "[aria-selected=false]"},
		{"the round that is explained", "/desk/sessions/" + stopped.SessionID, nil, "[data-round].chosen", "[data-round]:not(.chosen)"},
		{"the log", "/desk/sessions/" + stopped.SessionID, nil, ".tabs a[aria-current]", ".tabs a:not([aria-current])"},
		{"the tab of a machine", "/desk/machines/refund-desk/trust", nil, "main nav a[aria-current]", "main nav a:not([aria-current])"},
		{"the form of a text", "/desk/edit", nil, ".forms [aria-pressed=true]", ".forms [aria-pressed=false]"},
	} {
		p.Visit(c.path)
		p.Wait(`document.querySelector(%s)`, c.other)
		p.Press(c.keys...)
		p.Wait(`document.querySelector(%s) && document.querySelector(%s)`, c.chosen, c.other)
		if got := desktest.Eval[[]string](p, `[%s, %s].map((of) => `+looks+`(document.querySelector(of)))`, c.chosen, c.other); got[0] == got[1] {
			t.Errorf("%s looks as what is not: %s", c.name, got[0])
		}
		p.Shot("forced")
	}
	p.Visit("/desk/sessions/" + stopped.SessionID)
	desktest.Eval[bool](p, `([...document.querySelectorAll("button.kind")][0].click(), true)`)
	p.Wait(`document.querySelector(".kind[aria-pressed=true]")`)
	if got := desktest.Eval[[]string](p, `["true", "false"].map((is) => `+looks+`(document.querySelector(".kind[aria-pressed=" + is + "]")))`); got[0] == got[1] {
		t.Errorf("the kind that is shown looks as those that are not: %s", got[0])
	}
	for _, path := range []string{"/desk/inbox", list["plain"].Path(), "/desk/sessions", "/desk/sessions/" + stopped.SessionID, "/desk/machines/refund-desk/trust", "/desk/machines/refund-desk/who", "/desk/edit", "/desk/settings"} {
		p.Visit(path)
		for range 24 {
			p.Press("Tab")
			if got := desktest.Eval[string](p, `((e) => {
				if (!e || e === document.body || e.shadowRoot) return "";
				const seen = [getComputedStyle(e), getComputedStyle(e, "::after")].some((s) => s.outlineStyle === "solid" && parseFloat(s.outlineWidth) >= 2);
				return seen ? "" : e.outerHTML.slice(0, 160);
			})(document.activeElement)`); got != "" {
				t.Errorf("%s: it cannot be seen that the focus is on %s", path, got)
			}
		}
	}
}
