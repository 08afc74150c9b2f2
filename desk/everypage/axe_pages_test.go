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
		desktest.Eval[bool](l.Page, `(history.pushState(null, "", %s), dispatchEvent(new PopStateEvent("popstate")))`, lead[0])
	} else {
		l.Press(lead...)
	}
	l.Wait(`document.querySelector("main[aria-busy=true] .skeleton")`)
	l.look(name + " loading")
	l.Unstall()
	l.Settled()
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
// asks, as it has gone through rounds, stands at a limit, and has ended.
func TestAccessibleSessions(t *testing.T) {
	s := desktest.Serve(t)
	l := looker{desktest.Open(s, "root", "/desk/sessions"), axe(t)}
	l.look("sessions empty")
	list := s.Seed()
	stopped := s.Start(desktest.Working, `{"n":1}`)
	s.Publish("form", "form.json", `{"machineName":"form","initialState":"a","goalState":"b","input":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number","title":"How much"},"late":{"type":"boolean"}}},"states":{"a":{"transitions":{"go":"b"}},"b":{}}}`)
	l.stalled("sessions", "*/v1/sessions?*", "g", "s")
	l.look("sessions full")
	l.Press("j", "x", "j", "x")
	l.Wait(`document.querySelectorAll("[aria-selected=true]").length === 2`)
	l.look("sessions selected")
	l.asks("sessions cancel", "c")
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
	l.look("session rounds")
	l.asks("session raise", "l")
	l.asks("session resume", "u")
	l.Visit("/desk/sessions/" + list["audit"].SessionID + "?tab=audit")
	l.Wait(`document.querySelector("[data-status=completed]")`)
	l.look("session ended")
	l.Expect("404 /v1/sessions/none")
	l.Visit("/desk/sessions/none")
	l.look("session gone")
	l.Visit("/desk/sessions/" + list["plain"].SessionID)
	l.Page.Lose()
	l.look("session offline")
	l.Press("g", "s")
	l.Wait(`document.querySelector("[data-state=error]")`)
	l.look("sessions error")
}

// TestAccessibleMachines: so can machines, and each tab of one that has decided nothing and of one
// that has, with their dialogs and their charts as tables.
func TestAccessibleMachines(t *testing.T) {
	s := desktest.Serve(t)
	l := looker{desktest.Open(s, "root", "/desk/machines"), axe(t)}
	l.look("machines empty")
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	l.Expect("404 /v1/machines/alone/")
	tabs := []string{"", "/trust", "/promise", "/calibration", "/collapse", "/spend", "/who", "/try"}
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
	l.Visit("/desk/machines/refund-desk/collapse")
	l.Page.Lose()
	l.look("machine offline")
	l.Reach("main nav a[href$=spend]")
	l.Press("Enter")
	l.Wait(`document.querySelector("[data-state=error]")`)
	l.look("machine error")
	l.Press("g", "m")
	l.Wait(`document.querySelector("[data-state=error]") && location.pathname === "/desk/machines"`)
	l.look("machines error")
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
	l.Visit("/desk/edit")
	l.Says("sound")
	l.Page.Lose()
	l.look("editor offline")
}
