package desk_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestPseudo: in a language that needs more room and is written from the right nothing is cut, and
// nothing is left that was not looked up.
func TestPseudo(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	p := desktest.Open(s, "carol", "/desk/inbox?lang=qps")
	for _, path := range []string{"/desk/inbox", question(list["parameters"]), question(list["collapsing"]), question(list["final"]), "/desk/reviews", "/desk/settings"} {
		p.Visit(path + "?lang=qps")
		for _, width := range []int64{1280, 360} {
			p.Size(width, 900)
			p.Wait(`innerWidth === %s`, width)
			p.Shot("qps")
			if got := desktest.Eval[string](p, `JSON.stringify([document.documentElement.dir, document.documentElement.scrollWidth > innerWidth, [...document.querySelectorAll("button, a, label, h1, h2, p, dt, dd, legend, .tag, .state")].filter((e) => !e.matches(".hidden, .skip, .hidden *") && getComputedStyle(e).display !== "inline" && e.offsetParent && (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible" || e.getBoundingClientRect().left < -1 || e.getBoundingClientRect().right > innerWidth + 1)).map((e) => e.outerHTML.slice(0, 120))])`); got != `["rtl",false,[]]` {
				t.Errorf("%s, %d wide: %s", path, width, got)
			}
			if got := desktest.Eval[string](p, `[...document.querySelectorAll("button, h1, h2, legend, nav a")].filter((e) => e.offsetParent && !/^\[.*~\]/.test(e.innerText.trim()) && !e.closest("[dir=auto]") && !e.matches(".brand, [dir=auto]")).map((e) => e.outerHTML.slice(0, 120)).join("\n")`); got != "" {
				t.Errorf("%s, %d wide, is not looked up: %s", path, width, got)
			}
		}
	}
}
