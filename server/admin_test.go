package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// TestKeys: keys are made, listed, rotated and revoked as by the command; what is shown once is
// nowhere else.
func TestKeys(t *testing.T) {
	d := newTerminal(t, deskOptions{})
	const carol = `{"name":"carol","grants":[{"role":"human","machines":["*"],"humans":["carol"]}]}`
	var made, again, next api.MadeKey
	first := d.want(201, "POST", "/v1/keys", carol, "Idempotency-Key", "k")
	if first.into(t, &made); made.Credential == "" || made.Name != "carol" || made.CreatedBy != "local" || first.header.Get("Location") != "/v1/keys/"+made.KeyID {
		t.Fatalf("made: %v %s", first.header, first.body)
	}
	replayed := d.want(201, "POST", "/v1/keys", carol, "Idempotency-Key", "k")
	if replayed.into(t, &again); again.Credential != "" || again.KeyID != made.KeyID || replayed.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("sent again, the request is answered %s", replayed.body)
	}
	d.wantAs(made.Credential, 200, "GET", "/v1", "")
	d.alike("/v1/keys", "keys", "list")
	d.want(201, "POST", "/v1/keys/"+made.KeyID+"/rotate", `{"overlap":"1h"}`).into(t, &next)
	if next.Replaces != made.KeyID || next.Credential == "" || next.Name != "carol" || next.Grants[0].Humans[0] != "carol" {
		t.Errorf("rotated: %+v", next)
	}
	d.wantAs(made.Credential, 200, "GET", "/v1", "") // for an hour
	d.wantAs(next.Credential, 200, "GET", "/v1", "")
	d.want(201, "POST", "/v1/keys/"+next.KeyID+"/rotate", "").into(t, &again)
	d.wantAs(next.Credential, 401, "GET", "/v1", "")
	if r := d.want(409, "POST", "/v1/keys/"+next.KeyID+"/rotate", ""); r.code() != "key_revoked" {
		t.Errorf("a key that is revoked is rotated: %s", r.body)
	}
	var gone api.Key
	if d.want(200, "DELETE", "/v1/keys/"+again.KeyID, "").into(t, &gone); gone.Status != "revoked" {
		t.Errorf("revoked: %+v", gone)
	}
	d.wantAs(again.Credential, 401, "GET", "/v1", "")
	d.alike("/v1/keys?all=true", "keys", "list", "--all")
	d.want(404, "DELETE", "/v1/keys/none", "")
	d.want(404, "POST", "/v1/keys/none/rotate", "")
	for _, body := range []string{`{"name":"x","grants":[]}`, `{"name":"x","grants":[{"role":"boss","machines":["*"]}]}`, `{"name":"x","grants":[{"role":"viewer","machines":[]}]}`,
		`{"name":"x","grants":[{"role":"viewer","machines":["*"],"humans":["a"]}]}`, `{"name":"","grants":[{"role":"viewer","machines":["*"]}]}`,
		`{"name":"x","grants":[{"role":"viewer","machines":["*"]}],"expiresAt":"2020-01-01T00:00:00Z"}`, `{"name":"x","grants":[{"role":"viewer","machines":["*"]}],"expiresAt":"soon"}`} {
		if r := d.do(localKey, "POST", "/v1/keys", body); r.status != 400 {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	records, err := d.control.Audit(t.Context(), control.Query{})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, r := range records {
		for _, secret := range []string{made.Credential, next.Credential, again.Credential} {
			if bytes.Contains(r.Data, []byte(secret)) {
				t.Errorf("the audit log has a credential: %s", r.Data)
			}
		}
		named += bytes.Count(r.Data, []byte(`"target":"/v1/keys/`+made.KeyID+`"`))
	}
	if named != 1 {
		t.Errorf("the audit log names the key that was made %d times, want once", named)
	}
}

// TestKeysOfTheLost: a request of which nobody heard the answer makes no second key.
func TestKeysOfTheLost(t *testing.T) {
	d := newDesk(t, deskOptions{control: &forgetful{Store: control.NewMemory()}})
	const body = `{"name":"ci","grants":[{"role":"viewer","machines":["*"]}]}`
	d.do(localKey, "POST", "/v1/keys", body, "Idempotency-Key", "lost")
	d.want(201, "POST", "/v1/keys", body, "Idempotency-Key", "lost")
	d.want(201, "POST", "/v1/keys", body, "Idempotency-Key", "lost")
	var list api.List[api.Key]
	if d.want(200, "GET", "/v1/keys", "").into(t, &list); len(list.Items) != 1 {
		t.Errorf("%d keys were made, want 1", len(list.Items))
	}
}

// TestAdministrators: keys, the store and the audit log are for who administers or audits all
// machines of the same tenant.
func TestAdministrators(t *testing.T) {
	d := newDesk(t, deskOptions{})
	d.want(201, "POST", "/v1/keys", `{"name":"x","grants":[{"role":"viewer","machines":["*"]}]}`)
	for who, allowed := range map[*control.Grant][2]bool{ // keys and store, audit
		{Role: control.Admin}:                               {true, true},
		{Role: control.Auditor}:                             {false, true},
		{Role: control.Operator}:                            {},
		{Role: control.Human, Humans: []string{"carol"}}:    {},
		{Role: control.Admin, Machines: []string{"claims"}}: {},
	} {
		key := d.key(*who)
		for path, i := range map[string]int{"/v1/keys": 0, "/v1/store": 0, "/v1/audit": 1} {
			if r := d.do(key, "GET", path, ""); (r.status == 200) != allowed[i] || r.status != 200 && r.status != 403 {
				t.Errorf("%s by %+v: %d %s", path, *who, r.status, r.body)
			}
		}
		if r := d.do(key, "POST", "/v1/keys", `{"name":"y","grants":[{"role":"admin","machines":["*"]}]}`); (r.status == 201) != allowed[0] || r.status != 201 && r.status != 403 {
			t.Errorf("%+v makes a key: %d %s", *who, r.status, r.body)
		}
	}
	if err := d.control.Commit(t.Context(), control.Changes{Keys: []control.Key{{ID: "theirs", Tenant: "other", Grants: []control.Grant{{Role: control.Viewer, Machines: []string{"*"}}}}}}); err != nil {
		t.Fatal(err)
	}
	for method, path := range map[string]string{"GET": "/v1/keys/theirs", "DELETE": "/v1/keys/theirs", "POST": "/v1/keys/theirs/rotate"} {
		d.want(404, method, path, "")
	}
	var kept api.Store
	if d.want(200, "GET", "/v1/store", "").into(t, &kept); kept.Kind != "memory" || kept.Place != 0 {
		t.Errorf("the store is %+v", kept)
	}
	file := newTerminal(t, deskOptions{drives: true})
	file.start(reviewed)
	if file.want(200, "GET", "/v1/store", "").into(t, &kept); kept.Kind != "sqlite" || kept.Place == 0 || kept.Schema == 0 || kept.SizeBytes < 1<<12 {
		t.Errorf("the store is %+v", kept)
	}
}

// TestAuditPages: each record of the audit log is on one page, in both orders.
func TestAuditPages(t *testing.T) {
	d := newDesk(t, deskOptions{})
	for i := range 3 {
		d.want(201, "PUT", fmt.Sprintf("/v1/machines/m%d", i), strings.Replace(reviewed, "claims", fmt.Sprint("m", i), 1), "If-None-Match", "*")
	}
	for order, want := range map[string]string{"asc": "[1 2 3 4 5 6]", "desc": "[6 5 4 3 2 1]"} {
		var places []int64
		for cursor := ""; ; {
			var page api.List[api.AuditRecord]
			d.want(200, "GET", "/v1/audit?limit=2&order="+order+"&cursor="+cursor, "").into(t, &page)
			for _, r := range page.Items {
				if places = append(places, r.Place); r.Subject != "local" || r.Operation != "PUT /v1/machines/{machine}" || r.Hash == (control.Hash{}) {
					t.Errorf("a record is %+v", r)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if fmt.Sprint(places) != want {
			t.Errorf("%s: %v, want %s", order, places, want)
		}
	}
	var none api.List[api.AuditRecord]
	if d.want(200, "GET", "/v1/audit?subject=nobody", "").into(t, &none); len(none.Items) != 0 {
		t.Errorf("nobody did %+v", none.Items)
	}
}

// logged returns what the audit log says of an operation.
func (d *desk) logged(operation string) (found []control.Entry) {
	d.Helper()
	records, err := d.control.Audit(d.Context(), control.Query{})
	if err != nil {
		d.Fatal(err)
	}
	for _, r := range records {
		e, err := r.Entry()
		if err != nil {
			d.Fatal(err)
		}
		if e.Operation == operation {
			found = append(found, e)
		}
	}
	return found
}

// TestReadsAreNoted: who was shown payload is in the audit log, once a minute for each target,
// and what cannot be recorded is not shown.
func TestReadsAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		var started api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`).into(t, &started)
		path := "/v1/sessions/" + started.Session.SessionID
		viewer, operator := d.key(control.Grant{Role: control.Viewer}), d.key(control.Grant{Role: control.Operator})
		for range 3 {
			d.wantAs(viewer, 200, "GET", path, "")
			d.wantAs(operator, 200, "GET", path, "")
			d.wantAs(operator, 200, "GET", path+"/events?payload=none", "")
			d.wantAs(operator, 200, "GET", path+"/events?payload=full", "")
		}
		time.Sleep(time.Minute)
		d.wantAs(operator, 200, "GET", path, "")
		if seen := d.logged("GET /v1/sessions/{id}"); len(seen) != 2 || seen[0].Target != path || !strings.HasPrefix(seen[0].Subject, "key:") || seen[0].Result != "OK" {
			t.Errorf("of the reads the log says %+v", seen)
		}
		if seen := d.logged("GET /v1/sessions/{id}/events"); len(seen) != 1 {
			t.Errorf("of the events that were read the log says %+v", seen)
		}
		d.wantAs(operator, 200, "GET", "/v1", "")
		if seen := d.logged("GET /v1"); len(seen) != 0 {
			t.Errorf("of what shows no payload the log says %+v", seen)
		}
		broken := newDesk(t, deskOptions{control: failing{d.control}, store: d.runner.Store()})
		for range 2 {
			broken.wantAs(operator, 507, "GET", path, "")
		}
		broken.wantAs(viewer, 200, "GET", path, "")
	})
}

// TestRefusedAreCounted: requests without a credential that is known are counted in the audit
// log, by address and minute.
func TestRefusedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		for range 5 {
			d.wantAs("", 401, "GET", "/v1", "")
			d.wantAs("guess", 401, "GET", "/v1/keys", "")
		}
		if seen := d.logged("unauthenticated"); len(seen) != 0 {
			t.Errorf("before the minute is over the log says %+v", seen)
		}
		time.Sleep(time.Minute)
		d.wantAs("", 401, "GET", "/v1", "")
		if seen := d.logged("unauthenticated"); len(seen) != 1 || seen[0].Count != 10 || seen[0].Address != "192.0.2.1" || seen[0].Subject != "" {
			t.Errorf("the log says %+v", seen)
		}
	})
}
