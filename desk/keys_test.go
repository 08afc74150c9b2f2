package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestReveal: r shows what is withheld, once it was said what that costs, and it is recorded.
func TestReveal(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Kinds["collapsing"].JSON(), `{"n":1}`, desktest.Proposed("bot", "pay", desktest.Reason), desktest.Proposed("rob", "refuse", "no"))
	p := desktest.Open(s, "carol", v.Path())
	p.Says("2 proposals are withheld")
	p.Press("r")
	p.Says("will not count as evidence")
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog")`)
	if strings.Contains(p.Heard(), desktest.Reason) {
		t.Error("what is withheld came before anybody asked for it")
	}
	p.Press("r")
	p.Wait(`document.querySelector("dialog[open]")`)
	p.Press("Enter")
	p.Says(desktest.Reason)
	var log struct{ Items []struct{ Kind string } }
	s.Call("root", 200, "GET", "/v1/sessions/"+v.SessionID+"/events", "", &log)
	if last := log.Items[len(log.Items)-1].Kind; last != "revealed" {
		t.Errorf("the log ends with %s", last)
	}
}

// TestSkipAndClaim: s goes on to the next question, c says that somebody is at it, and who goes on
// is at it no more.
func TestSkipAndClaim(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", list[0].Path())
	p.Press("c")
	p.Says("Let go")
	claimed := func() string {
		var q struct{ Claim struct{ SpecialistID string } }
		s.Call("dave", 200, "GET", "/v1/inbox/"+list[0].Question.QuestionID, "", &q)
		return q.Claim.SpecialistID
	}
	if who := claimed(); who != "carol" {
		t.Errorf("it is claimed by %q", who)
	}
	p.Press("s") // at once, too
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s`, list[1].Question.QuestionID)
	who := claimed()
	for try := 0; try < 1000 && who != ""; try++ { // it is on its way
		who = claimed()
	}
	if who != "" {
		t.Errorf("skipped, it is claimed by %q", who)
	}
	p.Press("k")
	p.Says("I am at it")
	p.Press("c")
	p.Says("Let go")
	m := p.Tab("/desk/inbox?mine=true")
	m.Wait(`document.querySelectorAll("[data-row]").length === 1 && document.querySelector("[data-row]").dataset.row === %s`, list[0].Question.QuestionID)
	m.Press("/")
	m.Type("nothing is called so")
	m.Says("Nothing waits with these filters")
	m.Close()
	// Who only looks does not claim what somebody else has: the server would refuse it.
	d := desktest.OpenIn(s, "dave", list[0].Path(), `{ const wait = setTimeout; window.setTimeout = (f, ms, ...of) => { const soon = ms === 5000 && !window.claims; return wait(() => (f(...of), soon && (window.claims = true)), soon ? 50 : ms); }; }`)
	d.Says("carol is at it")
	d.Wait(`window.claims`)
	d.Press("1")
	d.Wait(`!document.querySelector("article button.main").disabled`) // a claim is advice
	d.Press("Ctrl+Enter")
	d.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, list[0].SessionID, "pay")
	p.Press("s")
	p.Wait(`document.querySelector("[data-question]").dataset.question === %s`, list[1].Question.QuestionID)
	p.Press("c")
	p.Says("Let go")
	p.Press("c")
	p.Says("I am at it")
}

// TestClaimFollowsTheEye: a claim is renewed as long as somebody looks, who has let go stays so, and a
// page that was opened out of sight claims when it comes into it.
func TestClaimFollowsTheEye(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	claimed := func() string {
		var q struct{ Claim struct{ SpecialistID string } }
		s.Call("dave", 200, "GET", "/v1/inbox/"+v.Question.QuestionID, "", &q)
		return q.Claim.SpecialistID
	}
	p := desktest.OpenIn(s, "carol", v.Path(), `{
		let sight = "hidden";
		Object.defineProperty(document, "visibilityState", { get: () => sight });
		window.see = (is) => { sight = is; document.dispatchEvent(new Event("visibilitychange")); return true; };
		window.turns = 0;
		const [wait, each] = [setTimeout, setInterval];
		window.setTimeout = (f, ms, ...of) => wait(f, ms === 5000 ? 50 : ms, ...of);
		window.setInterval = (f, ms, ...of) => each(ms === 600000 ? () => (window.turns++, f()) : f, ms === 600000 ? 50 : ms, ...of);
		const send = fetch; // one claim is long on its way
		window.fetch = async (...of) => {
			if (window.slow && (of[1]?.method ?? of[0].method) === "PUT") {
				window.slow = false;
				await new Promise((f) => wait(f, 300));
			}
			return send(...of);
		};
	}`)
	p.Wait(`document.querySelector("[data-question]") && window.turns > 2`)
	if who := claimed(); who != "" {
		t.Errorf("nobody has seen it, and %q is at it", who)
	}
	desktest.Eval[bool](p, `window.see("visible")`)
	p.Says("Let go")
	desktest.Eval[bool](p, `window.slow = true`)
	p.Wait(`!window.slow`)
	p.Press("c")
	p.Says("I am at it")
	desktest.Eval[bool](p, `(window.turns = 0, true)`)
	p.Wait(`window.turns > 8`)
	if who := claimed(); who != "" {
		t.Errorf("let go, it is claimed by %q", who)
	}
	p.Says("I am at it")
}

// TestReviewByKeys: a review is answered as a question is, from a list and held back for a while, and says
// what became of it and what that has moved.
func TestReviewByKeys(t *testing.T) {
	s := desktest.Serve(t)
	s.Seed()
	before := len(s.Reviews("carol"))
	p := desktest.Open(s, "carol", "/desk/reviews")
	p.Says("Your answer executes nothing")
	p.Wait(`document.querySelectorAll("[data-row]").length === %s`, before)
	p.Says("Pick an answer")
	shows := func() string {
		return desktest.Eval[string](p, `document.querySelector("[data-question]").dataset.question`)
	}
	p.Set(`{"hold":10}`)
	p.Wait(`document.querySelector("[data-question]")`)
	held := shows()
	p.Press("2") // whichever that is: the order is drawn
	picked := func() string {
		return desktest.Eval[string](p, `document.querySelector("[data-choice] input:checked").value`)
	}
	is := picked()
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-held]")?.dataset.held === %s && document.querySelector("[data-question]").dataset.question !== %s`, held, held)
	p.Press("Escape")
	p.Wait(`!document.querySelector("[data-held]") && document.querySelector("[data-question]")?.dataset.question === %s && document.querySelector("[data-choice] input:checked")?.value === %s`, held, is)
	if got := len(s.Reviews("carol")); got != before {
		t.Errorf("a review that was taken back was sent: %d are left of %d", got, before)
	}
	told := 0
	for n := range before {
		p.Wait(`document.querySelector("[data-question]")`)
		was := shows()
		p.Press(desktest.Eval[string](p, `document.querySelector("[data-choice=refuse] kbd").innerText`))
		is := picked()
		p.Press("Ctrl+Enter")
		p.Wait(`document.querySelector("[data-outcome]")?.dataset.outcome === %s && document.querySelector("[data-moved]") && document.querySelector("[data-question]")?.dataset.question !== %s`, was, was)
		p.Wait(`(([text, is]) => text.includes("You: " + is) && (text.includes("You agree with what was decided: " + is) || /Decided was|What was decided is another/.test(text) && !text.includes("Decided was " + is)))([document.querySelector("[data-outcome]").innerText, %s])`, is)
		if strings.Contains(desktest.Eval[string](p, `document.querySelector("[data-outcome]").innerText`), "Decided was pay") {
			told++
		}
		p.Size(360, 740)
		if wide := desktest.Eval[float64](p, `document.querySelector("[data-outcome] .grow").getBoundingClientRect().width`); wide < 150 {
			t.Errorf("at 360 what became of it is in %.0f px", wide)
		}
		p.Size(1280, 900)
		if got := len(s.Reviews("carol")); got != before-n-1 {
			t.Errorf("after %d reviews %d are left of %d", n+1, got, before)
		}
	}
	p.Says("Nothing is to be reviewed")
	if told == 0 {
		t.Error("it is never said what was decided")
	}
	// Of the session only the round is asked for that was reviewed: others of it may wait for the same human.
	if asked := desktest.Eval[[]string](p, `performance.getEntriesByType("resource").map((e) => new URL(e.name).pathname).filter((path) => /^[/]v1[/]sessions[/][^/]+$/.test(path))`); len(asked) > 0 {
		t.Errorf("whole sessions are asked for: %v", asked)
	}
}

// TestKeys: keys go to pages and say what they do; in a text they are letters, and switched off they
// are nothing.
func TestKeys(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 3)
	p := desktest.Open(s, "carol", "/desk/inbox")
	at := func(n int) {
		t.Helper()
		p.Wait(`document.querySelector("[data-question]")?.dataset.question === %s`, list[n].Question.QuestionID)
	}
	p.Press("j")
	at(1)
	p.Press("j")
	at(2)
	p.Press("k")
	at(1)
	p.Reach("select")
	p.Press("/")
	p.Wait(`document.activeElement.matches("[data-search]")`)
	p.Press("Escape", "g", "r")
	p.Wait(`location.pathname === "/desk/reviews"`)
	p.Press("g", "i")
	p.Wait(`location.pathname === "/desk/inbox"`)
	p.Press("?")
	p.Wait(`document.querySelector("dialog[open]")`)
	p.Says("same answer for all selected")
	p.Wait(`((text) => /\bs\s+skip/.test(text) && /g\s+s\s+Sessions/.test(text) && /g\s+,\s+Settings/.test(text))(document.querySelector("dialog").innerText)`)
	if all := desktest.Eval[int](p, `document.querySelectorAll("dialog dt").length`); all > 25 {
		t.Errorf("%d keys are told of: those of pages that were left are among them", all)
	}
	p.Press("g", "r", "Escape")
	p.Wait(`!document.querySelector("dialog") && location.pathname === "/desk/inbox"`)

	at(0)
	p.Reach("textarea")
	p.Type("xsbcrj12?gi")
	p.Wait(`document.querySelector("textarea").value === "xsbcrj12?gi"`)
	at(0)
	if got := desktest.Eval[int](p, `document.querySelectorAll("input:checked, dialog").length`); got != 0 {
		t.Errorf("letters of a text have done %d things", got)
	}
	p.Set(`{"keys":false}`)
	at(0)
	p.Press("1", "j", "x", "?", "c", "g", "r")
	if got := desktest.Eval[int](p, `document.querySelectorAll("input:checked, dialog").length`); got != 0 || p.Path() != "/desk/inbox" {
		t.Errorf("keys that are off have done %d things, at %s", got, p.Path())
	}
	p.Reach("[data-choice] input")
	p.Press("Space")
	p.Wait(`document.querySelector("[data-choice=pay] input").checked`)
}
