package server_test

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// TestClaims: a claim tells others who is at a question for half an hour, and keeps nobody from
// ruling on it.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		var started api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`).into(t, &started)
		d.want(200, "POST", "/v1/sessions/"+started.Session.SessionID+"/run", "")
		var s api.Session
		d.want(200, "GET", "/v1/sessions/"+started.Session.SessionID, "").into(t, &s)
		path := "/v1/inbox/" + s.Question.QuestionID
		carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
		dave := d.key(control.Grant{Role: control.Human, Humans: []string{"dave"}})
		var claim api.Claim
		if d.wantAs(carol, 200, "PUT", path+"/claim", "").into(t, &claim); claim.SpecialistID != "carol" || claim.ExpiresAt-claim.At != control.ClaimLifetime {
			t.Errorf("claimed: %+v", claim)
		}
		d.wantAs(carol, 200, "PUT", path+"/claim", `{"specialistId":"carol"}`)
		if r := d.wantAs(dave, 409, "PUT", path+"/claim", ""); r.code() != "claimed" {
			t.Errorf("what another has claimed: %s", r.body)
		}
		d.wantAs(dave, 204, "DELETE", path+"/claim", "") // that of another stays
		d.wantAs(carol, 403, "PUT", path+"/claim", `{"specialistId":"dave"}`)
		d.wantAs(d.key(control.Grant{Role: control.Operator}), 403, "PUT", path+"/claim", "")
		d.want(404, "PUT", path+"x/claim", "")
		unclaimed := func(key string) int {
			var list api.List[api.Item]
			d.wantAs(key, 200, "GET", "/v1/inbox?unclaimed=true", "").into(t, &list)
			return len(list.Items)
		}
		var one api.Item
		if d.wantAs(dave, 200, "GET", path, "").into(t, &one); one.Claim == nil || one.Claim.Subject != claim.Subject || one.Digest != s.Question.Digest {
			t.Errorf("the question is %+v, and was %s", one, s.Question.Digest)
		}
		mine := func(key, query string) int {
			t.Helper()
			var list api.List[api.Item]
			d.wantAs(key, 200, "GET", "/v1/inbox?mine=true"+query, "").into(t, &list)
			return len(list.Items)
		}
		if mine(carol, "") != 1 || mine(carol, "&machine=claims&state=review") != 1 || mine(carol, "&machine=other") != 0 || mine(carol, "&subject=x") != 0 || mine(carol, "&code="+s.Question.Code) != 1 || mine(carol, "&code=other") != 0 || mine(carol, "&since=2999-01-01T00:00:00Z") != 0 || mine(dave, "") != 0 || mine(localKey, "&human=carol") != 1 {
			t.Error("what somebody is at is not theirs")
		}
		if unclaimed(dave) != 0 || unclaimed(carol) != 1 {
			t.Error("whoever asks for what nobody else is at is not answered so")
		}
		time.Sleep(time.Duration(control.ClaimLifetime) * time.Millisecond)
		if unclaimed(dave) != 1 || mine(carol, "") != 0 {
			t.Error("after half an hour the claim still holds")
		}
		d.wantAs(dave, 200, "PUT", path+"/claim", "")
		d.wantAs(dave, 204, "DELETE", path+"/claim", "")
		d.wantAs(dave, 200, "PUT", path+"/claim", "")
		d.wantAs(carol, 200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", ""))
		d.wantAs(dave, 404, "PUT", path+"/claim", "")
		if mine(dave, "") != 0 {
			t.Error("what was answered is still dave's")
		}
	})
}

// TestAssignments: who may rule or drive gives a question to another who decides there. It is then
// theirs in every inbox, whatever pages say who looks at it, until who gave it takes it back.
func TestAssignments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		s := d.begin(reviewed)
		path := "/v1/inbox/" + s.Question.QuestionID
		operator := d.key(control.Grant{Role: control.Operator})
		carol, dave := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}), d.key(control.Grant{Role: control.Human, Humans: []string{"dave"}})
		claim := func(key string, status int, body string) (c api.Claim) {
			t.Helper()
			if r := d.wantAs(key, status, "PUT", path+"/claim", body); status == 200 {
				r.into(t, &c)
			}
			return c
		}
		unclaimed := func(key, query string) int {
			t.Helper()
			var list api.List[api.Item]
			d.wantAs(key, 200, "GET", "/v1/inbox?unclaimed=true"+query, "").into(t, &list)
			return len(list.Items)
		}
		claim(carol, 422, `{"for":"bot"}`)
		claim(carol, 422, `{"for":"nobody"}`)
		claim(carol, 403, `{"for":"dave","specialistId":"dave"}`)
		claim(carol, 400, `{"for":"dave","note":"`+strings.Repeat("x", 1001)+`"}`)
		claim(d.key(control.Grant{Role: control.Viewer}), 403, `{"for":"dave"}`)
		claim(d.key(control.Grant{Role: control.Auditor}), 403, `{"for":"dave"}`)
		claim(d.key(control.Grant{Role: control.Operator, Machines: []string{"other"}}), 404, `{"for":"dave"}`)
		claim(operator, 403, ``)

		c := claim(operator, 200, `{"for":"dave","note":"knows them"}`)
		if c.For != "dave" || c.By != c.Subject || c.SpecialistID != "dave" || c.Note != "knows them" || c.ExpiresAt-c.At != control.AssignmentLifetime {
			t.Errorf("assigned: %+v", c)
		}
		if unclaimed(carol, "") != 0 || unclaimed(dave, "") != 1 || unclaimed(operator, "") != 0 || unclaimed(localKey, "&human=dave") != 1 || unclaimed(localKey, "&human=carol") != 0 {
			t.Error("it is not what dave sees, and the others not")
		}
		for key, want := range map[string]int{dave: 1, carol: 0, operator: 0} {
			var list api.List[api.Item]
			if d.wantAs(key, 200, "GET", "/v1/inbox?mine=true", "").into(t, &list); len(list.Items) != want {
				t.Errorf("%d are somebody's to answer, want %d", len(list.Items), want)
			}
		}
		claim(carol, 409, ``)
		claim(carol, 409, `{"for":"carol"}`)
		if again := claim(dave, 200, ``); again != c {
			t.Errorf("dave looks at it: %+v, was %+v", again, c)
		}
		d.wantAs(dave, 204, "DELETE", path+"/claim", "") // and leaves the page
		d.wantAs(carol, 204, "DELETE", path+"/claim", "")
		time.Sleep(24 * time.Hour)
		var one api.Item
		if d.wantAs(carol, 200, "GET", path, "").into(t, &one); one.Claim == nil || *one.Claim != c {
			t.Errorf("a day later it is %+v", one.Claim)
		}
		if passed := claim(dave, 200, `{"for":"carol"}`); passed.By == c.By || passed.For != "carol" || passed.Note != "" {
			t.Errorf("dave passes it on: %+v", passed)
		}
		d.wantAs(operator, 204, "DELETE", path+"/claim", "")
		if unclaimed(carol, "") != 1 || unclaimed(dave, "") != 0 {
			t.Error("who gave it first takes back what is another's")
		}
		d.wantAs(dave, 204, "DELETE", path+"/claim", "")
		if unclaimed(carol, "") != 1 || unclaimed(dave, "") != 1 {
			t.Error("who passed it on cannot take that back")
		}
		if own := claim(carol, 200, `{"for":"carol","note":"mine"}`); own.For != "" || own.By != "" || own.Note != "mine" || own.ExpiresAt-own.At != control.ClaimLifetime {
			t.Errorf("who names themselves: %+v", own)
		}
		d.wantAs(dave, 200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "")) // it is advice
		claim(operator, 404, `{"for":"dave"}`)
	})
}

// TestAssignmentIsTold: who follows an inbox hears whose a question is, by whom and why.
func TestAssignmentIsTold(t *testing.T) {
	d := newDesk(t, deskOptions{})
	at := d.reached()
	s := d.begin(reviewed)
	dave := d.key(control.Grant{Role: control.Human, Humans: []string{"dave"}})
	l := d.hear(at, dave, "/v1/inbox/events", "")
	d.want(200, "PUT", "/v1/inbox/"+s.Question.QuestionID+"/claim", `{"for":"dave","note":"knows them","specialistId":"carol"}`)
	e, in := l.next(), api.InboxEvent{}
	if err := json.Unmarshal([]byte(e.data), &in); err != nil || e.kind != "claim.changed" || in.Claim == nil || in.Claim.For != "dave" || in.Claim.By != "local" || in.Claim.Note != "knows them" {
		t.Errorf("told of %+v, %v", e, err)
	}
}

// TestOneOfManyClaims: of many who claim or assign at once one does.
func TestOneOfManyClaims(t *testing.T) {
	d := newDesk(t, deskOptions{})
	s := d.begin(reviewed)
	path := "/v1/inbox/" + s.Question.QuestionID + "/claim"
	var keys []string
	for i := range 12 {
		keys = append(keys, d.key(control.Grant{Role: control.Human, Humans: []string{[]string{"carol", "dave"}[i%2]}}))
	}
	var did atomic.Int32
	var work sync.WaitGroup
	for i, key := range keys {
		work.Go(func() {
			switch r := d.do(key, "PUT", path, []string{"", `{"for":"carol","specialistId":"` + []string{"carol", "dave"}[i%2] + `"}`}[i/6]); r.status {
			case 200:
				did.Add(1)
			case 409:
			default:
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	work.Wait()
	var one api.Item
	if d.want(200, "GET", "/v1/inbox/"+s.Question.QuestionID, "").into(t, &one); one.Claim == nil || did.Load() < 1 {
		t.Errorf("%d of 12 have it: %+v", did.Load(), one.Claim)
	}
	if n := did.Load(); n != 1 && one.Claim.For != "carol" { // to whom an assignment is, it answers with it
		t.Errorf("%d of 12 have it", n)
	}
}
