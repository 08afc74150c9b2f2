package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dialai/dialai/store"
)

// TestTenantsOverAKill: a server with two tenants is killed and started again. The sessions of both
// go on, nothing of one is seen in the other, and one whose store another process drives keeps the
// other from nothing.
func TestTenantsOverAKill(t *testing.T) {
	d := newDesk(t)
	config := filepath.Join(d.dir, "serve.yaml")
	d.must(os.WriteFile(config, []byte("tenants:\n  acme: { store: acme.db }\n  beta: { store: beta.db }\n"), 0o600))
	of := map[string]shown{}
	s := d.serve("--config", config)
	start := func(tenant string) (got shown) {
		s.call(201, "POST", "/v1/sessions?wait=20s", map[string]any{"machine": json.RawMessage(question)}, &got, "Dialai-Tenant", tenant, "Idempotency-Key", "one")
		return got
	}
	for _, tenant := range []string{"acme", "beta"} {
		of[tenant] = start(tenant)
	}
	s.end(syscall.SIGKILL, 0)

	held, err := store.OpenSQLite(t.Context(), filepath.Join(d.dir, "acme.db"), store.SQLiteOptions{})
	d.must(err)
	defer held.Close()
	lock, err := held.DriverLock()
	d.must(err)
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatalf("the lock of who was killed is not free (%v)", err)
	}
	s = d.serve("--config", config)
	for tenant, other := range map[string]string{"acme": "beta", "beta": "acme"} {
		mine, theirs := of[tenant].Session.SessionID, of[other].Session.SessionID
		if again := start(tenant); again.Session.SessionID != mine {
			t.Errorf("the request to start is sent again, and starts %s beside %s", again.Session.SessionID, mine)
		}
		for _, path := range []string{"/v1/sessions", "/v1/inbox", "/v1/machines", "/v1/sessions/" + mine + "/events?after=0", "/v1/audit"} {
			var got json.RawMessage
			s.call(200, "GET", path, nil, &got, "Dialai-Tenant", tenant)
			if strings.Contains(string(got), theirs) {
				t.Errorf("%s of %s has what is of %s: %s", path, tenant, other, got)
			}
		}
		for _, path := range []string{"", "/events", "/explain", "/decisions", "/driver"} {
			s.call(http.StatusNotFound, "GET", "/v1/sessions/"+theirs+path, nil, nil, "Dialai-Tenant", tenant)
		}
		s.rules(http.StatusNotFound, of[other], nil, "Dialai-Tenant", tenant)
	}
	rules := func(tenant string) (ruled shown) {
		q := of[tenant]
		s.call(200, "POST", "/v1/sessions/"+q.Session.SessionID+"/decisions?wait=20s", map[string]any{
			"transitionName": "on", "roundId": q.Session.Question.RoundID, "questionDigest": q.Session.Question.Digest,
		}, &ruled, "Dialai-Tenant", tenant)
		return ruled
	}
	var mode struct{ Mode string }
	s.call(200, "GET", "/v1/sessions/"+of["acme"].Session.SessionID+"/driver", nil, &mode, "Dialai-Tenant", "acme")
	if ruled := rules("beta"); ruled.Session.Status != "completed" || mode.Mode != "standby" {
		t.Errorf("while another process drives acme (%s), the session of beta comes to %+v", mode.Mode, ruled)
	}
	d.must(lock.Unlock())
	if ruled := rules("acme"); ruled.Session.Status != "completed" {
		t.Errorf("after its driver's end, the session of acme comes to %+v", ruled)
	}
	s.end(os.Interrupt, 0)
}
