package desk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/desk/desktest"
)

// TestManyChoices: where choices are found by typing, a digit is of the choice that it stands beside,
// what is picked stays in sight, and Enter in the field sends nothing.
func TestManyChoices(t *testing.T) {
	s := desktest.Serve(t)
	var of []string
	for i := range 13 {
		of = append(of, fmt.Sprintf(`"opt%02d":{"target":%q,"irreversible":false}`, i+1, []string{"paid", "refused"}[i%2]))
	}
	v := s.Start(desktest.Machine{Name: "many", Voters: "none", Transitions: strings.Join(of, ",")}.JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Press("1")
	p.Wait(`document.querySelector("[data-choice=opt01] input").checked`)
	p.Reach("fieldset input[type=search]")
	p.Type("opt11")
	p.Wait(`document.querySelectorAll("[data-choice]").length === 2 && document.querySelector("[data-choice=opt01]") && !document.querySelector("[data-choice=opt11] kbd")`)
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-choice=opt11] input").checked`)
	open(t, s, v.SessionID)
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "opt11")
}

// TestEditorKeys: in the editor letters are text, F8 comes to each problem, and what may be written at a
// place is offered there.
func TestEditorKeys(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	p.Reach(".text .code")
	p.Press("Ctrl+End")
	p.Type("# original integrity? gs ? b : c")
	text := `JSON.parse(sessionStorage["dialai.draft.edit."]).reason`
	p.Wait(text + `.endsWith("# original integrity? gs ? b : c")`)
	if got := p.Path(); got != "/desk/edit" || desktest.Eval[bool](p, `!!document.querySelector("dialog")`) {
		t.Errorf("what is typed opens %s, or a dialog", got)
	}
	p.Press("Ctrl+Home", "Enter", "ArrowUp")
	p.Type("foo: 1")
	p.Press("Enter")
	p.Type("bar: 2")
	p.Says("2 problems")
	line := `(() => { const r = document.querySelector(".code").shadowRoot; const lines = [...r.querySelectorAll(".cm-line")]; return lines.findIndex((l) => l.classList.contains("cm-activeLine")) + 1; })()`
	seen := ""
	for range 3 {
		p.Press("F8")
		seen += fmt.Sprint(desktest.Eval[int](p, line), " ")
	}
	if seen != "1 2 1 " {
		t.Errorf("F8 comes to the lines %s, want 1 2 1", seen)
	}
	p.Type("init")
	p.Wait(`(() => { const e = document.querySelector(".code").shadowRoot.querySelector(".cm-tooltip-autocomplete"); return e && e.textContent.includes("initialState") && !e.textContent.includes("prompt"); })()`)
}

// TestOutcome: once a round is closed it says what the engine would have picked and how sure it was; whoever
// has read it closes it.
func TestOutcome(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "carol", "/desk/inbox")
	for arbiter, says := range map[string]string{"bayes": "The engine’s pick: pay, p 0.", "alignmentMargin": "The engine’s pick: pay, margin 0"} {
		m := desktest.Machine{Name: "outcome " + arbiter, State: `"consensusThreshold":1`}
		begin := func(rob string) desktest.Session {
			return s.Start(strings.Replace(m.JSON(), `"alignmentMargin"}`, `"`+arbiter+`"}`, 1), `{"n":1}`, desktest.Proposed("bot", "pay", ""), desktest.Proposed("rob", rob, ""))
		}
		s.Decide("carol", begin("pay").SessionID, "pay") // both are right
		v := begin("refuse")
		p.Visit(v.Path())
		p.Press("1", "Ctrl+Enter")
		p.Wait(`document.querySelector("[data-outcome]")?.innerText.includes(%s)`, says)
		p.Press("Escape")
		p.Wait(`!document.querySelector("[data-outcome]")`)
	}
}

// TestNewSession: where a machine does not say what its sessions are about, the form for a new one has
// the members of the newest.
func TestNewSession(t *testing.T) {
	s := desktest.Serve(t)
	s.Start(desktest.Machine{Name: "plain"}.JSON(), `{"amount":20,"reason":"late","paid":false}`)
	s.Publish("plain", "plain.json", desktest.Machine{Name: "plain"}.JSON())
	p := desktest.Open(s, "root", "/desk/sessions?machine=plain")
	p.Press("n")
	p.Reach("#new-amount")
	p.Type("80")
	p.Reach("#new-reason")
	p.Type("broken")
	p.Reach("dialog .main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-round]")`)
	var made struct{ MetaJSON json.RawMessage }
	s.Call("root", 200, "GET", "/v1/sessions/"+strings.TrimPrefix(p.Path(), "/desk/sessions/"), "", &made)
	if string(made.MetaJSON) != `{"amount":80,"reason":"broken"}` {
		t.Errorf("the session is about %s", made.MetaJSON)
	}
}

// TestReviewGone: an address of a review that there is not, any more, shows no other one.
func TestReviewGone(t *testing.T) {
	s := desktest.Serve(t)
	s.Seed()
	p := desktest.Open(s, "carol", "/desk/reviews")
	p.Wait(`document.querySelector("[data-question]")`)
	p.Visit("/desk/reviews/none.1")
	p.Wait(`document.querySelector("[data-state=empty] a")`)
	if desktest.Eval[bool](p, `!!document.querySelector("[data-question], [data-choice]")`) {
		t.Error("another review is shown")
	}
}

// TestCountsAll: how much waits is told of all questions, whatever the list is filtered by.
func TestCountsAll(t *testing.T) {
	s := desktest.Serve(t)
	s.Starts(desktest.Alone, 2)
	s.Starts(desktest.Machine{Name: "loans", Voters: "none"}, 3)
	p := desktest.Open(s, "carol", "/desk/inbox?machine=loans")
	p.Wait(`document.querySelectorAll("[data-row]").length === 3 && document.querySelector("header nav .count").innerText === "5" && document.title.startsWith("(5) ")`)
	p.Size(360, 780)
	if desktest.Eval[bool](p, `[...document.querySelectorAll("[data-row] input")].some((e) => e.checkVisibility())`) {
		t.Error("a telephone offers bulk")
	}
}

// TestDraftMoved: a text that was begun from an older version says so when it is shown again, and
// takes nothing away that nobody has compared it with.
func TestDraftMoved(t *testing.T) {
	s := desktest.Serve(t)
	c, err := client.New(client.Config{BaseURL: s.URL, Key: s.Key("root")})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Publish(t.Context(), "alone", []byte(desktest.Alone.JSON()), "")
	if err != nil {
		t.Fatal(err)
	}
	p := desktest.Open(s, "root", "/desk/edit?machine=alone")
	p.Says("sound")
	p.Reach(".text .code")
	p.Press("Ctrl+End")
	p.Type(" ")
	p.Wait(`sessionStorage["dialai.draft.edit.alone"]`)
	if _, err := c.Publish(t.Context(), "alone", []byte(desktest.Machine{Name: "alone", Voters: "none", Prompt: `"Another?"`}.JSON()), first.MachineDigest); err != nil {
		t.Fatal(err)
	}
	p.Visit("/desk/settings")
	p.Visit("/desk/edit?machine=alone")
	p.Says("Version 2 was published after you began.")
	p.Expect("412 /v1/machines/alone")
	p.Says("sound")
	p.Reach("main .bar button.main")
	p.Press("Enter")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-both]")?.innerText.includes("Another?")`)
	if now, err := c.Machine(t.Context(), "alone"); err != nil || now.Version != 2 || !strings.Contains(string(now.Definition), "Another?") {
		t.Errorf("it is version %d, %v", now.Version, err)
	}
}

// TestDeepFacts: what is nested deeply is folded, and moves nothing off the page.
func TestDeepFacts(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Alone.JSON(), `{"n":1,"deep":`+strings.Repeat(`{"d":`, 50)+`1`+strings.Repeat(`}`, 50)+`}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("[data-question] details")`)
	for _, open := range []bool{false, true} {
		for _, width := range []int64{1280, 360} {
			p.Size(width, 900)
			if got := desktest.Eval[int64](p, `(document.querySelectorAll("details").forEach((d) => (d.open = %s)), document.documentElement.scrollWidth)`, open); got > width {
				t.Errorf("the page is %d wide in a window of %d, unfolded %v", got, width, open)
			}
		}
	}
}
