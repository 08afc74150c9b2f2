package desk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// selected selects the first n questions of the list, by keys.
func selected(p *desktest.Page, n int) {
	p.Helper()
	p.Press("x")
	for range n - 1 {
		was := p.Path()
		p.Press("Shift+ArrowDown")
		p.Wait(`location.pathname !== %s`, was)
	}
	p.Wait(`document.querySelectorAll("li input:checked").length === %s`, n)
}

// TestBulk: one answer goes to exactly those that the dialog lists; of 14 of which another client
// has decided three meanwhile eleven are decided, and the dialog says so.
func TestBulk(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 16)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Expect("409 /v1/sessions/")
	selected(p, 14)
	p.Press("b")
	p.Wait(`document.querySelectorAll("dialog[open] [data-bulk]").length === 14`)
	p.Says("Decide these 14")
	for i, v := range list[:3] {
		s.Decide("dave", v.SessionID, []string{"refuse", "pay", "refuse"}[i])
	}
	p.Press("1", "Enter")
	p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText !== "" && c.innerText !== "waits")`)
	outcomes := desktest.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll("[data-bulk]")].map((r) => [r.dataset.bulk, r.querySelector("td:last-child").innerText]))`)
	counts := map[string]int{}
	for i, v := range list {
		now := s.Session(v.SessionID)
		said := outcomes[v.Question.QuestionID]
		counts[strings.SplitN(said, ":", 2)[0]]++
		want := map[bool]string{true: "decided"}[len(now.History) == 1 && now.History[0].TransitionName == "pay" && i >= 3]
		if want == "" && i < 3 {
			want = "changed"
		}
		if !strings.HasPrefix(said, want) || i >= 14 && said != "" || i >= 14 && len(now.History) != 0 {
			t.Errorf("%s is %s, %+v, and the dialog says %q", v.Subject, now.Status, now.History, said)
		}
	}
	if got := fmt.Sprint(counts); got != "map[:2 changed meanwhile:3 decided:11]" {
		t.Errorf("the dialog says %s", got)
	}
	decided(t, s, list[1].SessionID, "pay") // by dave
	if how := ruled(s, list[5].SessionID); !how.Bulk {
		t.Error("the log does not say that a word was one of many")
	}
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog")`)
}

// ruled returns what the log says of how a human has ruled on a session.
func ruled(s *desktest.Server, id string) (how struct {
	Looked float64
	Bulk   bool
}) {
	s.Helper()
	var log struct {
		Items []struct {
			Kind string
			Data json.RawMessage
		}
	}
	s.Call("root", 200, "GET", "/v1/sessions/"+id+"/events", "", &log)
	for _, e := range log.Items {
		if e.Kind == "ruled" || e.Kind == "executed" {
			_ = json.Unmarshal(e.Data, &how) // what is missing is none
		}
	}
	return how
}

// TestBulkRefuses: what is withheld, final or of another state is not decided in bulk.
func TestBulkRefuses(t *testing.T) {
	for _, pair := range [][2]desktest.Machine{{desktest.Alone, desktest.Kinds["plain"]}, {desktest.Kinds["collapsing"], desktest.Kinds["collapsing"]}} {
		s := desktest.Serve(t)
		for _, m := range pair {
			s.Starts(m, 1)
		}
		p := desktest.Open(s, "carol", "/desk/inbox")
		selected(p, 2)
		p.Press("b")
		p.Says("can be decided at once, if nothing is withheld")
		p.Press("1", "Enter")
		p.Wait(`!document.querySelector("dialog button.main")`)
		p.Press("Escape")
	}
	s := desktest.Serve(t)
	other := desktest.Alone // of another version, which has the same state
	other.Transitions = `"pay":{"target":"refused","irreversible":false},"refuse":{"target":"paid","irreversible":false}`
	s.Starts(desktest.Alone, 1)
	s.Starts(other, 1)
	p := desktest.Open(s, "carol", "/desk/inbox")
	selected(p, 2)
	p.Press("b")
	p.Says("can be decided at once, if nothing is withheld")
	s = desktest.Serve(t)
	list := s.Starts(desktest.Kinds["final"], 2)
	p = desktest.Open(s, "carol", "/desk/inbox")
	selected(p, 2)
	p.Press("b")
	p.Wait(`document.querySelector("dialog[open] [data-choice=keep]") && !document.querySelector("dialog [data-choice=erase]")`)
	p.Press("1", "Enter")
	p.Wait(`[...document.querySelectorAll("[data-bulk] td:last-child")].every((c) => c.innerText === "decided")`)
	for _, v := range list {
		decided(t, s, v.SessionID, "keep")
	}
}
