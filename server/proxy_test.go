package server_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server"
)

// TestBehindProxy: only a proxy may call, and whom it names is believed as far as proxies
// have written it.
func TestBehindProxy(t *testing.T) {
	d := newDesk(t, deskOptions{config: server.Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Hosts: []string{"dialai.example"}}})
	for _, c := range []struct {
		from, forwarded, host string
		status                int
		address               string // in the audit log
	}{
		{"192.0.2.1", "", "dialai.example", 403, ""},
		{"192.0.2.1", "10.0.0.1", "dialai.example", 403, ""},
		{"10.0.0.1", "", "dialai.example", 404, "10.0.0.1"},
		{"10.0.0.1", "192.0.2.7", "dialai.example", 404, "192.0.2.7"},
		{"10.0.0.1", "198.51.100.1, 192.0.2.7, 10.1.1.1", "dialai.example", 404, "192.0.2.7"},
		{"10.0.0.1", "192.0.2.7", "evil.example", 421, ""},
	} {
		d.from = c.from
		r := d.do(localKey, "POST", "/v1/sessions/0b9c1d3e-0000-4000-8000-000000000000/resume", `{"note":"x"}`, "X-Forwarded-For", c.forwarded, "X-Forwarded-Host", c.host)
		if r.status != c.status {
			t.Errorf("%+v: %d %s", c, r.status, r.body)
		}
		if c.address == "" {
			continue
		}
		records, err := d.control.Audit(t.Context(), control.Query{Limit: 1, Desc: true})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := records[0].Entry(); err != nil || e.Address != c.address {
			t.Errorf("%+v: the audit log has %q %v", c, e.Address, err)
		}
	}
	if r := d.do("", "GET", "/healthz", ""); r.status != 200 {
		t.Errorf("health through the proxy: %d", r.status)
	}
}

// TestTokens: whoever has a key of a file is known by it, until it expires or the file has
// another.
func TestTokens(t *testing.T) {
	now := time.Unix(1000, 0)
	secret := func() (string, control.Hash) {
		var b [16]byte
		rand.Read(b[:])
		text := hex.EncodeToString(b[:])
		return text, control.HashOf(text)
	}
	ann, annHash := secret()
	bob, bobHash := secret()
	tokens := server.NewTokens([]control.Key{
		{ID: "ann", Hash: annHash, Grants: []control.Grant{{Role: control.Viewer, Machines: []string{"*"}}}},
		{ID: "bob", Hash: bobHash, ExpiresAt: 2000_000, Grants: []control.Grant{{Role: control.Operator, Machines: []string{"*"}}}},
	}, func() time.Time { return now })
	who := func(credential string) string {
		p, err := tokens.Authenticate(t.Context(), credential)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(p.Subject, " ", p.Method, " ", p.Tenant, " ", p.Grants[0].Role)
	}
	unknown := server.ErrUnauthenticated.Error()
	for credential, want := range map[string]string{ann: "token:ann key default viewer", bob: "token:bob key default operator", "": unknown, "x": unknown, strings.ToUpper(ann): unknown, annHash.String(): unknown} {
		if got := who(credential); got != want {
			t.Errorf("%q is %s, want %s", credential, got, want)
		}
	}
	now = time.Unix(2000, 0)
	if got := who(bob); got != unknown {
		t.Errorf("when it has expired: %s", got)
	}
	tokens.Set(nil)
	if got := who(ann); got != unknown {
		t.Errorf("when it is gone from the file: %s", got)
	}
}
