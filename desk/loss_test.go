package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestLostWhileTyping: when the server is killed the page says so, keeps the text and sends nothing;
// when it is back all goes on, also what comes in.
func TestLostWhileTyping(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Press("1")
	p.Reach("textarea")
	p.Type("before, ")
	p.Lose()
	p.Type("and after")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("button.main").disabled && document.querySelector("textarea").value === "before, and after"`)
	p.Find()
	p.Wait(`!document.querySelector("button.main").disabled && document.querySelector("textarea").value === "before, and after"`)
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "pay")
	if got := s.Session(v.SessionID).History[0].Reasoning; got != "before, and after" {
		t.Errorf("the reason is %q", got)
	}
	s.Starts(desktest.Alone, 1)
	p.Says("1 new")
}

// TestLostInHold: a word whose time comes while the server is gone is not taken to be sent; it is
// where it was, and goes once.
func TestLostInHold(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Press("2")
	p.Reach("textarea")
	p.Type("no receipt")
	p.Reach("button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	s.Kill()
	p.Wait(`document.querySelector("[data-refused]")?.innerText.includes("could not be sent")`)
	p.Find()
	open(t, s, v.SessionID)
	p.Reach("[data-refused] a")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-choice=refuse] input")?.checked && document.querySelector("textarea").value === "no receipt"`)
	p.Reach("textarea")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "refuse")
}

// TestLostInBulk: of many that are sent as the server is killed, each that is said to be decided is,
// and none is decided twice; the rest can be sent once it is back.
func TestLostInBulk(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 14)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	selected(p, 14)
	p.Press("b")
	p.Wait(`document.querySelector("dialog[open] [data-choice=pay]")`)
	p.Press("1", "Enter")
	p.Wait(`document.querySelector("[data-bulk] td:last-child").innerText === "decided"`)
	s.Kill()
	p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText !== "" && c.innerText !== "waits")`)
	outcomes := desktest.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("[data-bulk]")].map((r) => [r.dataset.bulk, r.querySelector("td:last-child").innerText]))`)
	p.Press("Escape")
	p.Find()
	left := 0
	for _, v := range list {
		now := s.Session(v.SessionID)
		if outcomes[v.Question.QuestionID] == "decided" && len(now.History) != 1 || len(now.History) > 1 {
			t.Errorf("%s is said to be %q, and has %+v", v.Subject, outcomes[v.Question.QuestionID], now.History)
		}
		if len(now.History) == 0 {
			left++
		}
	}
	p.Visit("/desk/inbox")
	if got := desktest.Eval[int](p, `document.querySelectorAll("[data-row]").length`); got != left {
		t.Errorf("%d are in the list, and %d are left", got, left)
	}
	if left == 0 {
		return // the server was faster
	}
	selected(p, left)
	p.Press("b")
	p.Wait(`document.querySelector("dialog[open] [data-choice=pay]")`)
	p.Press("1", "Enter")
	p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText === "decided")`)
	for _, v := range list {
		decided(t, s, v.SessionID, "pay")
	}
}

// TestClosedInHold: a tab that is closed while it holds a word sends nothing, and says so when it is
// back, with the word as it was.
func TestClosedInHold(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", list[0].Path())
	p.Set(`{"hold":1}`)
	p.Press("1")
	p.Reach("textarea")
	p.Type("quite sure")
	p.Reach("button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	p.Visit("/desk/settings") // which is another document: the one that held the word is gone
	p.Says("was not sent: the tab was closed before")
	p.Visit(list[1].Path()) // whose word comes later than the other's would have
	p.Press("2", "Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, list[1].SessionID, "refuse")
	open(t, s, list[0].SessionID)
	p.Visit(list[0].Path())
	p.Wait(`document.querySelector("[data-choice=pay] input").checked && document.querySelector("textarea").value === "quite sure"`)

	other := p.Tab(list[0].Path())
	other.Press("2", "Enter")
	other.Wait(`document.querySelector("[data-held]")`)
	other.Close()
	// To a new tab, once nobody can be holding it any more, it is said once that there was a word.
	later := `{ const now = Date.now; Date.now = () => now() + 60_000; }`
	fresh := p.TabIn("/desk/sessions", later)
	fresh.Wait(`document.querySelector("[data-lost] a")?.getAttribute("href") === %s`, list[0].Path())
	if kept := desktest.Eval[string](fresh, `JSON.stringify({ ...localStorage })`); strings.Contains(kept, "refuse") {
		t.Errorf("the browser keeps what was said: %s", kept)
	}
	fresh.Close()
	again := p.TabIn("/desk/sessions", later)
	again.Wait(`document.querySelector("main")?.getAttribute("aria-busy") === "false"`)
	if desktest.Eval[bool](again, `!!document.querySelector("[data-lost]")`) {
		t.Error("it is said again")
	}
	// So is a tab that is open already.
	second := p.Tab(list[0].Path())
	second.Press("2", "Enter")
	second.Wait(`document.querySelector("[data-held]")`)
	again.Wait(`document.querySelector("[data-lost]")`)
	second.Close()
	again.Close()
	third := s.Starts(desktest.Alone, 1)[0]
	p.Visit(third.Path())
	p.Press("1", "Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, third.SessionID, "pay")
	open(t, s, list[0].SessionID)
}
