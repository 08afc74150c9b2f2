package desk_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestTabsWithoutWorker: where a browser has no shared worker, one tab reads the streams for all,
// and another takes over when that one is closed.
func TestTabsWithoutWorker(t *testing.T) {
	s := desktest.Serve(t)
	const without = `delete globalThis.SharedWorker`
	pages := []*desktest.Page{desktest.OpenIn(s, "carol", "/desk/inbox", without)}
	for range 2 {
		pages = append(pages, pages[0].TabIn("/desk/inbox", without))
	}
	for _, p := range pages {
		p.Wait(`!globalThis.SharedWorker && document.querySelector("header .state").innerText === "live"`)
	}
	s.Starts(desktest.Alone, 1)
	for _, p := range pages {
		p.Says("1 new")
	}
	oneStream(t, s, "for three tabs")
	pages[0].Expect("405 /favicon.ico")
	desktest.Eval[bool](pages[0], `(location.href = "/openapi.json", true)`) // it was the first, and leads
	s.Starts(desktest.Alone, 1)
	for _, p := range pages[1:] { // they have heard it, or looked anew
		p.Wait(`document.querySelector("header nav .count")?.innerText === "2"`)
	}
	oneStream(t, s, "for two tabs, where the first of three has closed")
}

// TestWrongClock: ages go by the server's clock, however wrong that of the browser's computer is.
func TestWrongClock(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	const later = `((Real) => {
		const off = 5 * 3600_000;
		globalThis.Date = class extends Real { constructor(...a) { a.length === 0 ? super(Real.now() + off) : super(...a); } static now() { return Real.now() + off; } };
	})(Date)`
	p := desktest.OpenIn(s, "carol", "/desk/inbox", later)
	p.Says("alone 1")
	if text := p.Text(); regexp.MustCompile(`\d h`).MatchString(text) {
		t.Errorf("what has come seconds ago is told to be older: %s", text)
	}
	p.Visit("/desk/sessions/" + v.SessionID)
	p.Settled()
	if text := p.Text(); strings.Contains(text, "4 h") || strings.Contains(text, "5 h") {
		t.Errorf("what has begun seconds ago is told to be older: %s", text)
	}
}

// TestNotPermitted: whose key may not read a stream is told so, and sees what else they may.
func TestNotPermitted(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "vera", "/desk/sessions")
	p.Expect("403 /v1/")
	p.Wait(`document.querySelector("[data-session]") && document.querySelector("header .state").innerText === "live"`)
	p.Visit("/desk/inbox")
	p.Says("not live: your key may not")
	p.Says("takes the permission payload")
	p.Visit("/desk/sessions/" + v.SessionID)
	p.Says("needs a human")
}

// TestIssuer: the way to log in at an issuer is shown where there is one, and nowhere else.
func TestIssuer(t *testing.T) {
	const roles = `[{"claim":"groups","value":"x","role":"viewer","machines":["*"]}]`
	for _, c := range []struct {
		args []string
		is   bool
	}{
		{[]string{"--oidc-issuer", "https://issuer.example.com", "--oidc-client", "desk", "--oidc-roles", roles}, true},
		{[]string{"--oidc-issuer", "https://issuer.example.com", "--oidc-audience", "dialai", "--oidc-roles", roles}, false},
		{nil, false},
	} {
		p := desktest.Open(desktest.Serve(t, c.args...), "", "/desk/inbox")
		p.Says("server-key")
		if got := desktest.Eval[bool](p, `!!document.querySelector("a[href='/desk/login']")`); got != c.is {
			t.Errorf("with %q the way to an issuer is shown: %v", c.args, got)
		}
	}
}

// TestBackFromIssuer: who signs in at an issuer, and comes back with a ticket, is where they were.
func TestBackFromIssuer(t *testing.T) {
	s := desktest.Serve(t, "--oidc-issuer", "https://issuer.example.com", "--oidc-client", "desk", "--oidc-roles", `[{"claim":"groups","value":"x","role":"viewer","machines":["*"]}]`)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "", list[1].Path()+"?machine=alone")
	p.Wait(`document.querySelector("a[href='/desk/login']")`)
	desktest.Eval[bool](p, `(document.querySelector("a[href='/desk/login']").addEventListener("click", (e) => e.preventDefault()), document.querySelector("a[href='/desk/login']").click(), true)`) // the issuer is elsewhere
	p.Visit("/desk/#t=" + s.Ticket("carol"))
	p.Wait(`location.pathname + location.search === %s && document.querySelector("[data-question]")`, list[1].Path()+"?machine=alone")
	p.Visit("/desk/#t=" + s.Ticket("carol")) // once
	p.Wait(`location.pathname === "/desk/" && document.querySelector("[data-question]")`)
}

// TestMineGains: what is assigned to somebody comes to what they look at as theirs, and what others let
// go to what is free.
func TestMineGains(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 2)[1]
	claim := "/v1/inbox/" + v.Question.QuestionID + "/claim"
	p := desktest.Open(s, "carol", "/desk/inbox?mine=true")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("[data-state=empty]")`)
	s.Call("dave", 200, "PUT", claim, `{"specialistId":"dave"}`, nil)
	s.Call("dave", 200, "PUT", claim, `{"specialistId":"dave","for":"carol"}`, nil)
	p.Says("1 new")
	p.Visit("/desk/inbox?mine=free")
	s.Call("dave", 204, "DELETE", claim, "", nil)
	s.Call("dave", 200, "PUT", claim, `{"specialistId":"dave"}`, nil)
	p.Visit("/desk/inbox?mine=free")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelectorAll("[data-row]").length === 1`)
	s.Call("dave", 204, "DELETE", claim, "", nil)
	p.Says("1 new")
}

// noticing keeps what the page would tell somebody who looks elsewhere, and lets time be turned.
const noticing = `(() => {
	globalThis.told = [];
	globalThis.Notification = class { static permission = "granted"; static requestPermission = async () => "granted"; constructor(title, o) { told.push(title + ": " + o.body); } };
	globalThis.hide = (is) => (Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (is ? "hidden" : "visible") }), document.dispatchEvent(new Event("visibilitychange")));
	const later = [];
	const real = setTimeout;
	globalThis.setTimeout = (f, ms, ...a) => (ms >= 10_000 && ms <= 30_000 ? (later.push(f), 0) : real(f, ms, ...a));
	globalThis.halfMinute = () => later.splice(0).forEach((f) => f());
})()`

// TestNotices: who looks elsewhere is told how many questions came and of which machine, never what
// they are about, at most once in half a minute, not in their quiet hours; the name of the tab and
// its icon say that something waits.
func TestNotices(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.OpenIn(s, "carol", "/desk/settings", noticing)
	icon := `document.querySelector("link[rel=icon]").href`
	plain := desktest.Eval[string](p, icon)
	p.Reach("main .row > button")
	p.Press("Enter")
	p.Visit("/desk/inbox")
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	s.Starts(desktest.Alone, 1)
	p.Says("1 new")
	if told := desktest.Eval[[]string](p, `told`); len(told) > 0 {
		t.Errorf("who looks at the page is told %q", told)
	}
	desktest.Eval[bool](p, `(hide(true), true)`)
	s.Starts(desktest.Alone, 1)
	p.Wait(`told.length === 1`)
	s.Starts(desktest.Machine{Name: "loans", Voters: "none"}, 2)
	p.Says("4 new")
	desktest.Eval[bool](p, `(halfMinute(), true)`)
	told := desktest.Eval[[]string](p, `told`)
	if len(told) != 2 || !strings.Contains(told[0], "1 question in alone") || !strings.Contains(told[1], "2 questions in loans") || strings.Contains(strings.Join(told, ""), "paid") {
		t.Errorf("told is %q", told)
	}
	if got := desktest.Eval[string](p, `document.title`); !strings.HasPrefix(got, "(4) ") {
		t.Errorf("the tab is called %q", got)
	}
	if got := desktest.Eval[string](p, icon); got == plain {
		t.Errorf("the icon is the same, whether something waits or not: %s", got)
	}
	p.Go("/desk/inbox?machine=nothing") // what is filtered does not matter
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("[data-state=empty]")`)
	desktest.Eval[bool](p, `(hide(true), true)`)
	s.Starts(desktest.Alone, 1)
	p.Wait(`told.length === 1 && told[0].includes("1 question in alone") && document.title.startsWith("(5) ")`)
	desktest.Eval[bool](p, `(localStorage.setItem("dialai.settings", JSON.stringify({ notify: true, quietFrom: "00:00", quietTo: "23:59" })), true)`)
	p.Visit("/desk/inbox")
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	desktest.Eval[bool](p, `(hide(true), true)`)
	s.Starts(desktest.Alone, 1)
	p.Says("1 new")
	desktest.Eval[bool](p, `(halfMinute(), true)`)
	if told := desktest.Eval[[]string](p, `told`); len(told) > 0 {
		t.Errorf("in quiet hours it is told %q", told)
	}
}
