package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestDecidedMeanwhile: who holds a word on a question that another decides is told who decided what,
// wherever they are by then, and keeps their text.
func TestDecidedMeanwhile(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	carol := desktest.Open(s, "carol", list[0].Path())
	dave := desktest.Open(s, "dave", list[0].Path())
	carol.Expect("409 /v1/sessions/"+list[0].SessionID, "404 /v1/inbox/"+list[0].Question.QuestionID)
	carol.Press("1")
	carol.Reach("textarea")
	carol.Type("carol's reason")
	carol.Reach("button.main")
	carol.Press("Enter")
	carol.Wait(`document.querySelector("[data-held]")`)
	dave.Press("2", "Ctrl+Enter")
	dave.Wait(`document.querySelector("[data-outcome]")`)
	carol.Wait(`document.querySelector("[data-refused]")?.innerText.includes("dave decided: refuse")`)
	decided(t, s, list[0].SessionID, "refuse")
	carol.Reach("[data-refused] a")
	carol.Press("Enter")
	carol.Says("dave decided: refuse")
	carol.Wait(`document.querySelector("textarea")?.value === "carol's reason" && document.querySelector("button.main").disabled`)
	carol.Visit(list[0].Path()) // as somebody who comes back later
	carol.Says("dave decided: refuse")
	carol.Says("carol's reason")
	open(t, s, list[1].SessionID)
}

// TestDecidedWhileOpen: who has a question open that another decides is told, and cannot send.
func TestDecidedWhileOpen(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Press("1")
	p.Reach("textarea")
	p.Type("half a sen")
	s.Decide("dave", v.SessionID, "pay")
	p.Says("dave decided: pay")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("textarea").value === "half a sen" && document.querySelector("button.main").disabled && !document.querySelector("[data-held]")`)
	s.Call("root", 200, "POST", "/v1/sessions/"+s.Starts(desktest.Alone, 1)[0].SessionID+"/cancel", `{"note":"not needed"}`, nil)
}

// TestDecidedUnderTheHand: where the address names no question the one that is shown stays when another
// decides it, with what was typed; nothing that is typed then is said of another.
func TestDecidedUnderTheHand(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("[data-question]")?.dataset.question === %s`, list[0].Question.QuestionID)
	p.Press("2")
	p.Reach("textarea")
	p.Type("half a sen")
	s.Decide("dave", list[0].SessionID, "pay")
	p.Says("dave decided: pay")
	p.Type("tence.")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s && document.querySelector("textarea").value === "half a sentence." && document.querySelector("button.main").disabled && !document.querySelector("[data-held]")`, list[0].Question.QuestionID)
	open(t, s, list[1].SessionID)
	p.Reach("article header a")
	p.Press("j")
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s && document.querySelector("textarea").value === ""`, list[1].Question.QuestionID)
}

// TestReviewedMeanwhile: of two who look at the same closed round the first has said it. The other is told
// so, keeps their text, and sees neither what was decided nor what the first has said.
func TestReviewedMeanwhile(t *testing.T) {
	s := desktest.Serve(t)
	second := desktest.Kinds["second"]
	for range 3 {
		v := s.Start(second.JSON(), `{"n":1}`)
		s.Decide("erin", v.SessionID, "pay")
	}
	at := s.Reviews("carol")
	if len(at) != 3 {
		t.Fatalf("carol is to review %v", at)
	}
	says := func(id string) {
		s.Call("dave", 200, "POST", "/v1/reviews/"+id, `{"transitionName":"pay","reasoning":"`+desktest.Reason+`"}`, nil)
	}
	outcome := func(p *desktest.Page) {
		t.Helper()
		for _, word := range []string{"decided: pay", desktest.Reason} {
			if strings.Contains(p.Heard(), word) || strings.Contains(p.Text(), word) {
				t.Errorf("the page has %q", word)
			}
		}
	}
	p := desktest.Open(s, "carol", "/desk/reviews")
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelector("[data-question]")?.dataset.question === %s`, at[0])
	p.Press("1")
	p.Reach("textarea")
	p.Type("mine")
	says(at[0])
	p.Wait(`document.querySelector("[data-over]") && document.querySelector("button.main").disabled`)
	p.Type(" own")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s && document.querySelector("textarea").value === "mine own" && !document.querySelector("[data-held]")`, at[0])
	p.Visit("/desk/reviews/" + at[0])
	p.Says("It is no longer asked")
	p.Says("mine own")

	// In the hold, and from elsewhere: what leads back leads to the review.
	p.Visit("/desk/reviews/" + at[1])
	p.Press("1")
	p.Reach("textarea")
	p.Type("second")
	p.Expect("409 /v1/reviews/" + at[1])
	p.Reach("button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	says(at[1])
	p.Wait(`document.querySelector("[data-refused]")?.innerText.includes("Somebody else has looked at it")`)
	p.Reach("[data-refused] a")
	p.Press("Enter")
	p.Wait(`location.pathname === %s`, "/desk/reviews/"+at[1])
	p.Says("second")
	p.Visit("/desk/reviews/" + at[2] + "?machine=second")
	p.Press("2", "Enter")
	p.Wait(`document.querySelector("[data-held]")`)
	p.Visit("/desk/settings") // before it was sent
	p.Reach("[data-unsent] a")
	p.Press("Enter")
	p.Wait(`location.pathname === %s && document.querySelector("[data-choice] input:checked")`, "/desk/reviews/"+at[2])
	p.Expect("404 /v1/inbox/" + at[2])
	p.Visit("/desk/q/" + at[2])
	p.Wait(`location.pathname === %s && document.querySelector("[data-question]")`, "/desk/reviews/"+at[2])
	outcome(p)
}

// TestReviewFarBack: a review that the first page of them does not have is there by its address, and what is
// filtered stays while one goes through the list.
func TestReviewFarBack(t *testing.T) {
	s := desktest.Serve(t)
	for range 52 {
		s.Start(desktest.Kinds["looked"].JSON(), `{"n":1}`, desktest.Proposed("bot", "pay", "it is"))
	}
	var far struct{ Items []struct{ QuestionID string } }
	s.Call("carol", 200, "GET", "/v1/reviews?limit=200", "", &far)
	last := far.Items[len(far.Items)-1].QuestionID
	p := desktest.Open(s, "carol", "/desk/reviews/"+last+"?machine=looked")
	p.Wait(`document.querySelector("[data-question]")?.dataset.question === %s && document.querySelectorAll("[data-row]").length === 50`, last)
	p.Press("j")
	p.Wait(`document.querySelector("[data-question]")?.dataset.question === document.querySelector("[data-row]").dataset.row && location.search === "?machine=looked"`)
}

// TestChangedMeanwhile: a question that changes while somebody writes is shown beside what they
// wrote, with what is new; nothing is picked any more, and for a second no digit picks.
func TestChangedMeanwhile(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["approved"].JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Press("1")
	p.Reach("textarea")
	p.Type("looks right")
	desktest.Eval[bool](p, `(document.activeElement.blur(), true)`)
	digest := desktest.Eval[string](p, `document.querySelector("[data-question]").dataset.digest`)
	s.Decide("dave", v.SessionID, "pay")
	p.Wait(`document.querySelector("[data-changed]") && document.querySelector("[data-question]").dataset.digest !== %s`, digest)
	if got := desktest.Eval[string](p, `JSON.stringify([document.querySelector("textarea").value, document.querySelectorAll("input[name=choice]:checked").length, document.querySelector("input[name=choice]").disabled])`); got != `["looks right",0,true]` {
		t.Errorf("text, choices that are picked, and whether they are off: %s", got)
	}
	p.Press("2", "Enter")
	p.Says("What is new:")
	p.Says("1 of 2 approvals")
	p.Wait(`!document.querySelector("input[name=choice]").disabled`)
	if got := desktest.Eval[int](p, `document.querySelectorAll("input[name=choice]:checked, [data-held]").length`); got != 0 {
		t.Error("a digit has picked what was not seen")
	}
	p.Press("1", "Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "pay")
}

// TestChangedInHold: a word on a question that changes while it is held is not taken, and its text
// waits beside the question as it is by then.
func TestChangedInHold(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["approved"].JSON(), `{"n":1}`)
	other := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", v.Path())
	p.Expect("409 /v1/sessions/" + v.SessionID)
	p.Press("2")
	p.Reach("textarea")
	p.Type("no receipt")
	p.Reach("button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]") && document.querySelector("[data-question]").dataset.question === %s`, other.Question.QuestionID)
	s.Decide("dave", v.SessionID, "pay")
	p.Wait(`document.querySelector("[data-refused]")?.innerText.includes("has changed")`)
	p.Reach("[data-refused] a")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-changed]") && document.querySelector("textarea").value === "no receipt"`)
	p.Says("1 of 2 approvals")
	if v := s.Session(v.SessionID); v.Status != "needs_human" {
		t.Errorf("the word was taken: %+v", v)
	}
}

// TestDraftOfAnother: a draft belongs to the question as it was seen. Who comes back to one that has
// changed finds their text, and nothing picked.
func TestDraftOfAnother(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["approved"].JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Press("1")
	p.Reach("textarea")
	p.Type("looks right")
	p.Wait(`Object.keys(sessionStorage).some((k) => k.includes("draft") && sessionStorage[k].includes("looks right"))`)
	p.Visit("/desk/settings")
	s.Decide("dave", v.SessionID, "pay")
	p.Visit(v.Path())
	p.Wait(`document.querySelector("[data-changed]") && document.querySelector("textarea").value === "looks right"`)
	p.Press("Ctrl+Enter")
	if got := desktest.Eval[int](p, `document.querySelectorAll("input[name=choice]:checked, [data-held]").length`); got != 0 {
		t.Error("what was picked of the question as it was is picked of it as it is")
	}
	if now := s.Session(v.SessionID); now.Status != "needs_human" {
		t.Errorf("the word was taken: %+v", now)
	}
}

// TestTakeBackPending: a word that waits for a second one is taken back from the foot; where that cannot be said, the foot
// says so, and it can be said again.
func TestTakeBackPending(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["approved"].JSON(), `{"n":1}`)
	rulings := func() int {
		t.Helper()
		var q struct {
			Rulings []struct{ SpecialistID string }
		}
		s.Call("dave", 200, "GET", "/v1/inbox/"+v.Question.QuestionID, "", &q)
		return len(q.Rulings)
	}
	p := desktest.Open(s, "carol", v.Path())
	p.Press("1", "Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome] button")`)
	if n := rulings(); n != 1 {
		t.Fatalf("%d words wait, want 1", n)
	}
	press := func() {
		desktest.Eval[bool](p, `([...document.querySelectorAll("[data-outcome] button")].find((b) => b.innerText === "Take it back").click(), true)`)
	}
	p.Lose()
	press()
	p.Wait(`document.querySelector("[data-refused]")`)
	p.Find()
	press()
	p.Wait(`![...document.querySelectorAll("[data-outcome] button")].some((b) => b.innerText === "Take it back")`)
	if n := rulings(); n != 0 {
		t.Errorf("%d words wait, want none", n)
	}
	open(t, s, v.SessionID)
}
