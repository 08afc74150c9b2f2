package server_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/session"
)

// alone is a machine that needs nobody.
const alone = `{"machineName":"alone","initialState":"a","goalState":"c","states":{"a":{"transitions":{"go":"b"}},"b":{"transitions":{"go":"c"}},"c":{}},
	"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// TestUndriven: a session that is not to be driven stands where it is until it is stepped or
// run, and a fork does unless it is to be driven.
func TestUndriven(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	var s, driven, fork, forkDriven api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+alone+`,"drive":true}`).into(t, &driven)
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+alone+`,"drive":false}`).into(t, &s)
	if driven.Session.Status != session.Completed || s.Session.Status != session.Running || !s.Settled || s.Session.CurrentState != "a" {
		t.Fatalf("driven: %s in %s; left: %s in %s, settled %v", driven.Session.Status, driven.Session.CurrentState, s.Session.Status, s.Session.CurrentState, s.Settled)
	}
	path := "/v1/sessions/" + s.Session.SessionID
	var how api.Driven
	if d.want(200, "GET", path+"/driver", "").into(t, &how); how.Mode != "none" {
		t.Errorf("its driver is %+v", how)
	}
	var stepped api.Stepped
	if d.want(200, "POST", path+"/step", "").into(t, &stepped); stepped.Session.CurrentState != "b" || stepped.Session.Status != session.Running {
		t.Errorf("after a step it is %s in %s", stepped.Session.Status, stepped.Session.CurrentState)
	}
	d.want(201, "POST", path+"/fork", "").into(t, &fork)
	d.want(201, "POST", path+"/fork", `{"drive":true}`).into(t, &forkDriven)
	var ran api.Ran
	if d.want(200, "POST", path+"/run", "").into(t, &ran); ran.Session.Status != session.Completed {
		t.Errorf("after a run it is %s in %s", ran.Session.Status, ran.Session.CurrentState)
	}
	d.want(200, "GET", "/v1/sessions/"+forkDriven.Session.SessionID+"/events?after=0", "", "Accept", "text/event-stream") // to its end
	for of, want := range map[string]session.Status{fork.Session.SessionID: session.Running, forkDriven.Session.SessionID: session.Completed} {
		var now api.Session
		if d.want(200, "GET", "/v1/sessions/"+of, "").into(t, &now); now.Status != want {
			t.Errorf("a fork is %s, not %s", now.Status, want)
		}
	}
}

// TestNobodyArbitrates: a machine that nobody arbitrates is not started to be driven, since it would
// be tried in vain and ask nobody; of one that lacks an arbiter later it is told who looks.
func TestNobodyArbitrates(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	unjudged := strings.Replace(alone, `,{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}`, "", 1)
	if r := d.want(422, "POST", "/v1/sessions", `{"machine":`+unjudged+`}`); r.code() != "cannot_start" || !strings.Contains(string(r.body), "No arbiter registered for machine: alone") || !strings.Contains(string(r.body), "defaults") {
		t.Errorf("a machine without an arbiter is refused with %s", r.body)
	}
	if list := d.want(200, "GET", "/v1/sessions", ""); strings.Contains(string(list.body), "sessionId") {
		t.Errorf("what was refused is there: %s", list.body)
	}
	var s api.Settled
	if d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+unjudged+`,"defaults":true}`).into(t, &s); s.Session.Status != session.Completed {
		t.Errorf("with the defaults it is %s", s.Session.Status)
	}
	d.want(201, "POST", "/v1/sessions", `{"machine":`+unjudged+`,"drive":false}`)

	half := strings.Replace(strings.Replace(unjudged, "alone", "half", 1), `"a":{`, `"a":{"specialists":[{"role":"proposer","specialistId":"q","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}],`, 1)
	d.want(201, "POST", "/v1/sessions", `{"machine":`+half+`}`).into(t, &s)
	var how api.Driven
	for how.LastError == "" {
		d.want(200, "GET", "/v1/sessions/"+s.Session.SessionID+"/driver", "").into(t, &how)
	}
	if how.Mode != driver.Driving || how.NextAttempt == nil || !strings.Contains(how.LastError, "No arbiter registered") {
		t.Errorf("of a session whose second state nobody arbitrates it is told %+v", how)
	}
}
