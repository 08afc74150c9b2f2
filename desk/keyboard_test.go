package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// What is done with keys alone: no test here has a mouse.

// TestSignIn: who has a key types it, and is where they wanted to be; the key stays nowhere.
func TestSignIn(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Alone.JSON(), `{"n":1}`)
	p := desktest.Open(s, "", v.Path())
	p.Expect("401 /desk/session")
	p.Says("server-key")
	p.Reach("input[type=password]")
	p.Type("dk_nobody")
	p.Press("Enter")
	p.Says("Nobody is known by that key.")
	desktest.Eval[bool](p, `(document.activeElement.select?.(), document.querySelector("input").select(), document.querySelector("input").focus(), true)`)
	p.Type(s.Key("carol"))
	p.Press("Enter")
	p.Says("Should this be paid?")
	if p.Path() != v.Path() {
		t.Errorf("after signing in the page is at %s", p.Path())
	}
	kept := desktest.Eval[string](p, `JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])`)
	if strings.Contains(kept, s.Key("carol")) || strings.Contains(p.Heard(), s.Key("carol")) {
		t.Errorf("the browser keeps the key: %s", kept)
	}
	p.Visit("/desk/settings")
	p.Reach("main section button")
	p.Press("Enter")
	p.Wait(`document.querySelector("input[type=password]")`)
	if kept := desktest.Eval[string](p, `JSON.stringify([{...localStorage}, {...sessionStorage}])`); strings.Contains(kept, "token") || strings.Contains(kept, "draft") {
		t.Errorf("after signing out the browser keeps %s", kept)
	}
}

// TestRule: a digit picks, Enter sends after three seconds, in which the next question shows.
func TestRule(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", "/desk/inbox")
	if got := desktest.Eval[int](p, `document.querySelectorAll("[data-choice] input:checked").length`); got != 0 {
		t.Errorf("%d choices are picked beforehand", got)
	}
	p.Press("Enter") // nothing is picked
	p.Press("2")
	p.Wait(`document.querySelector("[data-choice=refuse] input").checked`)
	p.Press("1")
	p.Wait(`document.querySelector("[data-choice=pay] input").checked`)
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]") && document.querySelector("[data-question]").dataset.question === %s`, list[1].Question.QuestionID)
	open(t, s, list[0].SessionID)
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, list[0].SessionID, "pay")
	if looked := ruled(s, list[0].SessionID).Looked; looked < 1 || looked > 60_000 {
		t.Errorf("the question was looked at for %v ms", looked)
	}
	open(t, s, list[1].SessionID)
	p.Press("2", "Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")?.dataset.outcome === %s`, list[1].Question.QuestionID)
	decided(t, s, list[1].SessionID, "refuse")
}

// TestTakeBack: Esc takes back what is held, with its text; nothing is ever sent of it.
func TestTakeBack(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Set(`{"hold":1}`)
	p.Press("1")
	p.Reach("textarea")
	p.Type("since it is late")
	p.Press("Ctrl+Enter", "Escape") // at once: there is nothing to take back
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, list[0].SessionID, "pay")
	if got := s.Session(list[0].SessionID).History[0].Reasoning; got != "since it is late" {
		t.Errorf("the reason is %q", got)
	}

	other := s.Starts(desktest.Alone, 1)[0]
	p.Visit(list[1].Path())
	p.Press("2")
	p.Reach("textarea")
	p.Type("no receipt")
	p.Reach("button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	p.Press("Escape")
	p.Wait(`!document.querySelector("[data-held]") && document.querySelector("[data-question]")?.dataset.question === %s`, list[1].Question.QuestionID)
	p.Wait(`document.querySelector("[data-choice=refuse] input").checked && document.querySelector("textarea").value === "no receipt"`)
	p.Press("s") // the word of another question comes later than what was taken back would have
	p.Wait(`document.querySelector("[data-question]")?.dataset.question === %s`, other.Question.QuestionID)
	p.Press("1", "Enter")
	p.Wait(`document.querySelector("[data-outcome]")?.dataset.outcome === %s`, other.Question.QuestionID)
	decided(t, s, other.SessionID, "pay")
	open(t, s, list[1].SessionID)
}

// TestIrreversible: what cannot be undone takes a reason, and its name typed.
func TestIrreversible(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["final"].JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("#lacks").innerText === "Pick an answer"`)
	p.Press("1", "Enter")
	p.Says("required: it cannot be undone")
	p.Wait(`document.querySelector("#lacks").innerText === "Say why: it cannot be undone"`)
	p.Reach("textarea")
	p.Type("the customer asked for it")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("dialog[open] input")`)
	p.Says("erase leads from ask to paid.")
	p.Wait(`/n\s+1/.test(document.querySelector("dialog").innerText)`) // what it is about
	p.Type("eras")                                                     // what is to be typed has the focus
	p.Wait(`document.querySelector("dialog input").value === "eras"`)
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open]") && !document.querySelector("dialog pre")`)
	p.Type("e")
	p.Reach("dialog section button") // who looks at the facts as JSON says nothing by it
	p.Press("Enter")
	p.Wait(`document.querySelector("dialog[open] pre")`)
	open(t, s, v.SessionID)
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog")`)
	p.Reach("textarea")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("dialog[open] input")`)
	p.Reach("dialog input")
	p.Type("erase")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`) // it is held, as any word, and can be taken back
	p.Press("Escape")
	p.Wait(`!document.querySelector("[data-held]") && document.querySelector("textarea").value === "the customer asked for it"`)
	open(t, s, v.SessionID)
	p.Reach("textarea")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("dialog[open] input")`)
	p.Type("erase")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "erase")
}

// TestParameters: what goes with a choice is typed into a form, of which nothing is missing.
func TestParameters(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["parameters"].JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Set(`{"hold":0}`)
	p.Press("1")
	p.Wait(`document.querySelector("#payload-amount") && document.querySelector("button.main").disabled`)
	p.Reach("#payload-amount")
	p.Type("0.5")
	p.Says("at least 1")
	p.Wait(`document.querySelector("#lacks").innerText === "Fill in what goes with it"`)
	p.Wait(`document.querySelector("button.main").disabled`)
	p.Press("Backspace", "Backspace", "Backspace")
	p.Type("12.50")
	p.Reach("[name=payload-speed]")
	p.Press("Space")
	p.Size(360, 740)
	for _, field := range []string{"#payload-when", "#payload-note"} { // nothing covers what has the focus
		p.Reach(field)
		if !desktest.Eval[bool](p, `((e) => { const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)) && r.bottom <= innerHeight; })(document.activeElement)`) {
			t.Errorf("%s is covered while it has the focus", field)
		}
	}
	p.Type("as agreed")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "pay")
	if got := string(s.Session(v.SessionID).History[0].MetaJSON); got != `{"amount":12.50,"speed":"slow","note":"as agreed"}` && got != `{"amount":12.5,"speed":"slow","note":"as agreed"}` {
		t.Errorf("what went with it is %s", got)
	}
}

// TestAssign: who hands a question to another says for whom and why; the other sees both, and
// leaving the page takes nothing back.
func TestAssign(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", list[0].Path())
	p.Press("a")
	p.Wait(`document.querySelector("dialog[open] select")`)
	p.Reach("dialog select")
	p.Press("ArrowDown")
	p.Wait(`document.querySelector("dialog select").value === "dave"`)
	p.Reach("dialog textarea")
	p.Type("you know them")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s`, list[1].Question.QuestionID)
	p.Visit("/desk/settings")
	q := desktest.Open(s, "dave", list[0].Path())
	q.Says("For dave, by")
	q.Says("you know them")
	open(t, s, list[0].SessionID)
}
