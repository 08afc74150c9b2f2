package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
)

// collapsing is reviewed under bayes, with a state that declares a collapse.
var collapsing = strings.NewReplacer(`"prompt":"Pay?",`, `"prompt":"Pay?","collapse":{"target":0.9},`, `"alignmentMargin"}`, `"bayes"}`, `"goalState":"paid",`, `"goalState":"paid","risk":{"maxError":0.1,"confidence":0.9},`).Replace(reviewed)

// TestTrust: what was learned is answered as the commands print it.
func TestTrust(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	for _, transition := range []string{"pay", "refuse", "pay"} {
		s := d.start(collapsing)
		d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, transition, "carol"))
	}
	const path = "/v1/machines/claims/"
	d.alike(path+"trust", "trust", "list", "claims")
	d.alike(path+"trust?state=review", "trust", "list", "claims", "--state", "review")
	d.alike(path+"trust/bot", "trust", "show", "claims", "bot")
	d.alike(path+"metrics", "metrics", "claims")
	d.alike(path+"metrics?state=review&humanMinutes=7", "metrics", "claims", "--state", "review", "--human-minutes", "7")
	d.alike(path+"risk", "risk", "claims")
	d.alike(path+"trust-history", "trust", "history", "claims")
	d.alike(path+"trust-history?state=review&specialist=bot&by=dates", "trust", "history", "claims", "--state", "review", "--specialist", "bot", "--by", "dates")
	d.alike(path+"calibration?state=review", "calibration", "claims", "--state", "review")
	d.alike(path+"spend?by=total&since=2020-01-01", "spend", "claims", "--by", "total", "--since", "2020-01-01")
	d.alike(path+"collapse", "collapse", "status", "claims")
	d.alike(path+"collapse/review", "collapse", "plan", "claims", "review")
	var alignment api.List[api.Alignment]
	if d.want(200, "GET", path+"alignment?state=review", "").into(t, &alignment); len(alignment.Items) != 2 || alignment.Items[0].TotalComparisons != 3 {
		t.Errorf("the alignment is %+v", alignment.Items)
	}
	for query, rounds := range map[string]int{"": 3, "?first=1": 1, "?last=2": 2} {
		var e report.Evaluation
		if d.want(200, "GET", path+"evaluations/bot"+query, "").into(t, &e); e.Rounds != rounds {
			t.Errorf("evaluated%s: %+v", query, e)
		}
	}
	d.want(400, "GET", path+"evaluations/bot?first=1&last=1", "")
	d.want(400, "GET", path+"metrics?humanMinutes=-1", "")
	for _, wrong := range []string{"trust-history?by=rounds", "spend?since=yesterday", "spend?until=2026-02-30", "spend?by=state", "spend?by=total,day", "spend?cursor=x", "trust-history?cursor=x", "trust-history?limit=201"} {
		d.want(400, "GET", path+wrong, "")
	}
	for _, at := range []string{"trust/nobody", "collapse/paid", "collapse/nowhere", "trust-history?specialist=nobody", "trust-history?state=nowhere", "calibration?state=nowhere"} {
		d.want(404, "GET", path+at, "")
	}
	for _, at := range []string{"trust", "trust-history"} {
		var seen int
		for cursor := ""; ; {
			var page api.List[json.RawMessage]
			d.want(200, "GET", path+at+"?limit=1&cursor="+cursor, "").into(t, &page)
			if seen++; len(page.Items) != 1 {
				t.Fatalf("a page of one has %d", len(page.Items))
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if seen != 4 {
			t.Errorf("page by page the %s of %d is told, want 4", at, seen)
		}
	}
	var series api.List[api.TrustSeries]
	d.want(200, "GET", path+"trust-history?specialist=bot", "").into(t, &series)
	var bot api.List[api.Trusted]
	d.want(200, "GET", path+"trust/bot", "").into(t, &bot)
	if p := series.Items[0].Points; len(p) != 3 || p[2].Trust != bot.Items[0].Trust || p[2].K != bot.Items[0].K || p[2].RoundID == "" || p[0].SessionID == p[1].SessionID {
		t.Errorf("the history of bot is %+v, its trust %+v", p, bot.Items)
	}
	var c api.Calibration
	if d.want(200, "GET", path+"calibration", "").into(t, &c); c.Looks != 3 || c.Enough || len(c.Bins) != 10 {
		t.Errorf("the calibration is %+v", c)
	}
	foreign := d.key(control.Grant{Role: control.Admin, Machines: []string{"others"}})
	viewer := d.key(control.Grant{Role: control.Viewer})
	for _, at := range []string{"trust", "trust/bot", "trust-history", "calibration", "spend", "alignment", "metrics", "risk", "collapse", "collapse/review", "evaluations/bot"} {
		d.wantAs(foreign, 404, "GET", path+at, "")
		d.wantAs(viewer, 200, "GET", path+at, "")
		d.want(404, "GET", strings.Replace(path, "claims", "none", 1)+at, "")
	}
}

// TestOrders: how far a state does without humans is changed by a human who takes part in it,
// and by nobody else's word.
func TestOrders(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	d.start(collapsing)
	const path = "/v1/machines/claims/collapse/review"
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	both := d.key(control.Grant{Role: control.Human, Humans: []string{"carol", "dave"}})
	erin := d.key(control.Grant{Role: control.Human, Humans: []string{"erin"}})
	for _, c := range []struct {
		key, order, body string
		status           int
		code             string
	}{
		{d.key(control.Grant{Role: control.Operator}), "freeze", "", 403, "forbidden"},
		{d.key(control.Grant{Role: control.Admin}), "freeze", "", 403, "not_a_decider"},
		{erin, "freeze", "", 403, "not_a_decider"},
		{erin, "freeze", `{"specialistId":"erin"}`, 403, "not_human"},
		{carol, "freeze", `{"specialistId":"dave"}`, 403, "not_bound"},
		{both, "freeze", "", 422, "illegal_transition"},
		{localKey, "freeze", `{"specialistId":"bot"}`, 403, "not_human"},
		{carol, "promote", `{}`, 400, "bad_request"},
		{carol, "promote", `{"champion":"nobody"}`, 404, "not_found"},
		{carol, "promote", `{"champion":"bot"}`, 422, "not_established"},
		{carol, "freeze", `{"reasoning":"audit"}`, 200, ""},
		{carol, "promote", `{"champion":"bot"}`, 422, "frozen"},
		{both, "release", `{"specialistId":"dave"}`, 200, ""},
		{carol, "demote", `{"reasoning":"to be sure"}`, 200, ""},
	} {
		r := d.do(c.key, "POST", path+"/"+c.order, c.body)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s %s: %d %q, want %d %q: %s", c.order, c.body, r.status, r.code(), c.status, c.code, r.body)
		}
		var now runner.StateCollapse
		if d.want(200, "GET", path, "").into(t, &now); r.status == 200 && string(d.want(200, "GET", path, "").body) != string(r.body) {
			t.Errorf("%s answers %s, and it is %+v", c.order, r.body, now)
		}
	}
	if line := d.prints("log", "--machine", "claims"); len(line) != 3 || !strings.Contains(line[0], `"subject":"key:`) || !strings.Contains(line[0], `"audit"`) {
		t.Errorf("the log says %s", line)
	}
	d.want(404, "POST", "/v1/machines/claims/collapse/nowhere/freeze", `{"specialistId":"carol"}`)
	d.want(404, "POST", "/v1/machines/none/collapse/review/freeze", `{"specialistId":"carol"}`)
}
