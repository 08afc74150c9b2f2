package everypage_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestPseudo: in a language that needs more room and is written from the right nothing is cut, and
// nothing is left that was not looked up, but for what is data: names, and kinds of events.
func TestPseudo(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/inbox?lang=qps")
	paths := []string{"/desk/inbox", list["parameters"].Path(), list["collapsing"].Path(), list["final"].Path(), "/desk/reviews", "/desk/settings", "/desk/sessions", "/desk/sessions/" + list["plain"].SessionID, "/desk/machines", "/desk/edit"}
	for _, tab := range tabs {
		paths = append(paths, "/desk/machines/refund-desk"+tab)
	}
	for _, path := range paths {
		p.Visit(path + "?lang=qps")
		for _, width := range []int64{1280, 360} {
			p.Size(width, 900)
			p.Wait(`innerWidth === %s`, width)
			p.Shot("qps")
			if got := desktest.Eval[string](p, `JSON.stringify([document.documentElement.dir, document.documentElement.scrollWidth > innerWidth, [...document.querySelectorAll("button, a, label, h1, h2, p, dt, dd, legend, .tag, .state")].filter((e) => !e.matches(".hidden, .skip, .hidden *, .scroll *, nav.tabs:not(.row) *") && getComputedStyle(e).display !== "inline" && e.offsetParent && (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible" || e.getBoundingClientRect().left < -1 || e.getBoundingClientRect().right > innerWidth + 1)).map((e) => e.outerHTML.slice(0, 120))])`); got != `["rtl",false,[]]` {
				t.Errorf("%s, %d wide: %s", path, width, got)
			}
			if got := desktest.Eval[string](p, `[...document.querySelectorAll("button, h1, h2, legend, nav a, thead th, dt, figcaption")].filter((e) => e.offsetParent && !/^\[.*~\]/.test(e.innerText.trim()) && !e.closest("[dir=auto]") && !e.matches(".brand, .over, .kind, .head, [dir=auto]")).map((e) => e.outerHTML.slice(0, 120)).join("\n")`); got != "" {
				t.Errorf("%s, %d wide, is not looked up: %s", path, width, got)
			}
		}
	}
}
