package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// signed is a machine whose payment takes two humans.
var signed = strings.Replace(reviewed, `"pay":"paid"`, `"pay":{"target":"paid","approvals":{"count":2}}`, 1)

// TestRepeatedRulings: a ruling that comes twice is answered with what it came to; one of
// another choice, payload, question, human or session is none that was given before.
func TestRepeatedRulings(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	carol, dave := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}), d.key(control.Grant{Role: control.Human, Humans: []string{"dave"}})
	s, other := d.start(reviewed), d.start(reviewed) // both before anybody is trusted
	path := "/v1/sessions/" + s.SessionID + "/decisions"
	d.wantAs(carol, 200, "POST", path, ruling(s, "pay", "carol"))
	sequence := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag")
	var again api.Ruled
	d.wantAs(carol, 200, "POST", path, ruling(s, "pay", "carol")).into(t, &again)
	if a := again.Arbitration; !again.Repeated || !a.Executed || a.TransitionName != "pay" || a.ToState != "paid" || a.RoundID != s.Question.RoundID || a.Reasoning != "seen" {
		t.Errorf("sent again it is answered %+v", again)
	}
	for name, r := range map[string]*reply{
		"another choice":   d.do(carol, "POST", path, ruling(s, "refuse", "carol")),
		"another payload":  d.do(carol, "POST", path, strings.Replace(ruling(s, "pay", "carol"), `{`, `{"metaJson":{"x":1},`, 1)),
		"another human":    d.do(dave, "POST", path, ruling(s, "pay", "dave")),
		"another key":      d.do(localKey, "POST", path, ruling(s, "pay", "carol")),
		"another question": d.do(carol, "POST", path, ruling(other, "pay", "carol")),
		"another session":  d.do(carol, "POST", "/v1/sessions/"+other.SessionID+"/decisions", ruling(s, "pay", "carol")),
		"that it executes": d.do(carol, "POST", "/v1/sessions/"+s.SessionID+"/executions", ruling(s, "pay", "carol")),
	} {
		if r.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if now := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag"); now != sequence {
		t.Errorf("what was sent again has changed the session from %s to %s", sequence, now)
	}
}

// TestRepeatedApproval: a ruling that waits for others is answered so when it comes again,
// and as executed once they have agreed, but not when it was taken back or they did not.
func TestRepeatedApproval(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	carol, dave := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}), d.key(control.Grant{Role: control.Human, Humans: []string{"dave"}})
	s := d.start(signed)
	path := "/v1/sessions/" + s.SessionID + "/decisions"
	rule := func(key string, body string) (out api.Ruled) {
		t.Helper()
		d.wantAs(key, 200, "POST", path, body).into(t, &out)
		return out
	}
	first := ruling(s, "pay", "carol")
	if r := rule(carol, first); r.Repeated || r.Arbitration.Executed || r.Code != "approvals" {
		t.Errorf("the first of two: %+v", r)
	}
	if r := rule(carol, first); !r.Repeated || r.Arbitration.Executed || r.Code != "approvals" {
		t.Errorf("the first of two again: %+v", r)
	}
	question := func() api.Session {
		var now api.Session
		d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").into(t, &now)
		return now
	}
	if r := rule(dave, ruling(question(), "pay", "dave")); r.Repeated || !r.Arbitration.Executed {
		t.Errorf("the second of two: %+v", r)
	}
	if r := rule(carol, first); !r.Repeated || !r.Arbitration.Executed || r.Arbitration.TransitionName != "pay" {
		t.Errorf("the first of two, when both have ruled: %+v", r)
	}
	s = d.start(signed)
	path = "/v1/sessions/" + s.SessionID + "/decisions"
	first = ruling(s, "pay", "carol")
	rule(carol, first)
	rule(dave, ruling(question(), "refuse", "dave"))
	if r := d.do(carol, "POST", path, first); r.status != http.StatusConflict {
		t.Errorf("the first, when the second has refused: %d %s", r.status, r.body)
	}
}

// TestOneOfManyRulings: of many at once exactly one is executed, and its repetitions say so.
func TestOneOfManyRulings(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	var mu sync.Mutex
	executed, repeated := map[string]int{}, 0
	var all sync.WaitGroup
	for i := range 32 {
		transition, who := [2]string{"pay", "refuse"}[i%2], [2]string{"carol", "dave"}[i/2%2]
		all.Go(func() {
			r := d.do(localKey, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, transition, who))
			mu.Lock()
			defer mu.Unlock()
			if r.status == http.StatusConflict {
				return
			}
			var out api.Ruled
			if r.into(t, &out); r.status != http.StatusOK || !out.Arbitration.Executed {
				t.Errorf("%d %s", r.status, r.body)
			}
			if executed[transition+who]++; out.Repeated {
				repeated++
			}
		})
	}
	all.Wait()
	if len(executed) != 1 || repeated != 7 {
		t.Errorf("executed were %v, of which %d said that they repeat one", executed, repeated)
	}
	var events api.List[api.Event]
	d.want(200, "GET", fmt.Sprintf("/v1/sessions/%s/events?kinds=executed", s.SessionID), "").into(t, &events)
	if len(events.Items) != 1 {
		t.Errorf("the log has %d transitions", len(events.Items))
	}
}

// TestWhoRules: of every role, by every way that is a human's word, in every state of a round:
// nothing is executed but by the key of a human that the machine declares, on an open question.
func TestWhoRules(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	keys := map[string]string{"nobody": "", "a wrong key": "wrong"}
	for _, role := range []control.Role{control.Viewer, control.Operator, control.Specialist, control.Auditor, control.Admin, control.Human} {
		keys[string(role)] = d.key(control.Grant{Role: role})
		keys[string(role)+" for another machine"] = d.key(control.Grant{Role: role, Humans: []string{"carol"}, Machines: []string{"other"}})
		keys[string(role)+" for whom nobody knows"] = d.key(control.Grant{Role: role, Humans: []string{"mallory"}, Specialists: []string{"bot", "carol"}})
	}
	const bound = "carol"
	machines := 0
	fresh := func(machine string) api.Session { // of which nobody has learned anything
		machines++
		return d.start(strings.Replace(machine, `"claims"`, fmt.Sprintf(`"claims-%d"`, machines), 1))
	}
	keys[bound] = d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	states := map[string]func() api.Session{
		"an open question": func() api.Session { return fresh(reviewed) },
		"one word given": func() api.Session {
			s := fresh(signed)
			d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "dave"))
			d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").into(t, &s)
			return s
		},
		"cancelled": func() api.Session {
			s := fresh(reviewed)
			d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/cancel", `{"note":"enough"}`)
			return s
		},
		"completed": func() api.Session {
			s := fresh(reviewed)
			d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "dave"))
			return s
		},
	}
	tool := func(name, more string) func(s api.Session) (string, string) {
		return func(s api.Session) (string, string) {
			return "/", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"sessionId":%q,"specialistId":"carol","transitionName":"pay"%s}}}`, name, s.SessionID, more)
		}
	}
	type way struct {
		rules bool
		body  func(s api.Session) (path, body string)
	}
	to := func(path, who string) func(s api.Session) (string, string) {
		return func(s api.Session) (string, string) {
			return "/v1/sessions/" + s.SessionID + path, ruling(s, "pay", who)
		}
	}
	ways := map[string]way{
		"a ruling":         {true, to("/decisions", "carol")},
		"an execution":     {true, to("/executions", "carol")},
		"as the operator":  {false, to("/decisions", "__operator")},
		"as a service":     {false, to("/decisions", "bot")},
		"as the timer":     {false, to("/decisions", "__timer")},
		"as another human": {false, to("/decisions", "dave")},
		"without a round": {false, func(s api.Session) (string, string) {
			return "/v1/sessions/" + s.SessionID + "/decisions", `{"transitionName":"pay","specialistId":"carol","questionDigest":"` + s.Question.Digest + `"}`
		}},
		"without a digest": {false, func(s api.Session) (string, string) {
			return "/v1/sessions/" + s.SessionID + "/decisions", `{"transitionName":"pay","specialistId":"carol","roundId":"` + s.Question.RoundID + `"}`
		}},
		"of any round": {false, func(s api.Session) (string, string) {
			return "/v1/sessions/" + s.SessionID + "/executions", `{"transitionName":"pay","toState":"paid","specialistId":"carol","roundId":"current","questionDigest":"` + s.Question.Digest + `"}`
		}},
		"execute_transition": {false, tool("execute_transition", `,"toState":"paid"`)},
		"submit_arbitration": {false, tool("submit_arbitration", "")},
		"submit_proposal":    {false, tool("submit_proposal", "")},
	}
	n := 0
	for state, make := range states {
		for name, w := range ways {
			s := make()
			executed := func() int {
				var log api.List[api.Event]
				d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?after=0&kinds=executed", "").into(t, &log)
				return len(log.Items)
			}
			before := executed()
			for who, key := range keys {
				if who == bound {
					continue
				}
				n++
				d.from = fmt.Sprintf("2001:db8::%x", n) // strangers are bounded by their address
				path, body := w.body(s)
				if r := d.do(key, "POST", path, body); executed() != before {
					t.Fatalf("%s of %s on %s has executed: %d %s", name, who, state, r.status, r.body)
				} else if path != "/" && r.status < 400 {
					t.Errorf("%s of %s on %s is answered %d %s", name, who, state, r.status, r.body)
				}
			}
			path, body := w.body(s)
			r := d.do(keys[bound], "POST", path, body)
			if did := executed() > before; did != (w.rules && (state == "an open question" || state == "one word given")) {
				t.Errorf("%s of %s on %s has executed: %v; %d %s", name, bound, state, did, r.status, r.body)
			}
		}
	}
}

// TestRulingOnCancelled: a session that was cancelled asks nobody. It is not in the inbox, and a
// ruling is refused and says what would take it, until it is resumed.
func TestRulingOnCancelled(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	path := "/v1/sessions/" + s.SessionID
	d.want(200, "POST", path+"/cancel", `{"note":"no longer needed"}`)
	if list := d.want(200, "GET", "/v1/inbox", ""); strings.Contains(string(list.body), s.SessionID) {
		t.Errorf("the inbox has %s", list.body)
	}
	d.want(404, "GET", "/v1/inbox/"+s.Question.QuestionID, "")
	if r := d.want(409, "POST", path+"/decisions", ruling(s, "refuse", "carol")); r.code() != "not_running" || !strings.Contains(string(r.body), "until it is resumed") {
		t.Errorf("a ruling is answered %s", r.body)
	}
	d.want(200, "POST", path+"/resume?wait=10s", `{"note":"needed after all"}`)
	var again api.Session
	d.want(200, "GET", path, "").into(t, &again)
	d.want(200, "POST", path+"/decisions", ruling(again, "refuse", "carol"))
}
