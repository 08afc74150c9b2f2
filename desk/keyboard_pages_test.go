package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// What operators and owners do, with keys alone.

// logged is what the log of a session has as its last event of a kind.
func logged(s *desktest.Server, path, kind string) string {
	s.Helper()
	var log struct {
		Items []map[string]any
	}
	s.Call("root", 200, "GET", path+"?payload=full", "", &log)
	for i := len(log.Items) - 1; i >= 0; i-- {
		if log.Items[i]["kind"] == kind {
			return desktest.Quoted(log.Items[i])
		}
	}
	s.Errorf("%s has no %s: %v", path, kind, log.Items)
	return ""
}

// TestCancel: c asks why, and nothing stops without a reason, or by leaving; with one exactly what the
// dialog lists stops: the session that is open, or the two that are selected.
func TestCancel(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 4)
	p := desktest.Open(s, "olga", "/desk/sessions/"+list[0].SessionID)
	p.Press("c")
	p.Wait(`document.querySelector("dialog[open] button.main:disabled")`)
	p.Press("Enter", "Escape")
	p.Wait(`!document.querySelector("dialog")`)
	open(t, s, list[0].SessionID)
	p.Press("c")
	p.Reach("dialog textarea")
	p.Type("not wanted")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-bulk] td:last-child").innerText === "cancelled"`)
	p.Press("Escape")
	p.Wait(`document.querySelector("main [data-status=stopped]") && !document.querySelector("dialog")`)

	p.Press("g", "s")
	p.Wait(`document.querySelectorAll("[data-session]").length === 4`)
	p.Press("j", "x", "j", "x") // the newest two
	p.Wait(`document.querySelectorAll("[aria-selected=true]").length === 2`)
	p.Press("c")
	p.Says("Cancel these 2 sessions")
	p.Reach("dialog textarea")
	p.Type("both")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText === "cancelled")`)
	for i, want := range []string{"stopped", "needs_human", "stopped", "stopped"} {
		if v := s.Session(list[i].SessionID); v.Status != want {
			t.Errorf("%s is %s, want %s", v.Subject, v.Status, want)
		}
	}
	if got := logged(s, "/v1/sessions/"+list[0].SessionID+"/events", "ended"); !strings.Contains(got, "not wanted") {
		t.Errorf("of why it was cancelled the log has %s", got)
	}
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog") && document.querySelectorAll("[aria-selected=true]").length === 0`)
}

// TestRaise: l raises the limit that has stopped a session, if it becomes higher and a reason is given;
// u takes up again one that has been cancelled.
func TestRaise(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Working, `{"n":1}`)
	p := desktest.Open(s, "root", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector("main [data-status=stopped]")`)
	p.Press("l")
	p.Wait(`document.querySelector("dialog[open] input:checked")`)
	p.Reach("dialog input.num")
	p.Type("2")
	p.Says("more than 2")
	p.Reach("dialog textarea")
	p.Type("one more")
	p.Reach("dialog select")
	p.Press("ArrowDown") // root speaks for anybody: for carol
	p.Wait(`document.querySelector("dialog select").value === "carol" && document.querySelector("dialog button.main").disabled`)
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog")`)
	p.Press("l")
	p.Wait(`document.querySelector("dialog[open] select")?.value === "carol"`)
	p.Reach("dialog input.num")
	p.Type("3")
	p.Reach("dialog textarea")
	p.Type("one more")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll("[data-round]").length === 4 && document.querySelector("main [data-status=stopped]")`)
	if got := logged(s, "/v1/sessions/"+v.SessionID+"/events", "resumed"); !strings.Contains(got, "one more") || !strings.Contains(got, "carol") {
		t.Errorf("of what was raised the log has %s", got)
	}

	other := s.Starts(desktest.Alone, 1)[0]
	s.Call("olga", 200, "POST", "/v1/sessions/"+other.SessionID+"/cancel", `{"note":"by mistake"}`, nil)
	p.Visit("/desk/sessions/" + other.SessionID)
	p.Press("u")
	p.Says("Resume this session")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-bulk] td:last-child").innerText === "taken up again"`)
	p.Press("Escape")
	p.Wait(`document.querySelector("main [data-status=needs_human]")`)
	open(t, s, other.SessionID)
}

// TestAdopt: who has tried a policy on what has happened adopts it, with a reason, and as themselves.
func TestAdopt(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/try")
	p.Reach("main form button.main") // nothing is other
	p.Press("Enter")
	p.Says("It decides as the policy in force does, and promises the same: there is nothing to adopt.")
	p.Reach("main form input[inputmode=decimal]")
	p.Type("0.6")
	p.Press("Enter")
	p.Says("promises nothing, so there is nothing to adopt")
	p.Reach("main form > label.row input")
	p.Press("Space")
	p.Reach("main form input[type=number]")
	p.Press("Enter")
	p.Wait(`document.querySelector("main div.card:not([aria-busy]) button")`)
	p.Says("15 rounds")
	first := p.Path()
	p.Reach("main form .half ~ .half ~ .half input") // the confidence of another policy
	desktest.Eval[bool](p, `(document.activeElement.select(), true)`)
	p.Type("0.8")
	p.Press("Enter")
	p.Wait(`location.pathname + location.search !== %s && document.querySelector("main div.card:not([aria-busy]) button")`, first)
	p.Reach("main div.card button")
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open]")`)
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog")`)
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open] button.main:disabled")`)
	p.Says("The confidence is divided among the policies tried on the same rounds: of this machine 2 were tried.")
	p.Reach("dialog textarea")
	p.Type("as good with fewer humans")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Says("Adopted: the live test begins with what was found. The confidence is divided among 2 policies tried.")
	if got := desktest.Eval[int](p, `document.querySelectorAll("main div.card button").length`); got != 0 {
		t.Error("what was adopted can be adopted again")
	}
}

// TestFreeze: nothing is ordered of a state without a reason, and what it does is said; with one it is,
// and the log has it.
func TestFreeze(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/collapse")
	order := func(title, says, why string) {
		t.Helper()
		p.Reach("section.card button")
		p.Press("Enter")
		p.Wait(`document.querySelector("dialog[open] button.main:disabled")`)
		p.Wait(`document.querySelector("dialog h1").innerText === %s && document.querySelector("dialog p").innerText.startsWith(%s)`, title, says)
		p.Reach("dialog textarea")
		p.Type(why)
		p.Reach("dialog button.main")
		p.Press("Enter")
		p.Wait(`!document.querySelector("dialog")`)
	}
	order("Freeze claimed", "Nobody becomes champion of this state", "the feed is stale")
	p.Says("frozen")
	order("Release claimed", "Specialists can become champion", "it is back")
	p.Wait(`!document.body.innerText.includes("frozen")`)
	if got := logged(s, "/v1/machines/refund-desk/log", "collapse_released"); !strings.Contains(got, "it is back") {
		t.Errorf("of the order the log has %s", got)
	}
}

// TestSwitchOff: nobody is switched off without a reason; with one they are, and the log has it.
func TestSwitchOff(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/who")
	p.Reach("main td button")
	who := desktest.Eval[string](p, `document.activeElement.closest("tr").querySelector("th").innerText.trim()`)
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open] button.main:disabled")`)
	p.Reach("dialog textarea")
	p.Type("its feed is stale")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`[...document.querySelectorAll("tr")].some((r) => r.querySelector("th").innerText.startsWith(%s) && r.querySelector(".tag.red"))`, who)
	if got := logged(s, "/v1/machines/refund-desk/log", "specialist_disabled"); !strings.Contains(got, "its feed is stale") || !strings.Contains(got, who) {
		t.Errorf("of who was switched off the log has %s", got)
	}
	p.Reach("main td button")
	p.Press("Enter")
	p.Says("Switch " + who + " on")
}
