package everypage_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestReadsChangeNothing: whoever only looks changes nothing, at whichever page, whatever they unfold:
// the store is the same afterwards, byte for byte, and so is what the server keeps beside it. A word that
// is given, and that somebody is at a question, makes it another one.
func TestReadsChangeNothing(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Seed()
	s.PublishSample()
	pages := []string{"/desk/inbox", "/desk/inbox?machine=plain", "/desk/reviews", "/desk/sessions", "/desk/sessions?status=needs_human&q=pl", "/desk/machines", "/desk/edit", "/desk/edit?machine=refund-desk", "/desk/settings", "/desk/nowhere", "/desk/q/none.1", "/desk/sessions/none"}
	for _, v := range list {
		if v.Question.QuestionID != "" {
			pages = append(pages, v.Path())
		}
	}
	for _, id := range s.Reviews("erin") {
		pages = append(pages, "/desk/reviews/"+id)
	}
	for _, tab := range tabs {
		pages = append(pages, "/desk/machines/refund-desk"+tab, "/desk/machines/collapsing"+tab)
	}
	before := s.Stored()
	// carol looks as a program does: her page would say that she is at a question.
	for _, path := range []string{"/v1/inbox", "/v1/inbox/" + list["plain"].Question.QuestionID, "/v1/reviews", "/v1/sessions/" + list["plain"].SessionID, "/v1/sessions/" + list["plain"].SessionID + "/explain"} {
		s.Call("carol", 200, "GET", path, "", nil)
		if now := s.Stored(); now != before {
			t.Fatalf("GET %s by carol has changed the store: %s, and was %s", path, now, before)
		}
	}
	for _, who := range []string{"olga", "vera"} {
		p := desktest.Open(s, who, "/desk/inbox")
		p.Expect("404 /v1/", "403 /v1/")
		for _, path := range pages {
			p.Visit(path)
			if now := s.Stored(); now != before {
				t.Fatalf("that %s looks at %s has changed the store: %s, and was %s", who, path, now, before)
			}
		}
		for _, name := range []string{"approved", "collapsing", "audit", "adjudication"} {
			p.Visit("/desk/sessions/" + list[name].SessionID)
			unfolded(p, list[name].SessionID)
			if now := s.Stored(); now != before {
				t.Fatalf("that %s looks at all of %s has changed the store: %s, and was %s", who, name, now, before)
			}
		}
	}
	s.Call("carol", 200, "PUT", "/v1/inbox/"+list["plain"].Question.QuestionID+"/claim", "{}", nil)
	claimed := s.Stored()
	if claimed == before {
		t.Error("a claim has changed nothing, or the test does not see what is kept")
	}
	s.Decide("carol", list["plain"].SessionID, "pay")
	if s.Stored() == claimed {
		t.Error("a word has changed nothing, or the test does not see what is stored")
	}
}
