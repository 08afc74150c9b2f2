package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// audited is a machine in which the engine decides, and every decision waits for a review.
const audited = `{"machineName":"claims","initialState":"review","goalState":"paid","audit":{"rate":1},
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},
		{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// TestHistory: what was is answered as the commands print it, page by page.
func TestHistory(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	s, others := d.start(reviewed), []api.Session{d.start(reviewed), d.start(reviewed)}
	d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, "pay", "carol"))
	for i := range 3 {
		if err := d.runner.Store().AppendAudit(t.Context(), specialist.AuditEntry{AuditEntryID: fmt.Sprint("a", i), SessionID: s.SessionID, Round: 1, ResolvedModel: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	path := "/v1/sessions/" + s.SessionID
	d.alike(path+"/explain", "explain", s.SessionID)
	d.alike(path+"/explain?round=1", "explain", s.SessionID, "1")
	d.alike(path+"/log?format=guard", "log", s.SessionID, "--guard")
	d.alike(path+"/log?payload=digest&from=3", "log", s.SessionID, "--guard", "--payload", "digest", "--from", "3")
	d.alike(path+"/audit", "audit", s.SessionID)
	d.told(s, "two", "call +49 151 23456789 or ann@example.com", "four")
	d.alike(path+"/agent-log", "log", s.SessionID, "--agent")
	d.alike(path+"/agent-log?payload=full&from=2", "log", s.SessionID, "--agent", "--payload", "full", "--from", "2")
	id, err := session.ParseID(s.SessionID)
	if err == nil {
		err = d.runner.Store().AppendAgentLog(t.Context(), id, 3, session.AgentEvent{Kind: "permission", Data: json.RawMessage(`{"tool":"Bash","session":"x","allowed":true}`)}, session.AgentEvent{Kind: "note"}, session.AgentEvent{Kind: "permission", Data: json.RawMessage(`{"tool":"Read","session":"y","allowed":false}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
	var first, rest api.List[api.Event]
	d.want(200, "GET", path+"/agent-log?kind=permission&limit=1", "").into(t, &first)
	d.want(200, "GET", path+"/agent-log?kind=permission&limit=1&cursor="+first.NextCursor, "").into(t, &rest)
	if len(first.Items) != 1 || len(rest.Items) != 1 || rest.NextCursor != "" || !bytes.Contains(first.Items[0].Data, []byte(`"Bash"`)) || !bytes.Contains(rest.Items[0].Data, []byte(`"Read"`)) {
		t.Errorf("what is of a kind is %+v and %+v", first, rest)
	}
	d.want(404, "GET", path+"/explain?round=9", "")
	d.want(400, "GET", path+"/log?format=csv", "")
	var decisions, all api.List[api.Decision]
	one, every := d.want(200, "GET", path+"/decisions", ""), d.want(200, "GET", "/v1/machines/claims/decisions", "")
	one.into(t, &decisions)
	if len(decisions.Items) != 1 || decisions.Items[0].SpecialistID != "carol" || decisions.Items[0].Reasoning != "seen" || len(decisions.Items[0].Proposals) != 2 || !bytes.Equal(one.body, every.body) {
		t.Errorf("the decisions are %s and %s", one.body, every.body)
	}
	var exemplars api.List[api.Exemplar]
	d.want(200, "GET", "/v1/machines/claims/exemplars?state=review", "").into(t, &exemplars)
	if len(exemplars.Items) != 1 || exemplars.Items[0].HumanTransitionName != "pay" || exemplars.Items[0].Withheld {
		t.Errorf("the exemplars are %+v", exemplars.Items)
	}
	for _, other := range others {
		d.want(200, "POST", "/v1/sessions/"+other.SessionID+"/decisions", ruling(other, "pay", "carol"))
	}
	for at, want := range map[string]int{path + "/log": len(d.prints("log", s.SessionID, "--guard")), path + "/audit": 3, path + "/agent-log": 6, path + "/decisions": 1, "/v1/machines/claims/decisions": 3, "/v1/machines/claims/exemplars": 3} {
		seen := map[string]bool{}
		for cursor := ""; ; {
			var page api.List[json.RawMessage]
			if d.want(200, "GET", at+"?limit=1&cursor="+cursor, "").into(t, &page); len(page.Items) != 1 || seen[string(page.Items[0])] {
				t.Fatalf("%s: a page of one has %s", at, page.Items)
			}
			if seen[string(page.Items[0])] = true; page.NextCursor == "" {
				break
			}
			cursor = page.NextCursor
		}
		if len(seen) != want {
			t.Errorf("%s has %d items page by page, want %d", at, len(seen), want)
		}
		if r := d.want(400, "GET", at+"?cursor=AAAA", ""); r.code() != "bad_cursor" {
			t.Errorf("%s with a cursor of none: %s", at, r.body)
		}
	}
	d.want(200, "GET", "/v1/machines/claims/decisions?state=nowhere", "").into(t, &all)
	if len(all.Items) != 0 {
		t.Errorf("of another state %+v was decided", all.Items)
	}
}

// TestHistoryPermissions: whoever may only read is shown no texts, and who may not see a machine
// nothing.
func TestHistoryPermissions(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, "pay", "carol"))
	viewer, foreign := d.key(control.Grant{Role: control.Viewer}), d.key(control.Grant{Role: control.Admin, Machines: []string{"others"}})
	auditor := d.key(control.Grant{Role: control.Auditor})
	path := "/v1/sessions/" + s.SessionID
	for at, status := range map[string]int{path + "/log": 403, path + "/explain": 403, path + "/audit": 403, path + "/decisions": 200, path + "/driver": 200, "/v1/machines/claims/decisions": 200, "/v1/machines/claims/exemplars": 403} {
		if r := d.wantAs(viewer, status, "GET", at, ""); bytes.Contains(r.body, []byte("seen")) || bytes.Contains(r.body, []byte("amount")) || bytes.Contains(r.body, []byte("proposalId")) {
			t.Errorf("%s shows a viewer %s", at, r.body)
		}
		d.wantAs(foreign, 404, "GET", at, "")
		d.wantAs(auditor, 200, "GET", at, "")
	}
}

// TestHistoryWithheld: what is withheld from whoever is to rule or to review is in no answer
// about the past, and an explanation is open to who may see it.
func TestHistoryWithheld(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	open := d.start(withheld)
	if err := d.runner.Store().AppendAudit(t.Context(), specialist.AuditEntry{AuditEntryID: "a", SessionID: open.SessionID, Round: 1, RequestBody: "bot: pay"}); err != nil {
		t.Fatal(err)
	}
	d.told(open, "bot: pay")
	path := "/v1/sessions/" + open.SessionID
	if r := d.want(403, "GET", path+"/explain", ""); r.code() != "withheld" {
		t.Errorf("the explanation of the open round: %s", r.body)
	}
	var ruled api.Ruled
	if r := d.want(200, "POST", path+"/arbitration", `{}`); bytes.Contains(r.body, []byte("winningProposalId")) || bytes.Contains(r.body, []byte("Choosing first")) {
		t.Errorf("the arbiter tells of the open round %s", r.body)
	} else if r.into(t, &ruled); ruled.Arbitration.Executed || ruled.Arbitration.TransitionName != "" || ruled.Arbitration.Reasoning != "" || ruled.Arbitration.GuardReason != "" || ruled.Code != "audit" {
		t.Errorf("what the arbiter would have decided is told: %+v", ruled)
	}
	for _, at := range []string{"/log?payload=full", "/audit", "/agent-log?payload=full", "/decisions", "/driver"} {
		if r := d.want(200, "GET", path+at, ""); bytes.Contains(r.body, []byte(`bot`)) || bytes.Contains(r.body, []byte("pay")) {
			t.Errorf("%s tells of the open round %s", at, r.body)
		}
	}
	var got api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+strings.Replace(audited, "claims", "audited", 1)+`}`).into(t, &got)
	path = "/v1/sessions/" + got.Session.SessionID
	var why explain.Explanation
	if d.want(200, "GET", path+"/explain", "").into(t, &why); !why.Withheld || len(why.Votes) != 0 || why.Executed != "pay" {
		t.Errorf("of what waits for a review is explained %+v", why)
	}
	for _, at := range []string{path + "/decisions", "/v1/machines/audited/decisions"} {
		var decisions api.List[api.Decision]
		r := d.want(200, "GET", at, "")
		if r.into(t, &decisions); len(decisions.Items) != 1 || !decisions.Items[0].Withheld || bytes.Contains(r.body, []byte("bot")) || decisions.Items[0].TransitionName != "pay" {
			t.Errorf("%s tells of what waits for a review %s", at, r.body)
		}
	}
	review := "/v1/reviews/" + got.Session.SessionID + "." + why.RoundID
	d.want(404, "POST", "/v1/reviews/"+open.SessionID+"."+open.CurrentRoundID+"/reveal", `{"specialistId":"carol"}`)
	d.want(200, "POST", review+"/reveal", `{"specialistId":"carol"}`)
	for query, shown := range map[string]bool{"": false, "human=carol": true, "human=dave": false} { // who has looked, and nobody else
		var why explain.Explanation
		if d.want(200, "GET", path+"/explain?"+query, "").into(t, &why); (len(why.Votes) == 1) != shown || why.Withheld == shown {
			t.Errorf("after the look of carol %q is explained %+v", query, why)
		}
		if r := d.want(200, "GET", path+"/events?payload=full&"+query, ""); bytes.Contains(r.body, []byte(`"withheld":true`)) == shown {
			t.Errorf("after the look of carol %q sees %s", query, r.body)
		}
	}
	for query, n := range map[string]int{"": 2, "?reviews=true": 1, "?awake=true": 2} {
		var list api.List[api.Summary]
		if d.want(200, "GET", "/v1/sessions"+query, "").into(t, &list); len(list.Items) != n {
			t.Errorf("sessions%s: %d, want %d", query, len(list.Items), n)
		}
	}
	var ours api.List[api.ReviewItem]
	if d.want(200, "GET", "/v1/reviews?session="+open.SessionID, "").into(t, &ours); len(ours.Items) != 0 {
		t.Errorf("reviews of a session that waits for none: %+v", ours.Items)
	}
	var who api.Deciders
	if d.want(200, "GET", "/v1/machines/audited/humans?state=review", "").into(t, &who); len(who.Humans) != 2 || !who.Declared {
		t.Errorf("orders in state review may give %+v", who)
	}
	d.want(404, "GET", "/v1/machines/nothing/humans?state=review", "")
	d.want(400, "GET", "/v1/machines/audited/humans", "") // of which state?
	d.want(200, "POST", review, `{"transitionName":"pay","specialistId":"carol"}`)
	if d.want(200, "GET", path+"/explain", "").into(t, &why); len(why.Votes) != 1 {
		t.Errorf("once it was reviewed, it is explained as %+v", why)
	}
}

// TestDriven: who carries sessions on is told, and with which sessions it has to do.
func TestDriven(t *testing.T) {
	for mode, drives := range map[string]bool{"off": false, "driving": true} {
		d := newDesk(t, deskOptions{drives: drives})
		var started api.Settled
		d.want(201, "POST", "/v1/sessions"+map[bool]string{true: "?wait=10s"}[drives], `{"machine":`+reviewed+`}`).into(t, &started)
		var got api.Driven
		if d.want(200, "GET", "/v1/sessions/"+started.Session.SessionID+"/driver", "").into(t, &got); got.Mode != mode || got.LastError != "" || got.NextAttempt != nil {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}
