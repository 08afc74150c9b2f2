package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// TestSpecialists: who is registered or switched off takes part, or does not, in all sessions.
func TestSpecialists(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	const path = "/v1/machines/claims/specialists"
	d.want(404, "GET", path, "")
	d.start(reviewed)
	ann := `{"role":"proposer","specialistId":"ann","strategyFnName":"lastAvailable","timeout":"3s"}`
	var got api.Specialist
	first := d.want(201, "POST", path, ann, "Idempotency-Key", "a")
	if first.into(t, &got); got.SpecialistID != "ann" || !got.Registered || first.header.Get("Location") != path+"/ann" {
		t.Errorf("registered: %v %s", first.header, first.body)
	}
	if r := d.want(409, "POST", path, ann); r.code() != "exists" {
		t.Errorf("again: %s", r.body)
	}
	for body, status := range map[string]int{
		`{"role":"proposer","specialistId":"x"}`:                                                422,
		`{"role":"proposer","specialistId":"x","strategyFnName":"none"}`:                        422,
		`{"role":"proposer","specialistId":"x","strategyFnNam":"lastAvailable"}`:                400,
		`{"role":"boss","specialistId":"x","strategyFnName":"lastAvailable"}`:                   422,
		`{"role":"proposer","specialistId":"x","strategyFnName":"lastAvailable","timeout":"x"}`: 400,
	} {
		if r := d.do(localKey, "POST", path, body); r.status != status {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	d.want(200, "PATCH", path+"/bot", `{"enabled":false}`).into(t, &got)
	if got.SpecialistID != "bot" || !got.Disabled {
		t.Errorf("switched off: %+v", got)
	}
	d.want(200, "PATCH", path+"/rob", `{"enabled":false}`)
	d.want(200, "PATCH", path+"/rob", `{"enabled":true}`)
	d.want(404, "PATCH", path+"/nobody", `{"enabled":true}`)
	d.want(400, "PATCH", path+"/bot", `{}`)
	if r := d.want(501, "PATCH", path+"/bot", `{"threshold":0.5}`); r.code() != "not_implemented" {
		t.Errorf("a threshold: %s", r.body)
	}
	d.alike(path, "specialists", "claims")
	if s := d.start(reviewed); len(s.Proposals) != 2 {
		t.Errorf("rob and ann propose, bot does not: %s", s.Proposals)
	}
	var pages []string
	for cursor := ""; ; {
		var page api.List[api.Specialist]
		d.want(200, "GET", path+"?limit=1&cursor="+cursor, "").into(t, &page)
		pages = append(pages, page.Items[0].SpecialistID)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if fmt.Sprint(pages) != "[ann bot]" {
		t.Errorf("page by page: %v", pages)
	}
	d.want(400, "GET", path+"?cursor=x", "")
	human := `{"role":"proposer","specialistId":"erin","isHuman":true}`
	d.wantAs(d.key(control.Grant{Role: control.Operator}), 403, "POST", path, human)
	d.wantAs(d.key(control.Grant{Role: control.Admin}), 201, "POST", path, human)
	d.wantAs(d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}), 403, "PATCH", path+"/bot", `{"enabled":true}`)
}

// TestRegisterTheLost: a registration of which only the effect is known is not refused when it
// is sent again.
func TestRegisterTheLost(t *testing.T) {
	d := newDesk(t, deskOptions{control: &forgetful{Store: control.NewMemory()}})
	const path, ann = "/v1/machines/claims/specialists", `{"role":"proposer","specialistId":"ann","strategyFnName":"lastAvailable"}`
	d.want(201, "POST", path, ann, "Idempotency-Key", "lost")
	d.want(201, "POST", path, ann, "Idempotency-Key", "lost")
	d.want(409, "POST", path, ann, "Idempotency-Key", "another", "Content-Type", "application/json")
}

// TestMachineLog: what happened to the specialists of a machine is told as dialai log --machine
// prints it, page by page, and to whoever may see no texts without them.
func TestMachineLog(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	const path = "/v1/machines/claims/log"
	d.want(404, "GET", path, "")
	d.start(reviewed)
	var page api.List[api.Event]
	if d.want(200, "GET", path, "").into(t, &page); len(page.Items) != 0 {
		t.Errorf("before anything has happened: %+v", page)
	}
	for _, enabled := range []string{"false", "true", "false"} {
		d.want(200, "PATCH", "/v1/machines/claims/specialists/bot", `{"enabled":`+enabled+`,"reasoning":"ann says so"}`)
	}
	if r := d.want(200, "GET", path+"?payload=full", ""); strings.Count(string(r.body), `"reason":"ann says so"`) != 3 {
		t.Errorf("of why somebody was switched it tells %s", r.body)
	}
	d.want(201, "POST", "/v1/machines/claims/specialists", `{"role":"proposer","specialistId":"ann","strategyFn":"= \"mail ann@example.com\""}`)
	d.alike(path+"?payload=full", "log", "--machine", "claims")
	d.alike(path+"?payload=full&from=3", "log", "--machine", "claims", "--from", "3")
	if r := d.want(200, "GET", path+"?payload=none", ""); strings.Contains(string(r.body), "ann") {
		t.Errorf("without texts it tells %s", r.body)
	}
	var seqs []int64
	for cursor := ""; ; {
		d.want(200, "GET", path+"?limit=2&cursor="+cursor, "").into(t, &page)
		for _, e := range page.Items {
			seqs = append(seqs, e.Seq)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
		page = api.List[api.Event]{}
	}
	if len(seqs) != 4 || !slices.IsSorted(seqs) {
		t.Errorf("the pages have %v", seqs)
	}
	viewer := d.key(control.Grant{Role: control.Viewer})
	d.wantAs(viewer, 403, "GET", path+"?payload=full", "")
	if d.wantAs(viewer, 200, "GET", path, "").into(t, &page); len(page.Items) != 4 || string(page.Items[3].Data) != "{}" {
		t.Errorf("a viewer sees %+v", page.Items)
	}
	d.wantAs(d.key(control.Grant{Role: control.Viewer, Machines: []string{"other"}}), 404, "GET", path, "")
}
