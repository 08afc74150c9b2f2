package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestOrderMay: whoever holds nobody who decides in a state finds no orders about it, but who may give them.
func TestOrderMay(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "dave", "/desk/machines/refund-desk/collapse")
	p.Says("Orders are given here by carol.")
	if got := desktest.Eval[int](p, `document.querySelectorAll("section.card button").length`); got != 0 {
		t.Errorf("dave, who decides nothing there, finds %d orders", got)
	}
	p.Visit("/desk/machines/refund-desk/try") // and no form that could not be sent
	p.Says("it takes the permission configure")
	if got := desktest.Eval[int](p, `document.querySelectorAll("main form").length`); got != 0 {
		t.Errorf("who may try nothing finds %d forms", got)
	}
	c := desktest.Open(s, "carol", "/desk/machines/refund-desk/collapse")
	c.Wait(`document.querySelector("section.card button")`)
}

// TestOrderDialog: a dialog begins empty, sends nothing while the server is gone and keeps what is typed;
// Ctrl+Enter sends it, and the focus is on the page afterwards.
func TestOrderDialog(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/collapse")
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Reach("section.card button")
	p.Press("Enter")
	p.Reach("dialog textarea")
	p.Type("of another thought")
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog") && document.activeElement.matches("section.card button")`)
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open] textarea")?.value === ""`)
	p.Says("You speak as carol")
	p.Reach("dialog textarea")
	p.Type("the feed is stale")
	p.Wait(`!document.querySelector("dialog button.main").disabled`)
	p.Lose()
	p.Wait(`document.querySelector("dialog button.main").disabled && document.querySelector("dialog textarea").value === "the feed is stale" && document.querySelector("dialog .note.red")`)
	p.Press("Ctrl+Enter")
	p.Find()
	p.Wait(`!document.querySelector("dialog button.main").disabled && !document.querySelector("dialog .note.red")`)
	p.Press("Ctrl+Enter")
	p.Wait(`!document.querySelector("dialog")`)
	p.Wait(`document.activeElement.matches("section.card button") && document.activeElement.innerText.startsWith("Release")`)
	if got := logged(s, "/v1/machines/refund-desk/log", "collapse_frozen"); !strings.Contains(got, "the feed is stale") {
		t.Errorf("of the order the log has %s", got)
	}
}

// TestPromoteOffered: nobody is offered whom the server would refuse to promote, and why is said; whom it
// takes is promoted by who has seen the evidence.
func TestPromoteOffered(t *testing.T) {
	s := desktest.Serve(t)
	s.Collapsing(2)
	p := desktest.Open(s, "carol", "/desk/machines/collapsing/collapse")
	is := func(says string, offered int) {
		t.Helper()
		p.Visit(p.Path())
		p.Wait(`document.querySelector("section.card button")`)
		p.Says(says)
		if got := desktest.Eval[int](p, `document.querySelectorAll("section.card td button").length`); got != offered {
			t.Errorf("where it says %q, %d can be promoted", says, got)
		}
	}
	is("Nobody can be promoted yet: its promise is not established.", 0)
	s.Call("carol", 200, "POST", "/v1/machines/collapsing/collapse/ask/freeze", `{"reasoning":"a test"}`, nil)
	s.Collapsing(24)
	is("Nobody can be promoted while it is frozen.", 0)
	s.Call("carol", 200, "POST", "/v1/machines/collapsing/collapse/ask/release", `{"reasoning":"a test"}`, nil)
	is("150K of 10", 1) // the evidence, as people read it
	p.Reach("section.card td button")
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog [data-evidence]").innerText.startsWith("Right in 20 of 20: at least in 0.89 of all.")`)
	p.Reach("dialog textarea")
	p.Type("it is good")
	p.Press("Ctrl+Enter")
	p.Wait(`!document.querySelector("dialog") && document.activeElement !== document.body`)
	is("bot decides alone", 0)
	p.Reach("section.card button") // and is taken back by the same way
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open]")?.innerText.includes("Demote")`)
	p.Reach("dialog textarea")
	p.Type("not any more")
	p.Press("Ctrl+Enter")
	p.Wait(`!document.querySelector("dialog") && !document.querySelector("main").innerText.includes("decides alone")`)
	if got := logged(s, "/v1/machines/collapsing/log", "stage_changed"); !strings.Contains(got, "not any more") {
		t.Errorf("of the order the log has %s", got)
	}
}

// TestTried: a link to what was tried says it in words and in the form, and so does the dialog that adopts it.
func TestTried(t *testing.T) {
	s := desktest.Serve(t)
	s.PublishSample()
	var job struct{ JobID string }
	s.Call("root", 202, "POST", "/v1/jobs", `{"kind":"backtest","machineName":"refund-desk","arbiter":"bayes","risk":{"maxError":0.05,"confidence":0.8},"drop":["small-amounts"],"since":"30d"}`, &job)
	p := desktest.Open(s, "root", "/desk/machines/refund-desk/try?job="+job.JobID)
	const words = "Tried: arbiter bayes, at most 5% errors with 80% confidence, without small-amounts, only rounds since 30d."
	p.Says(words)
	p.Wait(`[...document.querySelectorAll("main form :is(select, input, textarea)")].map((i) => (i.type === "checkbox" ? i.checked : i.value)).join() === "bayes,true,0.05,0.8,true,false,false,,30d"`)
	p.Reach("main div.card button")
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open]")?.innerText.includes(%s) && document.querySelector("dialog").innerText.includes("You speak as carol")`, words)
}
