package desk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// beside opens the store of a server in another process than its own, as dialai permit does.
func beside(t *testing.T, s *desktest.Server, f func(session.Store) error) {
	t.Helper()
	st, err := store.OpenSQLite(t.Context(), s.StorePath(), store.SQLiteOptions{})
	if err == nil {
		err = f(st)
		_ = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rounds is a machine of which a session goes on from round to round for as long as a human says again.
var rounds = desktest.Machine{Name: "rounds", Voters: "none", Transitions: `"again":{"target":"ask","irreversible":false},"pay":{"target":"paid","irreversible":false}`}

// TestReading: where a session stands is said at once; what has happened meanwhile moves nothing under
// the eyes of somebody who reads, and comes when they ask for it. Who reads nothing in particular sees it.
func TestReading(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(rounds.JSON(), `{"n":1}`)
	s.Decide("carol", v.SessionID, "again")
	p := desktest.Open(s, "root", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	p.Wait(`document.querySelector("[data-why='2']") && document.querySelectorAll("[data-round]").length === 2`)
	s.Decide("carol", v.SessionID, "again")
	p.Wait(`document.querySelectorAll("[data-round]").length === 3`)
	p.Reach("[data-round='2'] button")
	p.Press("Enter")
	p.Wait(`location.search === "?round=2" && document.querySelector("[data-why='2']")`)
	was := desktest.Eval[string](p, `document.querySelector(".rounds").innerHTML.replace(/\d+ (s|min)/g, "") + document.querySelector("[data-why]").innerHTML + document.querySelector(".log").innerText`)
	s.Decide("carol", v.SessionID, "pay")
	p.Wait(`document.querySelector("[data-ended]")?.innerText.includes("pay → paid · by carol")`)
	p.Wait(`/^\d+ new$/.test(document.querySelector(".news [data-news]")?.innerText)`)
	if now := desktest.Eval[string](p, `document.querySelector(".rounds").innerHTML.replace(/\d+ (s|min)/g, "") + document.querySelector("[data-why]").innerHTML + document.querySelector(".log").innerText`); now != was {
		t.Errorf("under the eyes of who reads\n%s\nbecame\n%s", was, now)
	}
	p.Reach(".news [data-news]")
	p.Press("Enter")
	p.Wait(`!document.querySelector(".news [data-news]") && document.querySelector("[data-round='3']").innerText.includes("pay") && document.querySelector("[data-why='2']")`)
}

// TestRetract: whose ruling it was can take back what it has taught, with a reason; what was executed
// stays. Nobody else is offered that.
func TestRetract(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	s.Decide("carol", v.SessionID, "pay")
	p := desktest.Open(s, "dave", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector("[data-why]")?.innerText.includes("carol")`)
	if strings.Contains(p.Text(), "It was a mistake") {
		t.Error("dave is offered to take back what carol has said")
	}
	p = desktest.Open(s, "carol", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector("[data-why] button")?.innerText.startsWith("It was a mistake")`)
	p.Reach("[data-why] button")
	p.Press("Enter")
	p.Says("pay stays executed: the session went on to paid.")
	p.Wait(`document.querySelector("dialog button.main").disabled`)
	p.Reach("dialog textarea")
	p.Type("I read the wrong invoice")
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`!document.querySelector("dialog") && document.querySelector("[data-why]").innerText.includes("carol has taken it back. I read the wrong invoice")`)
	p.Wait(`![...document.querySelectorAll("[data-why] button")].some((b) => b.innerText.startsWith("It was a mistake"))`)
	var now struct {
		History []struct{ TransitionName, Retracted string }
	}
	s.Call("root", 200, "GET", "/v1/sessions/"+v.SessionID, "", &now)
	if len(now.History) != 1 || now.History[0].TransitionName != "pay" || now.History[0].Retracted != "I read the wrong invoice" {
		t.Errorf("the session has %+v", now.History)
	}
}

// TestPermissionsOf: an undertaking leads to the sessions in which its agents asked to be allowed
// something, and to no others.
func TestPermissionsOf(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Start(desktest.Machine{Name: "undertaking", Voters: "none"}.JSON(), `{"n":1}`)
	asked := s.Start(desktest.Kinds["permission"].JSON(), `{"undertaking":`+desktest.Quoted(v.SessionID)+`}`)
	s.Start(desktest.Kinds["permission"].JSON(), `{"tool":"Other"}`)
	id, err := session.ParseID(v.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	p := desktest.Open(s, "root", "/desk/sessions/"+v.SessionID+"?tab=permissions")
	p.Says("have not asked to be allowed anything")
	beside(t, s, func(st session.Store) error {
		data, _ := json.Marshal(map[string]any{"as": "orchestrator", "number": 1, "tool": "Bash", "session": asked.SessionID, "allowed": false})
		return st.AppendAgentLog(t.Context(), id, 0, session.AgentEvent{At: 1, Kind: "text"}, session.AgentEvent{At: 2, Kind: "permission", Data: json.RawMessage(`{}`)}, session.AgentEvent{At: 3, Kind: "permission", Data: data})
	})
	p.Visit("/desk/sessions/" + v.SessionID + "?tab=permissions")
	p.Wait(`[...document.querySelectorAll(".below li")].map((l) => l.innerText.replace(/\s+/g, " ")).join("|").match(/withheld\|.*orchestrator 1 Bash refused$/)`) // of what is withheld nothing is told
	p.Reach(".below li a")
	p.Press("Enter")
	p.Wait(`location.pathname === %s`, "/desk/sessions/"+asked.SessionID)
	p.Wait(`[...document.querySelectorAll("a")].find((a) => a.pathname === %s)?.innerText === "The undertaking that it is part of"`, "/desk/sessions/"+v.SessionID)
}

// TestLongCall: what a model was asked is cut where it is very long, and shown whole to who wants it.
func TestLongCall(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	beside(t, s, func(st session.Store) error {
		return st.AppendAudit(t.Context(), specialist.AuditEntry{AuditEntryID: "a", SessionID: v.SessionID, Round: 1, SpecialistID: "bot", ResolvedModel: "m", ResponseStatus: 200, RequestBody: strings.Repeat("word ", 20_000) + "the end", ResponseBody: "short"})
	})
	p := desktest.Open(s, "root", "/desk/sessions/"+v.SessionID+"?tab=audit")
	p.Wait(`document.querySelector(".below summary")`)
	p.Reach(".below summary")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll(".below pre").length === 2 && document.querySelector(".below pre").innerText.length === 65536`)
	p.Reach(".below pre + button")
	p.Press("Enter")
	p.Wait(`document.querySelector(".below pre").innerText.endsWith("the end") && !document.querySelector(".below pre + button")`)
}

// TestOfflineOrders: while the server cannot be reached, nothing is sent from a dialog either, and what
// is typed stays.
func TestOfflineOrders(t *testing.T) {
	s := desktest.Serve(t)
	list := s.Starts(desktest.Alone, 2)
	p := desktest.Open(s, "carol", "/desk/inbox")
	p.Wait(`document.querySelector("header .state").innerText === "live"`)
	selected(p, 2)
	p.Press("b")
	p.Wait(`document.querySelector("dialog[open] [data-choice=pay]")`)
	p.Press("1")
	p.Wait(`!document.querySelector("dialog button.main").disabled`)
	p.Lose()
	p.Wait(`document.querySelector("dialog button.main").disabled && document.querySelector("dialog").innerText.includes("The server cannot be reached")`)
	p.Press("Enter")
	p.Find()
	p.Wait(`!document.querySelector("dialog button.main").disabled`)
	for _, v := range list {
		open(t, s, v.SessionID)
	}
	s.PublishSample()
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	p = desktest.Open(s, "root", "/desk/inbox")
	for path, opens := range map[string]string{"/desk/sessions": "+ New session", "/desk/machines/refund-desk/simulate": ""} {
		p.Visit(path)
		p.Wait(`document.querySelector("header .state").innerText === "live"`)
		if opens != "" {
			desktest.Eval[bool](p, `([...document.querySelectorAll("button")].find((b) => b.innerText.includes("New session")).click(), true)`)
			p.Wait(`[...document.querySelector("dialog[open] select").options].some((o) => o.value === "alone")`)
			desktest.Eval[bool](p, `((e) => (e.value = "alone", e.dispatchEvent(new Event("change", { bubbles: true })), true))(document.querySelector("dialog select"))`)
			p.Wait(`document.querySelector("#new-n")`) // as the newest one has it
			p.Reach("#new-n")
			p.Type("1")
		}
		p.Wait(`document.querySelector("dialog button.main, form button.main") && !document.querySelector("dialog button.main, form button.main").disabled`)
		p.Lose()
		p.Wait(`document.querySelector("dialog button.main, form button.main").disabled`)
		p.Find()
		p.Wait(`!document.querySelector("dialog button.main, form button.main").disabled`)
	}
}

// TestReviewsStay: what somebody else has reviewed stays where it stands, and says so; without a server
// the list says of when it is.
func TestReviewsStay(t *testing.T) {
	s := desktest.Serve(t)
	for range 3 {
		s.Start(desktest.Kinds["looked"].JSON(), `{"n":1}`, desktest.Proposed("bot", "pay", ""))
	}
	ids := s.Reviews("dave")
	p := desktest.Open(s, "carol", "/desk/reviews/"+ids[0])
	p.Wait(`document.querySelector("header .state").innerText === "live" && document.querySelectorAll("[data-row]").length === 3`)
	s.Call("dave", 200, "POST", "/v1/reviews/"+ids[1], `{"transitionName":"pay"}`, nil)
	p.Wait(`[...document.querySelectorAll("[data-row]")].map((r) => r.innerText.includes("decided")).join() === "false,true,false"`)
	p.Press("s") // and it is passed over
	p.Wait(`location.pathname === %s`, "/desk/reviews/"+ids[2])
	p.Lose()
	p.Wait(`/What you see is of .*; nothing can be sent/.test(document.body.innerText)`)
	p.Find()
	p.Wait(`!/nothing can be sent/.test(document.body.innerText)`)
}

// TestPlaces: a filter offers the machines that there are, and the states of the one that is chosen, also
// of which nothing is in the list.
func TestPlaces(t *testing.T) {
	s := desktest.Serve(t)
	s.Starts(desktest.Alone, 1)
	s.Publish("alone", "alone.json", desktest.Alone.JSON())
	s.PublishSample()
	p := desktest.Open(s, "carol", "/desk/inbox?machine=alone")
	p.Wait(`document.querySelectorAll("[data-row]").length === 1`)
	options := `[...document.querySelectorAll("select")].map((e) => [...e.options].map((o) => o.value).join())`
	p.Reach("select")
	p.Wait(options + `.slice(1).join(";") === ",alone,refund-desk;,ask,paid,refused"`)
}
