package server_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
)

// TestIfMatch: no write on a session is done that says of which state of it it was meant, once
// the session has another.
func TestIfMatch(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	open := d.start(withheld)
	path := "/v1/sessions/" + open.SessionID
	question := "/v1/inbox/" + open.SessionID + "." + open.CurrentRoundID
	ruled := ruling(open, "pay", "carol")
	for at, body := range map[string]string{
		path + "/cancel": `{"note":"x"}`, path + "/fork": `{}`, path + "/step": ``, path + "/run": `{}`, path + "/resume": `{"note":"x"}`, path + "/arbitration": `{}`,
		path + "/move": `{"note":"x","definition":` + withheld + `}`, path + "/retractions": `{"note":"x","roundId":"` + open.CurrentRoundID + `","specialistId":"carol"}`,
		path + "/decisions": ruled, path + "/executions": ruled, question + "/reveal": `{"specialistId":"carol"}`,
	} {
		r := d.want(412, "POST", at, body, "If-Match", `"1"`)
		if r.code() != "stale_sequence" {
			t.Errorf("%s of a state that is gone: %s", at, r.body)
		}
	}
	var now api.Session
	if d.want(200, "GET", path, "").into(t, &now); now.Sequence != open.Sequence {
		t.Errorf("what was refused has changed the session: %d, was %d", now.Sequence, open.Sequence)
	}
	d.want(200, "POST", path+"/cancel", `{"note":"x"}`, "If-Match", d.want(200, "GET", path, "").header.Get("ETag"))
}

// TestChoices: who misspells a choice is told what there is to choose.
func TestChoices(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	open := d.start(reviewed)
	for _, way := range []string{"/decisions", "/executions"} {
		var p api.Error
		d.want(422, "POST", "/v1/sessions/"+open.SessionID+way, ruling(open, "pya", "carol")).into(t, &p)
		if !strings.Contains(p.Hint, "pay, refuse") {
			t.Errorf("%s: a misspelt choice is refused with %+v", way, p)
		}
	}
}
