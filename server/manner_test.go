package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// TestMannerOverHTTP: how a human came to a word is kept with it, rounded and bounded; who may not
// read texts is told how long, and not the note. What is sent again need not repeat it.
func TestMannerOverHTTP(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s, other := d.start(reviewed), d.start(reviewed) // both before anybody is trusted
	path := "/v1/sessions/" + s.SessionID
	with := func(more string) string { return strings.Replace(ruling(s, "pay", "carol"), `{`, `{`+more, 1) }
	for _, bad := range []string{`"looked":-1,`, `"looked":"1",`, `"bulk":1,`, `"note":1,`} {
		d.want(400, "POST", path+"/decisions", with(bad))
	}
	if r := d.want(422, "POST", path+"/decisions", with(`"note":"`+strings.Repeat("x", 64<<10+1)+`",`)); !strings.Contains(string(r.body), "note is larger") {
		t.Errorf("a note that is too large: %s", r.body)
	}
	d.want(200, "POST", path+"/decisions", with(`"looked":1499.6,"note":"by phone","bulk":true,`))
	var again api.Ruled
	if d.want(200, "POST", path+"/decisions", with(`"looked":7,`)).into(t, &again); !again.Repeated {
		t.Errorf("sent again it is answered %+v", again)
	}
	decision := func(key string) (one api.Decision) {
		t.Helper()
		var list api.List[api.Decision]
		if d.wantAs(key, 200, "GET", path+"/decisions", "").into(t, &list); len(list.Items) != 1 {
			t.Fatalf("%d decisions", len(list.Items))
		}
		return list.Items[0]
	}
	if one := decision(localKey); one.Looked != 1500 || one.Note != "by phone" || !one.Bulk {
		t.Errorf("the decision is %+v", one)
	}
	if one := decision(d.key(control.Grant{Role: control.Viewer})); one.Looked != 1500 || one.Note != "" {
		t.Errorf("who reads no texts sees %+v", one)
	}
	var events struct{ Items []api.Event }
	d.want(200, "GET", path+"/events", "").into(t, &events)
	found := false
	for _, e := range events.Items {
		var data struct{ Looked int }
		found = found || e.Kind == "executed" && json.Unmarshal(e.Data, &data) == nil && data.Looked == 1500
	}
	if !found {
		t.Errorf("the log is %+v", events)
	}
	var m api.Metrics
	if d.want(200, "GET", "/v1/machines/claims/metrics?humanMinutes=5", "").into(t, &m); m.HumanMeasured != 1 || m.HumanMinutes != 0 { // 1.5 s
		t.Errorf("the metrics are %+v", m)
	}

	s = other
	path = "/v1/sessions/" + s.SessionID
	d.want(200, "POST", path+"/decisions", with(`"looked":1e300,`))
	if one := decision(localKey); one.Looked != 86_400_000 {
		t.Errorf("more than a day is %d", one.Looked)
	}
}

// TestBulkOverHTTP: a ruling of which it is said that it was given in bulk is not blind, though all
// was withheld; the others are.
func TestBulkOverHTTP(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		d := newDesk(t, deskOptions{drives: true})
		s := d.start(reviewed)
		d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "carol")) // trust begins
		s = d.start(withheld)
		body := ruling(s, "refuse", "carol")
		if bulk {
			body = strings.Replace(body, `{`, `{"bulk":true,`, 1)
		}
		d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", body)
		blind := false
		for l, err := range d.runner.Store().Lessons(d.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			blind = blind || l.Outcome != nil && l.Outcome.Session == s.SessionID && l.Outcome.Blind
		}
		if blind == bulk {
			t.Errorf("bulk %v: blind is %v", bulk, blind)
		}
	}
}
