package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestSelectedOnly: what is cancelled or taken up again are those that are selected of the list, by key
// or by button; one that has changed since the dialog listed it is left as it is.
func TestSelectedOnly(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 6) // the newest, which is the sixth, comes first
	p := desktest.Open(s, "olga", "/desk/sessions")
	p.Expect("412 /v1/sessions/")
	p.Wait(`document.querySelectorAll("[data-session]").length === 6 && document.querySelector("header .state").innerText === "live"`)
	pick := func(at ...int) {
		t.Helper()
		for n, i := range at {
			p.Wait(`document.querySelector("[data-session='" + %s + "'] a")`, list[i].SessionID)
			desktest.Eval[bool](p, `(document.querySelector("[data-session='" + %s + "'] a").focus(), true)`, list[i].SessionID)
			p.Press("x")
			p.Wait(`document.querySelectorAll("[aria-selected=true]").length === %s`, n+1)
		}
	}
	sent := func(title, note string) (said map[string]string) {
		t.Helper()
		p.Says(title)
		if note != "" {
			p.Reach("dialog textarea")
			p.Type(note)
		}
		p.Press("Ctrl+Enter")
		p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText !== "" && c.innerText !== "waits")`)
		said = desktest.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("[data-bulk]")].map((r) => [r.dataset.bulk, r.querySelector("td:last-child").innerText]))`)
		p.Press("Escape")
		p.Wait(`!document.querySelector("dialog") && document.querySelectorAll("[aria-selected=true]").length === 0`)
		return said
	}
	are := func(want ...string) {
		t.Helper()
		for i, v := range list {
			if now := s.Session(v.SessionID).Status; now != want[i] {
				t.Errorf("%s is %s, want %s", v.Subject, now, want[i])
			}
		}
	}
	pick(5, 3, 2)
	p.Press("c")
	p.Says("Cancel these 3 sessions")
	s.Call("root", 200, "POST", "/v1/sessions/"+list[3].SessionID+"/cancel", `{"note":"by another"}`, nil)
	s.Call("root", 200, "POST", "/v1/sessions/"+list[3].SessionID+"/resume", `{"note":"by another"}`, nil)
	s.Call("root", 200, "GET", "/v1/sessions/"+list[3].SessionID+"/settled?wait=20s", "", nil)
	if said := sent("Cancel these 3 sessions", "not wanted"); len(said) != 3 || !strings.HasPrefix(said[list[3].SessionID], "changed meanwhile") || said[list[5].SessionID] != "cancelled" {
		t.Errorf("the dialog says %v", said)
	}
	are("needs_human", "needs_human", "stopped", "needs_human", "needs_human", "stopped")

	pick(4, 0)
	p.Reach(".bar button:nth-of-type(2)")
	p.Press("Enter")
	sent("Cancel these 2 sessions", "nor these")
	are("stopped", "needs_human", "stopped", "needs_human", "stopped", "stopped")

	for _, i := range []int{0, 2, 4, 5} { // they are taken up as they are seen
		p.Wait(`document.querySelector("[data-session='" + %s + "']")?.innerText.includes("stopped")`, list[i].SessionID)
	}
	pick(5, 2)
	p.Press("u")
	sent("Resume these 2 sessions", "")
	pick(0)
	p.Reach(".bar button:nth-of-type(1)")
	p.Press("Enter")
	sent("Resume this session", "")
	for _, v := range list {
		s.Call("root", 200, "GET", "/v1/sessions/"+v.SessionID+"/settled?wait=20s", "", nil)
	}
	are("needs_human", "needs_human", "needs_human", "needs_human", "stopped", "needs_human")
}
