package everypage_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// withheld are the machines in which what is proposed stays from who may rule.
var withheld = []string{"collapsing", "audited", "permission"}

// all is what a browser has of a page: what is drawn, what was sent to it, by the worker too, and
// what it keeps.
func all(p *desktest.Page) string {
	p.Helper()
	return p.Heard() + desktest.Eval[string](p, `document.documentElement.outerHTML + JSON.stringify([{...localStorage}, {...sessionStorage}])`)
}

// TestBlind: nothing of what is withheld reaches the browser of who may rule, on any page, whatever
// comes in meanwhile; once the word is given it reaches whoever may read.
func TestBlind(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	late := func(who string) *desktest.Page {
		p := desktest.Open(s, who, "/desk/inbox")
		p.Wait(`document.querySelector("header .state").innerText === "live"`)
		s.Start(desktest.Kinds["collapsing"].JSON(), `{"n":2}`, desktest.Proposed("bot", "pay", desktest.Reason), desktest.Proposed("rob", "refuse", "no"))
		p.Wait(`document.querySelector(".news")`)
		return p
	}
	paths := func() (of []string) {
		for _, name := range withheld {
			v := list[name]
			of = append(of, v.Path(), "/desk/sessions/"+v.SessionID)
		}
		return append(of, "/desk/reviews")
	}
	opened := func(p *desktest.Page) {
		p.Settled()
		desktest.Eval[bool](p, `(document.querySelectorAll("details").forEach((d) => (d.open = true)), true)`)
	}
	for _, who := range []string{"carol", "dave", "root", "pair"} {
		p := late(who)
		for _, path := range paths() {
			p.Visit(path)
			opened(p)
			if got := all(p); strings.Contains(got, desktest.Reason) || strings.Contains(got, "rob-says") {
				t.Errorf("%s is shown at %s what is withheld: %s", who, path, around(got, "98765"))
			}
		}
		if who == "carol" {
			p.Visit(list["collapsing"].Path())
			p.Says("2 proposals are withheld")
			p.Visit("/desk/settings") // who has a question open claims it, also once it is gone
		}
	}
	for _, name := range withheld { // once the word is given, all of it is there for whoever may read
		s.Decide("dave", list[name].SessionID, "pay")
	}
	p := desktest.Open(s, "olga", "/desk/inbox")
	for _, name := range withheld {
		p.Visit("/desk/sessions/" + list[name].SessionID)
		unfolded(p, list[name].SessionID)
		if got := all(p); !strings.Contains(got, desktest.Reason) {
			t.Errorf("olga is not shown the log of %s, or the test does not see what is shown", name)
		}
	}
}

// TestReader: who may not rule reads a question and is not offered to answer it; what is withheld
// from those who may is withheld from them, too.
func TestReader(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	p := desktest.Open(s, "olga", list["plain"].Path())
	p.Says("Choosing first available transition")
	p.Says("To decide it takes a key")
	p.Press("1", "Enter", "c", "r")
	if got := desktest.Eval[int](p, `document.querySelectorAll("input[name=choice], article button.main, dialog").length`); got != 0 {
		t.Errorf("who may not rule is offered %d things", got)
	}
	p.Visit(list["collapsing"].Path())
	p.Says("2 proposals are withheld")
	if v := s.Session(list["plain"].SessionID); len(v.History) != 0 {
		t.Errorf("who may not rule has decided: %+v", v.History)
	}
}

// TestBlindWords: the word of a human on a question that takes two is withheld from the other where
// proposals are, and a review never says what was decided.
func TestBlindWords(t *testing.T) {
	s := desktest.Serve(t)
	m := desktest.Machine{Name: "both", Voters: "none", State: `"secondHuman":{"rate":1,"when":"before"}`}
	v := s.Start(m.JSON(), `{"n":1}`)
	s.Call("dave", 200, "POST", "/v1/sessions/"+v.SessionID+"/decisions", `{"transitionName":"pay","reasoning":"dave-says-98765","roundId":"`+v.Question.RoundID+`","questionDigest":"`+v.Question.Digest+`"}`, nil)
	seconded := s.Start(desktest.Kinds["second"].JSON(), `{"n":1}`)
	s.Call("dave", 200, "POST", "/v1/sessions/"+seconded.SessionID+"/decisions", `{"transitionName":"pay","reasoning":"dave-says-98765","roundId":"`+seconded.Question.RoundID+`","questionDigest":"`+seconded.Question.Digest+`"}`, nil)
	p := desktest.Open(s, "carol", "/desk/inbox")
	for _, path := range []string{"/desk/q/" + s.Session(v.SessionID).Question.QuestionID, "/desk/reviews"} {
		p.Visit(path)
		p.Wait(`document.querySelector("[data-question]")`)
		if got := all(p); strings.Contains(got, "98765") {
			t.Errorf("carol is shown at %s what dave has said: %s", path, around(got, "98765"))
		}
	}
}

// around is a text about a part of it.
func around(text, part string) string {
	at := strings.Index(text, part)
	return text[max(0, at-300):min(len(text), at+100)]
}
