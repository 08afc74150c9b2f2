package everypage_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// stalled looks at a page while a request of it waits, to which keys, or an address, lead from the settings.
func (l looker) stalled(name, request string, lead ...string) {
	l.Helper()
	l.Visit("/desk/settings")
	l.Stall(request)
	if strings.HasPrefix(lead[0], "/") {
		l.Show(lead[0])
	} else {
		l.Press(lead...)
	}
	l.Wait(`document.querySelector("main [aria-busy=true] .skeleton")`)
	l.look(name + " loading")
	l.Unstall()
	l.Settled()
}

// broken is what a server says that cannot answer.
const broken = `{"type":"about:blank","status":503,"code":"unavailable","title":"The store cannot be read","detail":"the store cannot be read: database is locked","hint":"try again in a minute","requestId":"req-1"}`

// refused looks at a page that is opened while a request of it is answered with an error, until it is
// tried again.
func (l looker) refused(name, request, path string) {
	l.Helper()
	l.Expect("503 /v1/")
	l.Answer(request, 503, broken)
	l.Go(path)
	l.Wait(`document.querySelector("main [data-state=error]")?.innerText.includes("req-1")`)
	l.look(name + " error")
	l.Unstall()
	desktest.Eval[bool](l.Page, `(document.querySelector("main [data-state=error] button").click(), true)`)
	l.Wait(`!document.querySelector("main [data-state=error]")`)
	l.Settled()
}

// called waits until it is told how models were asked, and opens all of it.
func (l looker) called() {
	l.Helper()
	l.Wait(`document.querySelector(".calls details")`)
	desktest.Eval[bool](l.Page, `(document.querySelectorAll(".calls details").forEach((d) => (d.open = true)), true)`)
	l.Wait(`document.querySelectorAll(".calls pre").length === 2`)
}

// asks presses keys that open a dialog, and looks at it.
func (l looker) asks(name string, keys ...string) {
	l.Helper()
	l.Press(keys...)
	l.Wait(`document.querySelector("dialog[open]")`)
	l.look(name)
	l.Press("Escape")
	l.Wait(`!document.querySelector("dialog")`)
}

// TestAccessibleSessions: so can the list of sessions and what is done with it, and a session as it
// asks, as it has gone through rounds, stands at a limit, and has ended, and how it asked models.
func TestAccessibleSessions(t *testing.T) {
	s := modelled(t, proposes("since it is late"))
	l := looker{desktest.Open(s, "root", "/desk/sessions"), axe(t)}
	l.look("sessions empty")
	list := s.Seed()
	stopped := s.Start(desktest.Working, `{"n":1}`)
	asked := s.Start(desktest.Machine{Name: "reading", Voters: reader}.JSON(), `{"n":1}`)
	s.Starts(desktest.Alone, 2) // the newest
	s.Publish("form", "form.json", `{"machineName":"form","initialState":"a","goalState":"b","input":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number","title":"How much"},"late":{"type":"boolean"}}},"states":{"a":{"transitions":{"go":"b"}},"b":{}}}`)
	l.stalled("sessions", "*/v1/sessions?*", "g", "s")
	l.look("sessions full")
	l.refused("sessions", "*/v1/sessions?*", "/desk/sessions?machine=form")
	l.Visit("/desk/sessions")
	l.Press("j", "x", "j", "x")
	l.Wait(`document.querySelectorAll("[aria-selected=true]").length === 2`)
	l.look("sessions selected")
	l.asks("sessions cancel", "c")
	l.Press("Home", "x", "j", "x", "c")
	l.Reach("dialog textarea")
	l.Type("not wanted")
	l.Press("Ctrl+Enter")
	l.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].map((c) => c.innerText).join() === "cancelled,cancelled"`)
	l.look("sessions cancelled")
	l.Press("Escape")
	l.Visit("/desk/sessions?machine=form")
	l.look("sessions filtered")
	l.Press("n")
	l.Wait(`document.querySelector("#new-amount")`)
	l.look("sessions new")
	l.Press("Escape")

	l.Visit("/desk/sessions/" + list["plain"].SessionID)
	l.Wait(`document.querySelector("[data-why] .bars")`)
	l.look("session why")
	l.Visit("/desk/sessions/" + stopped.SessionID)
	l.Wait(`document.querySelectorAll("[data-round]").length === 3`)
	desktest.Eval[bool](l.Page, `(document.querySelectorAll("[data-event] details").forEach((d) => (d.open = true)), true)`)
	l.Wait(`[...document.querySelectorAll("[data-event] pre")].length === document.querySelectorAll("[data-event]").length`)
	l.look("session rounds")
	l.asks("session raise", "l")
	l.asks("session resume", "u")
	l.Visit("/desk/sessions/" + list["audit"].SessionID + "?tab=audit")
	l.Wait(`document.querySelector("[data-status=completed]") && document.querySelector("section [data-state=empty]")`)
	l.look("session ended, calls empty")
	calls := "/desk/sessions/" + asked.SessionID + "?tab=audit"
	l.stalled("session", "*/v1/sessions/"+asked.SessionID, calls)
	l.stalled("session rounds", "*/v1/sessions/"+asked.SessionID+"/events*", calls)
	l.stalled("session calls", "*/v1/sessions/"+asked.SessionID+"/audit*", calls)
	l.called()
	l.look("session calls full")
	l.refused("session", "*/v1/sessions/"+asked.SessionID, calls)
	l.refused("session calls", "*/v1/sessions/"+asked.SessionID+"/audit*", calls)
	l.Expect("404 /v1/sessions/none")
	l.Visit("/desk/sessions/none")
	l.look("session gone")
	l.Visit("/desk/sessions/" + list["plain"].SessionID)
	l.Page.Lose()
	l.look("session offline")
	l.Press("g", "s")
	l.Wait(`document.querySelector("[data-state=error]")`)
	l.look("sessions unreachable")
	l.Page.Find()
	l.Visit(calls)
	l.called()
	list2 := looker{l.Tab("/desk/sessions"), l.script}
	list2.Wait(`document.querySelector("[data-session]") && document.querySelector("header .state").innerText === "live"`)
	l.Page.Lose()
	l.look("session calls offline")
	list2.Wait(`/^offline since/.test(document.querySelector("header .state").innerText)`)
	list2.look("sessions offline")
}

// tabs are those of a machine.
var tabs = []string{"", "/trust", "/promise", "/calibration", "/collapse", "/spend", "/who", "/try", "/simulate"}

// TestAccessibleMachines: so can machines, and each tab of one that has decided nothing and of one
// that has, with their dialogs and their charts as tables.
func TestAccessibleMachines(t *testing.T) {
	s := desktest.Serve(t)
	l := looker{desktest.Open(s, "root", "/desk/machines"), axe(t)}
	l.look("machines empty")
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	l.Expect("404 /v1/machines/alone/")
	l.Size(360, 900)
	for _, tab := range tabs { // which say the same: in one size
		l.Visit("/desk/machines/alone" + tab)
		l.Wait(`document.querySelector("main [data-state=empty]")`)
		l.check("machine empty "+tab, 360, false)
	}
	l.Size(1280, 900)
	s.PublishSample()
	l.stalled("machines", "*/v1/machines*", "g", "m")
	l.look("machines full")
	for _, tab := range tabs {
		l.Visit("/desk/machines/refund-desk" + tab)
		l.look("machine full " + tab)
	}
	l.stalled("machine", "*/v1/machines/refund-desk", "/desk/machines/refund-desk")
	l.Size(360, 900)
	for _, tab := range tabs[:7] { // the others are forms, and ask for nothing first; of one, all is looked at above and below
		l.Visit("/desk/settings")
		l.Stall("*/v1/machines/refund-desk/*")
		l.Show("/desk/machines/refund-desk" + tab)
		l.Wait(`document.querySelector("main[aria-busy=true] .skeleton")`)
		l.check("machine loading "+tab, 360, false)
		l.Unstall()
		l.Visit("/desk/settings")
		l.Expect("503 /v1/")
		l.Answer("*/v1/machines/refund-desk/*", 503, broken)
		l.Show("/desk/machines/refund-desk" + tab)
		l.Wait(`document.querySelector("main [data-state=error]")?.innerText.includes("req-1")`)
		l.check("machine error "+tab, 360, false)
		l.Unstall()
	}
	l.Size(1280, 900)
	l.Visit("/desk/machines/refund-desk/trust")
	l.Reach("figure button")
	l.Press("Enter")
	l.Wait(`document.querySelector("figure table")`)
	l.look("machine trust as a table")
	l.pushed("machine collapse freeze", "/desk/machines/refund-desk/collapse", "section.card button")
	l.pushed("machine who off", "/desk/machines/refund-desk/who", "main td button")
	l.Expect("404 /v1/machines/none")
	l.Visit("/desk/machines/none/trust")
	l.look("machine gone")

	l.Visit("/desk/machines/refund-desk/try")
	l.Stall("*/v1/jobs/*")
	l.Reach("main form input[type=checkbox]")
	l.Press("Space")
	l.Reach("main form input[type=number]")
	l.Press("Enter")
	l.Wait(`document.querySelector("main .skeleton")`)
	l.look("machine try running")
	l.Unstall()
	l.Wait(`document.querySelector("main thead")`)
	l.look("machine try done")
	l.pushed("machine try adopt", "", "main div.card button")
	l.Visit("/desk/machines/refund-desk/simulate")
	l.Stall("*/v1/jobs/*")
	l.Reach("main form button.main")
	l.Press("Enter")
	l.Wait(`document.querySelector("main .skeleton, main progress")`)
	l.look("machine simulate running")
	l.Unstall()
	l.Wait(`document.querySelector("main figure") && !document.querySelector("main progress")`)
	l.look("machine simulate done")
	s.Collapsing(2)
	s.Call("carol", 200, "POST", "/v1/machines/collapsing/collapse/ask/freeze", `{"reasoning":"a test"}`, nil)
	s.Collapsing(24)
	s.Call("carol", 200, "POST", "/v1/machines/collapsing/collapse/ask/release", `{"reasoning":"a test"}`, nil)
	l.pushed("machine collapse promote", "/desk/machines/collapsing/collapse", "section.card td button")
	l.refused("machines", "*/v1/machines?*", "/desk/machines")
	all := looker{l.Tab("/desk/machines"), l.script}
	all.Wait(`document.querySelector("header .state").innerText === "live"`)
	l.Visit("/desk/machines/refund-desk/collapse")
	l.Page.Lose()
	l.look("machine offline")
	all.Wait(`/^offline since/.test(document.querySelector("header .state").innerText)`)
	all.look("machines offline")
	l.Reach("main nav a[href$=spend]")
	l.Press("Enter")
	l.Wait(`document.querySelector("[data-state=error]")`)
	l.look("machine unreachable")
}

// pushed goes to a page, has a button of it open a dialog, and looks at that.
func (l looker) pushed(name, path, button string) {
	l.Helper()
	if path != "" {
		l.Visit(path)
	}
	l.Reach(button)
	l.asks(name, "Enter")
}

// TestAccessibleEditor: so can the editor, with a text that is sound, that has problems or is none
// yet, with what would be published, and without a server.
func TestAccessibleEditor(t *testing.T) {
	s := desktest.Serve(t)
	l := looker{desktest.Open(s, "root", "/desk/edit"), axe(t)}
	l.Says("sound")
	l.look("editor sound")
	l.Reach(".dry button:not(.quiet)")
	l.Press("Enter")
	l.Says("asked: needs a human.")
	l.look("editor dry run")
	l.Reach(".dry .rounds button")
	l.Press("Enter")
	l.Says("closed: completed.")
	l.look("editor dry run done")
	s.Publish("refunds", "refunds.json", strings.Replace(desktest.Alone.JSON(), `"alone"`, `"refunds"`, 1))
	l.stalled("editor", "*/v1/machines/refunds", "/desk/edit?machine=refunds")
	l.Says("sound")
	l.Reach(".code")
	l.Press("ArrowDown", "End", "Enter")
	l.Type(`"consensusThreshold": 0.4,`)
	l.Wait(`document.querySelector("main .bar button.main:not(:disabled)")`)
	l.Reach("main .bar button.main")
	l.asks("editor publish", "Enter")
	l.Reach(".code")
	l.Type("}")
	l.Wait(`document.querySelector("main .problems")`)
	l.look("editor problems")
	l.Expect("404 /v1/machines/none")
	l.Visit("/desk/edit?machine=none")
	l.look("editor error")
	l.refused("editor", "*/v1/machines/refunds", "/desk/edit?machine=refunds")
	l.Visit("/desk/edit")
	l.Says("sound")
	l.Reach(".code")
	l.Press("Ctrl+a", "Backspace")
	l.Wait(`document.querySelector("main .problems li")`)
	l.look("editor empty")
	l.Reach("[data-discard]")
	l.Press("Enter")
	l.Says("sound")
	l.Page.Lose()
	l.look("editor offline")
}
