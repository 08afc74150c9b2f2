package everypage_test

import (
	"os"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// axe is the checker of axe-core, which desk/web's package.json pins. Without it a test is skipped;
// where CI is set it fails.
func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../web/node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("CI checks the pages with axe-core: .ci/desk installs it")
	}
	if err != nil {
		t.Skip("no axe-core: npm ci in desk/web")
	}
	return string(text)
}

// A looker looks at pages in all sizes and colours.
type looker struct {
	*desktest.Page
	script string
}

// look fails the test at what keeps somebody from using the page as it is now: what axe-core finds,
// and what needs scrolling sideways.
func (l looker) look(name string) {
	l.Helper()
	defer l.Size(1280, 900)
	for _, width := range []int64{1280, 360} {
		for _, dark := range []bool{false, true} {
			l.Dark(dark)
			l.Size(width, 900)
			l.check(name, width, dark)
		}
	}
	l.Dark(false)
	l.Size(320, 900)
	l.Narrow(name)
}

func (l looker) check(name string, width int64, dark bool) {
	l.Helper()
	l.Shot(map[bool]string{false: "light", true: "dark"}[dark] + "_" + map[int64]string{360: "360", 1280: "1280"}[width] + "_" + name)
	l.Narrow(name)
	if desktest.Eval[bool](l.Page, `typeof axe === "undefined"`) {
		desktest.Eval[bool](l.Page, `(()=>{`+l.script+`})(), true`)
	}
	found := desktest.Eval[string](l.Page, `Promise.allSettled(document.getAnimations().filter((a) => a.effect.getTiming().iterations === 1).map((a) => a.finished)).then(() => axe.run(document, { preload: false, resultTypes: ["violations", "passes"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"] })).then((r) => (r.passes.length < 5 ? "axe-core looks at nothing" : "") + r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n")).join("\n"))`)
	if found != "" {
		l.Errorf("%s, %d wide, dark %v: %s", name, width, dark, found)
	}
}

// TestAccessible: every page in each of its states can be used by whoever cannot see it, or sees
// little, in light and dark, as wide as a screen and as a telephone.
func TestAccessible(t *testing.T) {
	script := axe(t)
	s := desktest.Serve(t)
	out := looker{desktest.Open(s, "", "/desk/inbox"), script}
	out.look("sign-in")
	out.Expect("401 /desk/session")
	out.Reach("input[type=password]")
	out.Type("no key")
	out.Press("Enter")
	out.Wait(`document.querySelector("main [role=alert]")`)
	out.look("sign-in refused")
	l := looker{desktest.Open(s, "carol", "/desk/inbox"), script}
	l.look("inbox empty")
	l.Visit("/desk/reviews")
	l.look("reviews empty")
	list := s.Seed()
	l.opening("inbox", "*/v1/inbox?*", "/desk/inbox")
	l.look("inbox full")
	l.opening("question", "*/v1/inbox/"+list["plain"].Question.QuestionID+"*", list["plain"].Path()+"?machine=none")
	for _, name := range []string{"overdue", "approved", "closed", "collapsing", "permission"} {
		l.Visit(list[name].Path())
		l.look("question " + name)
	}
	l.asks("question assign", "a")
	l.asks("question reveal", "r")
	l.Visit("/desk/sessions/" + list["plain"].SessionID)
	l.look("session")
	l.Visit("/desk/settings")
	l.look("settings")
	l.Visit("/desk/nowhere")
	l.look("nowhere")
	l.Expect("404 /v1/")
	l.Visit("/desk/q/none.1")
	l.look("question gone")
	l.Visit("/desk/reviews")
	l.look("reviews full")
	l.stalled("reviews", "*/v1/reviews*", "g", "r")
	l.refused("reviews", "*/v1/reviews?*", "/desk/reviews")
	l.refused("question", "*/v1/inbox/"+list["plain"].Question.QuestionID+"*", list["plain"].Path()+"?machine=none")
	l.Visit("/desk/inbox?machine=none")
	l.look("inbox filtered")
	l.refused("inbox", "*/v1/inbox?*", "/desk/inbox")
	l.Page.Lose()
	l.look("inbox offline")
}

// opening looks at a page that is opened while a request of it waits.
func (l looker) opening(name, request, path string) {
	l.Helper()
	l.Stall(request)
	l.Go(path)
	l.Wait(`document.querySelector("main [aria-busy=true] .skeleton")`)
	l.look(name + " loading")
	l.Unstall()
	l.Settled()
}

// TestAccessibleMore: so can dialogs, forms, what is told at the foot, and a page without a server.
func TestAccessibleMore(t *testing.T) {
	script := axe(t)
	s := desktest.Serve(t)
	list := s.Seed()
	l := looker{desktest.Open(s, "carol", list["final"].Path()), script}
	l.Press("1")
	l.Reach("textarea")
	l.Type("why")
	l.Press("Ctrl+Enter")
	l.Wait(`document.querySelector("dialog[open]")`)
	l.look("final")
	l.Visit(list["parameters"].Path())
	l.Press("1")
	l.Wait(`document.querySelector("#payload-amount")`)
	l.Reach("#payload-amount")
	l.Type("0")
	l.look("form")
	l.Visit("/desk/inbox")
	l.Press("?")
	l.Wait(`document.querySelector("dialog[open]")`)
	l.look("keys")
	l.Press("Escape")
	l.Wait(`!document.querySelector("dialog")`)
	l.Press("x", "b")
	l.Wait(`document.querySelector("dialog[open] [data-bulk]")`)
	l.look("bulk")
	l.Press("1", "Enter")
	l.Wait(`document.querySelector("[data-bulk] td:last-child").innerText === "decided"`)
	l.look("bulk decided")
	l.Press("Escape")
	l.Wait(`!document.querySelector("dialog")`)
	l.Page.Set(`{"hold":10}`)
	l.Visit(list["plain"].Path())
	l.Press("1", "Enter")
	l.Wait(`document.querySelector("[data-held]")`)
	l.look("held")
	l.Press("Escape")
	l.Wait(`document.querySelector("[data-choice=pay] input:checked")`)
	l.Press("Ctrl+Enter")
	l.Wait(`document.querySelector("[data-outcome]")`)
	l.look("outcome")
	reviews := looker{l.Tab("/desk/reviews"), script}
	reviews.Wait(`document.querySelector("[data-question]") && document.querySelector("header .state").innerText === "live"`)
	l.Page.Lose()
	l.look("offline")
	reviews.Wait(`/^offline since/.test(document.querySelector("header .state").innerText)`)
	reviews.look("reviews offline")
	l.Press("g", "r")
	l.Wait(`document.querySelector("[data-state=error], main h1")`)
	l.look("error")
}
