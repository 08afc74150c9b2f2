package server_test

import (
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
		if unclaimed(dave) != 0 || unclaimed(carol) != 1 {
			t.Error("whoever asks for what nobody else is at is not answered so")
		}
		time.Sleep(time.Duration(control.ClaimLifetime) * time.Millisecond)
		if unclaimed(dave) != 1 {
			t.Error("after half an hour the claim still holds")
		}
		d.wantAs(dave, 200, "PUT", path+"/claim", "")
		d.wantAs(dave, 204, "DELETE", path+"/claim", "")
		d.wantAs(dave, 200, "PUT", path+"/claim", "")
		d.wantAs(carol, 200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", ""))
		d.wantAs(dave, 404, "PUT", path+"/claim", "")
	})
}
